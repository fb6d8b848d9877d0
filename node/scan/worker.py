"""The scan worker's own process: static vectors in a box. Run as `python -P -m node.scan.worker`.

The only importer of search.vectors. Must not know the node, peers or what the vectors are for.
"""

from node.scan.boxed import BoxedProcess
from node.scan.frames import Embed, ScanRefused, Vectors, decode_order, encode
from search.vectors import DIMENSIONS, StaticVectors

__all__: list[str] = []


def _main() -> None:
    process = BoxedProcess()
    pipe = process.pipe
    vectors = StaticVectors()
    process.enter()
    process.ready(["vectors"], DIMENSIONS)
    for payload in process.orders:
        order = decode_order(payload)
        if not isinstance(order, Embed):
            pipe.write(encode(ScanRefused(order.number, "not an order of mine")))
            continue
        try:
            data = vectors.embed(order.texts)
        except Exception as error:  # one odd text must not take the others' worker down
            pipe.write(encode(ScanRefused(order.number, type(error).__name__)))
        else:
            pipe.write(encode(Vectors(order.number, data)))


if __name__ == "__main__":
    _main()
