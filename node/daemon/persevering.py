"""One step of work that is done again and again: what fails in it is logged, and the node lives on.

A full or failing disk is the usual reason; a peer must not be able to end the node by it. Must not know what the steps
do, or how often they are tried.
"""

import logging
from collections.abc import Awaitable, Callable

import trio

from node.errors import KithError
from offload.errors import OffloadError
from search.errors import SearchError

__all__ = ["Persevering", "in_words"]

log = logging.getLogger(__name__)


class Persevering:
    """Attempts at one step. A reason is logged when it is new, not again every second while it lasts."""

    def __init__(self, what: str) -> None:
        """what: the step in words, for the log."""
        self._what = what
        self._reason = ""

    async def attempt(self, step: Callable[[], Awaitable[object]]) -> bool:
        """Whether the step came to its end. Raises only what is no failure of ours, of the disk or of an engine."""
        reason = ""
        try:
            await step()
        except* (KithError, OffloadError, SearchError, OSError, trio.TooSlowError) as failures:
            reason = "; ".join(dict.fromkeys(in_words(one) for one in _leaves(failures)))
        if reason and reason != self._reason:
            log.warning("%s failed and is tried again later: %s", self._what, reason)
        elif self._reason and not reason:
            log.info("%s works again", self._what)
        self._reason = reason
        return not reason

    async def until_done(self, step: Callable[[], Awaitable[object]], *, every_s: float) -> None:
        """Attempt the step until it comes to its end once."""
        while True:
            if await self.attempt(step):
                return
            await trio.sleep(every_s)


def in_words(error: BaseException) -> str:
    """What the log may say of an error: the text of ours, which is written for people, and no text of others."""
    if isinstance(error, KithError):
        return error.text
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(getattr(error, "code", type(error).__name__))


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [error]
