"""Runs what reads long texts in a thread, so that the event loop never stalls noticeably; short ones are read at once.

Must not know what is looked for.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar, TypeVarTuple

import trio

__all__ = ["THREADS", "off_loop"]

_INLINE_CHARS = 8_192
THREADS = trio.CapacityLimiter(2)
_Given = TypeVarTuple("_Given")
_Result = TypeVar("_Result")


async def off_loop(size: int, function: Callable[[*_Given], _Result], *given: *_Given) -> _Result:
    """function(*given): in a thread when what it reads has more than 8,192 characters, else at once.

    Cancelled, it is left to end by itself: it must change nothing that somebody else still uses.
    """
    if size <= _INLINE_CHARS:
        return function(*given)
    return await trio.to_thread.run_sync(partial(function, *given), limiter=THREADS, abandon_on_cancel=True)
