"""How a scan process begins: tied to its parent, limited, then, once its libraries are there, behind walls.

Must not know what is scanned for.
"""

import argparse
from collections.abc import Iterator, Sequence

from node.scan.frames import ScanReady, encode
from offload.child.box import enter_box, limit_memory, limit_resources, runtime_paths, tie_to_parent
from offload.child.boxprobe import probe_box
from offload.child.frames import BlockingPipe

__all__ = ["BoxedProcess"]

_MOST_MEMORY_BYTES = 1024**3
_OWN_PROCESS = "/proc/self"


class BoxedProcess:
    """This process, as its parent started it (`--fd`, `--parent`). Blocks until the parent's greeting is there."""

    def __init__(self) -> None:
        arguments = argparse.ArgumentParser()
        arguments.add_argument("--fd", type=int, required=True)
        arguments.add_argument("--parent", type=int, required=True)
        given = arguments.parse_args()
        self._layers = {
            "parent_death": tie_to_parent(given.parent), "limits": limit_resources(),
            "memory_limit": limit_memory(_MOST_MEMORY_BYTES),
        }
        self.pipe = BlockingPipe(given.fd)
        self.orders: Iterator[bytes] = self.pipe.read_all()
        next(self.orders)    # the greeting holds nothing yet

    def enter(self, *readable: str) -> None:
        """Put up the walls; of files only Python's own and the readable folders can be opened from here on."""
        self._layers |= enter_box(read=(_OWN_PROCESS, *runtime_paths(), *readable))

    def ready(self, parts: Sequence[str], dimensions: int) -> None:
        """Tell the parent what runs here, which walls stand, and what could be done all the same."""
        self.pipe.write(encode(ScanReady(list(parts), dimensions, self._layers, probe_box())))
