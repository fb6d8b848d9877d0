"""The scan worker's own process: static vectors in a box. Run as `python -P -m node.scan.worker`.

The only importer of search.vectors. Must not know the node, peers or what the vectors are for.
"""

import argparse

from node.scan.frames import Embed, ScanReady, ScanRefused, Vectors, decode_order, encode
from offload.child.box import enter_box, limit_memory, limit_resources, runtime_paths, tie_to_parent
from offload.child.boxprobe import probe_box
from offload.child.frames import BlockingPipe
from search.vectors import DIMENSIONS, StaticVectors

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
    vectors = StaticVectors()
    layers |= enter_box(read=(_OWN_PROCESS, *runtime_paths()))
    pipe.write(encode(ScanReady(["vectors"], DIMENSIONS, layers, probe_box())))
    for payload in orders:
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
