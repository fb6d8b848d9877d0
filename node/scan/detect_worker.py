"""The detectors' own process, in a box. Run as `python -P -m node.scan.detect_worker`.

Libraries are imported before the walls go up (a process with threads cannot leave the network), the models behind them.
The only importer of node.scan.detectors but for weights.py. Must not know the node, peers or what a span leads to.
"""

from node.scan.boxed import BoxedProcess
from node.scan.detectors.union import Detectors
from node.scan.detectors.weights import rampart_folder
from node.scan.frames import Detect, ScanRefused, Spans, decode_order, encode

__all__: list[str] = []


def _main() -> None:
    process = BoxedProcess()
    pipe = process.pipe
    folder = rampart_folder()
    process.enter(*([str(folder)] if folder is not None else []))
    try:
        detectors = Detectors(folder)
    except Exception as error:
        pipe.write(encode(ScanRefused(0, f"its models could not be loaded ({type(error).__name__})")))
        return
    process.ready(detectors.names, 0)
    for payload in process.orders:
        order = decode_order(payload)
        if not isinstance(order, Detect):
            pipe.write(encode(ScanRefused(order.number, "not an order of mine")))
            continue
        try:
            spans = [
                detectors.find(text, foreign=foreign) for text, foreign in zip(order.texts, order.foreign, strict=True)
            ]
        except Exception as error:  # one odd text must not take the others' worker down; the reason names no text
            pipe.write(encode(ScanRefused(order.number, type(error).__name__)))
        else:
            pipe.write(encode(Spans(order.number, spans)))


if __name__ == "__main__":
    _main()
