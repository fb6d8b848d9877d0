"""Questions the node puts to its owner - consent, approval, a pairing check - and the answers that come back over the
API.

A question has a deadline; unanswered means no. There is no "always". Must not know what a question is about or who
draws it:
the terminal and, later, the web page show `payload` and answer by id.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import trio

__all__ = ["NoSuchQuestion", "PendingQuestion", "Questions", "TooManyQuestions"]

MAX_PENDING = 64


class NoSuchQuestion(Exception):
    """That question is not open: it was answered, withdrawn, or its time ran out."""


class TooManyQuestions(Exception):
    """More questions are open than the owner can look at; this one was answered with no."""


@dataclass(slots=True)
class PendingQuestion:
    """One open question and its answer once there is one."""

    question_id: str
    kind: str
    payload: Mapping[str, Any]
    deadline_s: float
    answered: trio.Event = field(default_factory=trio.Event)
    reply: Mapping[str, Any] | None = None

    def as_event(self) -> dict[str, Any]:
        """The question as it goes to whoever may answer it."""
        return {
            "event": "question",
            "id": self.question_id,
            "kind": self.kind,
            "deadline_s": self.deadline_s,
            **self.payload,
        }


Listener = Callable[[Mapping[str, Any]], Awaitable[None]]


class Questions:
    """All open questions of the node. new_id gives fresh, unguessable ids."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._pending: dict[str, PendingQuestion] = {}
        self._listener: ContextVar[Listener | None] = ContextVar("kith_question_listener", default=None)

    def listen(self, listener: Listener) -> None:
        """Send the questions that arise in the current task, and in tasks it starts, to this listener."""
        self._listener.set(listener)

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """The same for the block."""
        before = self._listener.set(listener)
        try:
            yield
        finally:
            self._listener.reset(before)

    def pending(self) -> list[PendingQuestion]:
        """Open questions, oldest first."""
        return list(self._pending.values())

    async def ask(self, kind: str, payload: Mapping[str, Any], deadline_s: float) -> Mapping[str, Any] | None:
        """The owner's reply, or None when the deadline passed. Raises TooManyQuestions when too many are open."""
        if len(self._pending) >= MAX_PENDING:
            raise TooManyQuestions(f"{MAX_PENDING} questions are already open")
        question = PendingQuestion(self._new_id(), kind, payload, deadline_s)
        self._pending[question.question_id] = question
        try:
            listener = self._listener.get()
            with trio.move_on_after(deadline_s):
                if listener is not None:
                    await listener(question.as_event())
                await question.answered.wait()
            return question.reply
        finally:
            self._pending.pop(question.question_id, None)

    def answer(self, question_id: str, reply: Mapping[str, Any]) -> None:
        """Hand in the owner's reply. The first one counts. Raises NoSuchQuestion."""
        question = self._pending.get(question_id)
        if question is None or question.answered.is_set():
            raise NoSuchQuestion("that question is no longer open")
        question.reply = dict(reply)
        question.answered.set()
