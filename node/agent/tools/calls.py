"""Runs a source's blocking call in a thread and turns its errors into those of tools.

Must not know any one tool or source.
"""

from collections.abc import Callable
from typing import TypeVar

import trio

from node.agent.tools.errors import BadArgument, EffectRefused, NothingFound, ToolError
from node.sources.errors import BadValue, BrokenSource, NotThere, SourceChanged, SourceError

__all__ = ["in_thread"]

T = TypeVar("T")

_THREADS = trio.CapacityLimiter(2)
"""Shared by all tools: the disk has one arm, and the model needs the cores."""


async def in_thread(call: Callable[[], T]) -> T:
    """What call returns; its SourceErrors come as ToolErrors. A call that began is always waited for: it may write."""
    try:
        return await trio.to_thread.run_sync(call, limiter=_THREADS)
    except SourceError as error:
        raise _as_tool_error(error) from error


def _as_tool_error(error: SourceError) -> ToolError:
    match error:
        case NotThere():
            return NothingFound(str(error))
        case BadValue():
            return BadArgument("text", str(error))
        case SourceChanged() | BrokenSource():
            return EffectRefused(str(error))
        case _:
            found = ToolError(f"{error} {error.hint}")
            found.hint = error.hint
            return found
