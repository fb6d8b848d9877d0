"""The facts of a model file, read by a boxed process so that nothing in the file can reach this one.

Must not know how a header is laid out, or where models are kept.
"""

from pathlib import Path

import msgspec
import trio

from offload.child.errors import ChildGone
from offload.child.process import start_child
from offload.errors import ModelUnusable
from offload.gguf import ModelFacts
from offload.gguf_worker import FactsReport

__all__ = ["model_facts"]

_DEADLINE_S = 60.0


async def model_facts(path: Path) -> ModelFacts:
    """What the file says of itself. Raises ModelUnusable when it is no model, damaged, or its reader dies."""
    child = start_child("offload.gguf_worker", str(path))
    try:
        with trio.fail_after(_DEADLINE_S):
            payload = await child.receive()
    except (ChildGone, trio.TooSlowError) as error:
        raise ModelUnusable("The model file took too long to read.") from error
    finally:
        death = await child.end()
    if payload is None:
        raise ModelUnusable(f"The model file can't be read: its reader ended ({death.reason}).")
    try:
        report = msgspec.msgpack.decode(payload, type=FactsReport)
    except msgspec.DecodeError as error:
        raise ModelUnusable("The model file's reader answered nonsense.") from error
    if report.facts is None:
        raise ModelUnusable(report.problem)
    return report.facts
