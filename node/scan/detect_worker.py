"""The detectors' own process, in a box. Run as `python -P -m node.scan.detect_worker`.

Libraries are imported before the walls go up (a process with threads cannot leave the network), the models behind them.
The only importer of node.scan.detectors but for weights.py. Must not know the node, peers or what a span leads to.
"""

import argparse

from node.scan.detectors.union import Detectors
from node.scan.detectors.weights import rampart_folder
from node.scan.frames import Detect, ScanReady, ScanRefused, Spans, decode_order, encode
from offload.child.box import enter_box, limit_memory, limit_resources, runtime_paths, tie_to_parent
from offload.child.boxprobe import probe_box
from offload.child.frames import BlockingPipe

__all__: list[str] = []

_MOST_MEMORY_BYTES = 1024**3
_OWN_PROCESS = "/proc/self"


def _main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--fd", type=int, required=True)
    arguments.add_argument("--parent", type=int, required=True)
    given = arguments.parse_args()
    layers = {
        "parent_death": tie_to_parent(given.parent), "limits": limit_resources(),
        "memory_limit": limit_memory(_MOST_MEMORY_BYTES),
    }
    pipe = BlockingPipe(given.fd)
    orders = pipe.read_all()
    next(orders)    # the greeting holds nothing yet
    folder = rampart_folder()
    layers |= enter_box(read=(_OWN_PROCESS, *runtime_paths(), *([str(folder)] if folder is not None else [])))
    try:
        detectors = Detectors(folder)
    except Exception as error:
        pipe.write(encode(ScanRefused(0, f"its models could not be loaded ({type(error).__name__})")))
        return
    pipe.write(encode(ScanReady(list(detectors.names), 0, layers, probe_box())))
    for payload in orders:
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
