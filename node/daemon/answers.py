"""The answers that are being written now: kept durably for a restart, and followed by whoever wants to read along.

Implements node.daemon.thinker.AnswerKeeper and node.api.ports.Following. Must not know who writes an answer, or how it
is gone on with.
"""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import trio

from node.api.ports import Emit
from node.api.views import AnswerView
from node.clock import Clock, from_ms, to_ms
from node.daemon.under_way import UnderWay
from node.errors import KithError, UsageError
from node.store import answers
from node.store.answers import KeptPiece
from node.store.database import Database

__all__ = ["Answers"]

log = logging.getLogger(__name__)

ENDED_LIMIT = 32
STORED_WAIT_S = 60.0
_UNFINISHED: Mapping[str, Any] = {
    "event": "error", "code": "unfinished", "message": "The answer was not finished: it was cancelled, or it failed.",
    "hint": "See what was answered: kith history last", "exit_code": 1,
}
TITLE_CHARS = 80


@dataclass(slots=True)
class _Followed:
    """One answer, under way or just over. last: its last event, once there is one."""

    answer: UnderWay
    begun_ms: int
    last: Mapping[str, Any] | None = None
    told: trio.Event | None = None


class Answers:
    """All of one node."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._known: OrderedDict[str, _Followed] = OrderedDict()
        self.stopping = False
        """From here on what is cut off stays kept: it goes on at the next start."""

    # -- keeping --

    async def begin(self, answer: UnderWay) -> None:
        """Keep a new one."""
        now_ms = to_ms(self._clock.now())
        self.adopt(answer, now_ms)
        await self._attempt(lambda: self._database.write(answers.begin, answer.kept(now_ms)))

    async def note_leg(self, answer: UnderWay) -> None:
        """Keep who writes now."""
        form, legs = answer.encoded_form(), answer.encoded_legs()
        await self._attempt(
            lambda: self._database.write(answers.note_leg, answer.job.job_id, carried=form, legs=legs))

    async def extend(self, request_id: str, first: int, pieces: Sequence[KeptPiece]) -> None:
        """Keep pieces. Raises StorageError."""
        await self._database.write(answers.extend, request_id, first, pieces)

    async def leave(self, answer: UnderWay, *, whole: bool) -> None:
        """It is no longer written: erased when there is no result, unless the node is stopping."""
        if whole:
            return
        request_id = answer.job.job_id
        if not self.stopping:
            self.conclude(request_id, _UNFINISHED)
            await self._attempt(lambda: self._database.write(answers.settle, request_id))

    def adopt(self, answer: UnderWay, begun_ms: int) -> None:
        """Let an answer be followed."""
        known = self._known.get(answer.job.job_id)
        told = known.told if known is not None else None
        self._known[answer.job.job_id] = _Followed(answer, begun_ms, told=told)
        while len(self._known) > ENDED_LIMIT:
            ended = next((one for one, found in self._known.items() if found.last is not None), None)
            if ended is None:
                break
            del self._known[ended]

    def conclude(self, request_id: str, last: Mapping[str, Any]) -> None:
        """The answer is stored; its last event for those who follow. The first one counts."""
        found = self._known.get(request_id)
        if found is not None and found.last is None:
            found.last = last
            if found.told is not None:
                found.told.set()

    @contextmanager
    def concluding(self, request_id: str) -> Iterator[None]:
        """Whoever follows this answer is not kept waiting when it could not be stored."""
        try:
            yield
        finally:
            self.conclude(request_id, _UNFINISHED)

    # -- following --

    def under_way(self) -> list[AnswerView]:
        """Those that are being written now, oldest first."""
        return [_view(found) for found in self._known.values() if found.last is None]

    async def follow(self, name: str, from_char: int, emit: Emit) -> None:
        """The answer called so ("last", an id or its beginning), from this character on: each character once, in order.

        Raises UsageError when there is none.
        """
        request_id, found = self._find(name)
        await emit({"event": "following", "id": request_id, "conversation_id": found.answer.job.conversation_id})
        at = from_char
        while True:
            answer = found.answer
            grew = answer.grew
            if len(answer.shown) > at:
                text, at = answer.shown[at:], len(answer.shown)
                await emit({"event": "delta", "text": text})
            elif answer.over:
                break
            else:
                await grew.wait()
        if found.last is None:
            found.told = found.told or trio.Event()
            with trio.move_on_after(STORED_WAIT_S):
                await found.told.wait()
        await emit(found.last or _UNFINISHED)

    def _find(self, name: str) -> tuple[str, _Followed]:
        fits = [one for one in reversed(self._known.items()) if name == "last" or one[0].startswith(name)]
        if not fits or (name != "last" and len(fits) > 1):
            raise UsageError(
                "No answer is under way." if name == "last" else "There is no such answer under way, or more than one.",
                hint="See what was answered: kith history last")
        return fits[0]

    async def _attempt(self, write: Callable[[], Awaitable[object]]) -> None:
        """A disk that takes nothing costs the durability, not the answer."""
        try:
            await write()
        except KithError as error:
            log.warning("an answer is not kept for a restart: %s", error.code)


def _view(found: _Followed) -> AnswerView:
    answer = found.answer
    asked = [part.text.value for part in answer.job.parts if part.name == "request"]
    return AnswerView(
        id=answer.job.job_id, conversation_id=answer.job.conversation_id,
        title=" ".join(asked[-1].split())[:TITLE_CHARS] if asked else "",
        begun=from_ms(found.begun_ms).isoformat(timespec="seconds"), chars=len(answer.shown),
        ran_on=answer.legs[-1].ran_on if answer.legs else "",
    )
