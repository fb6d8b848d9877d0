"""What was written becomes durable, then the owner reads it, in order: nothing that was read can be lost or change.

While one commit runs the next pieces gather, so a slow disk makes fewer commits and not a slower answer. A disk that
takes nothing more costs only the durability. Must not know who writes, or how the owner reads.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

import trio

from node.daemon.under_way import UnderWay
from node.errors import KithError
from node.store.answers import KeptPiece

__all__ = ["Delivery"]

log = logging.getLogger(__name__)

MOST_WAITING = 256

Keep = Callable[[int, Sequence[KeptPiece]], Awaitable[None]]


class Delivery:
    """One per answer. run() beside whoever feeds it."""

    def __init__(self, answer: UnderWay, keep: Keep | None) -> None:
        """keep(first number, pieces): make them durable; None when that is not wanted."""
        self._answer = answer
        self._keep = keep
        self._waiting: list[KeptPiece] = []
        self._changed = trio.Event()
        self._idle = True
        self._failure: Exception | None = None
        self.wanted = True

    async def feed(self, piece: KeptPiece) -> bool:
        """Take a piece; False once the owner wants no more. Raises what showing it raised."""
        while len(self._waiting) >= MOST_WAITING and self._failure is None:
            await self._changed.wait()
        self._check()
        if self.wanted:
            self._answer.add(piece)
            self._waiting.append(piece)
            self._tell()
        await trio.lowlevel.checkpoint()
        return self.wanted

    async def settle(self) -> None:
        """Wait until all that was taken has been shown."""
        while (self._waiting or not self._idle) and self._failure is None:
            await self._changed.wait()
        self._check()

    async def finish(self) -> None:
        """settle(), and show what was held back: the answer is whole."""
        await self.settle()
        if self.wanted:
            await self._show(self._answer.reveal_end())

    async def run(self) -> None:
        """Make durable and show, until cancelled."""
        while True:
            if not self._waiting:
                await self._changed.wait()
                continue
            self._idle = False
            pieces, self._waiting = self._waiting, []
            try:
                await self._make_durable(pieces)
                for piece in pieces:
                    if self.wanted:
                        await self._show(self._answer.reveal(piece.text))
            except Exception as error:  # handed to whoever feeds: it is the answer that failed, not this task
                self._failure = error
            self._idle = True
            self._tell()

    async def _make_durable(self, pieces: Sequence[KeptPiece]) -> None:
        if self._keep is None:
            return
        first = self._answer.pieces - len(pieces) - len(self._waiting)
        try:
            await self._keep(first, pieces)
        except KithError as error:
            log.warning("an answer is no longer kept for a restart: %s", error.code)
            self._keep = None

    async def _show(self, text: str) -> None:
        if text:
            self._answer.note_shown(text)
            self.wanted = await self._answer.job.on_text(text)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
