"""One boxed process that reads the header of one model file, says what it found, and ends.

Run as `python -P -m offload.gguf_worker`. The file is untrusted, so nothing but it can be read, nothing written, and
there is no network. Must not know the daemon or other models.
"""

import argparse
import os

import msgspec

from offload.child.box import enter_box, limit_memory, limit_resources, tie_to_parent
from offload.child.frames import BlockingPipe
from offload.errors import ModelUnusable
from offload.gguf import ModelFacts, read_facts

__all__ = ["FactsReport"]

_MEMORY_BYTES = 512 * 1024 * 1024


class FactsReport(msgspec.Struct, frozen=True):
    """facts, or problem in words; box: layer -> "held" or the reason why it is missing."""

    box: dict[str, str]
    facts: ModelFacts | None = None
    problem: str = ""


def _main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--fd", type=int, required=True)
    arguments.add_argument("--parent", type=int, required=True)
    arguments.add_argument("path")
    given = arguments.parse_args()
    layers = {
        "parent_death": tie_to_parent(given.parent), "limits": limit_resources(),
        "memory_limit": limit_memory(_MEMORY_BYTES),
    }
    pipe = BlockingPipe(given.fd)
    layers |= enter_box(read=(given.path,))
    try:
        with open(given.path, "rb") as file:
            report = FactsReport(layers, read_facts(file, os.fstat(file.fileno()).st_size))
    except ModelUnusable as error:
        report = FactsReport(layers, problem=str(error))
    except OSError as error:
        report = FactsReport(layers, problem=error.strerror or "the model file can't be read")
    pipe.write(msgspec.msgpack.encode(report))


if __name__ == "__main__":
    _main()
