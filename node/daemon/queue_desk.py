"""The queue for the owner: what waits, for whom and why; taking back, deciding, clearing. Implements
node.api.queue_ports.Queue, and tells all who follow when something changes.

What is told names no text: ids, states and counts. Must not know how a request is run.
"""

import json
import logging
from collections.abc import Callable
from typing import Any

from node.agent.ports import Answer, AnswerKind
from node.api.events import Events
from node.api.queue_views import ClearedView, QueuedDetail, QueuedView
from node.clock import Clock, from_ms, to_ms
from node.daemon.drafting import short_id
from node.errors import KithError
from node.intents.driver import IntentQueue
from node.store import conversations, intents
from node.store.conversations import Turn
from node.store.database import Database
from node.store.intents import Intent, IntentState

__all__ = ["QueueDesk", "QueueTeller"]

log = logging.getLogger(__name__)


class QueueTeller:
    """Implements node.intents.ports.Teller: an event for everybody, a notice on the desktop for what the owner waits
    for."""

    def __init__(self, events: Events, notify: Callable[[str], None], clock: Clock) -> None:
        self._events = events
        self._notify = notify
        self._clock = clock

    def intent_changed(self, intent: Intent) -> None:
        """Tell it."""
        log.info("a queued request is %s", intent.state)
        self._events.publish({
            "event": "intent", "at": self._clock.now().isoformat(timespec="milliseconds"), "id": intent.intent_id,
            "state": intent.state.value, "conversation_id": intent.conversation_id,
        })
        name = short_id(intent.intent_id)
        if intent.state is IntentState.DONE:
            self._notify(f"A better answer has come. See it with: kith queue show {name}")
        elif intent.state is IntentState.NEEDS_CONSENT:
            self._notify(f"A request waits for your yes. See it with: kith queue answer {name}")


class QueueDesk:
    """The owner's side of the queue."""

    def __init__(
        self, queue: IntentQueue, database: Database, clock: Clock, name_of: Callable[[str], str],
    ) -> None:
        self._queue = queue
        self._database = database
        self._clock = clock
        self._name_of = name_of

    async def all(self, limit: int) -> list[QueuedView]:
        """Live ones first, then the newest settled ones."""
        return [self._view(one) for one in await self._database.read(intents.listed, limit=limit)]

    async def one(self, name: str) -> QueuedDetail:
        """One with its texts; looking at its answer makes it no longer new. Raises NoSuchIntent."""
        intent = await self._queue.find(name)
        turn = await self._database.read(conversations.upgraded, intent.conversation_id, intent.intent_id)
        draft, answer = _texts(turn)
        if intent.state is IntentState.DONE and intent.seen_ms is None:
            try:
                await self._database.write(intents.mark_seen, intent.intent_id, to_ms(self._clock.now()))
            except KithError as error:
                log.warning("an answer that is shown could not be marked as seen: %s", error.code)
        return QueuedDetail(queued=self._view(intent), draft=draft, answer=answer, question=_question(intent))

    async def answer_to(self, request_id: str) -> Answer | None:
        """What a request of this id was answered with, as far as it has come; None when it was never queued."""
        intent = await self._database.read(intents.get, request_id)
        if intent is None:
            return None
        turn = await self._database.read(conversations.upgraded, intent.conversation_id, intent.intent_id)
        done = intent.state is IntentState.DONE
        return Answer(
            turn.text if turn else "", AnswerKind.DONE if done else AnswerKind.DRAFT, turn.ran_on if turn else "",
            f"asked before; its request {short_id(request_id)} is {intent.state}", intent.conversation_id,
            intent_id="" if done else intent.intent_id,
        )

    async def cancel(self, name: str) -> QueuedView:
        """Take one back. Raises NoSuchIntent, IntentSettled."""
        return self._view(await self._queue.cancel(name))

    async def decide(self, name: str, *, allow: bool, digest: str) -> QueuedView:
        """The owner's answer to what one waits with. Raises NoSuchIntent, NothingToDecide."""
        question = _question(await self._queue.find(name)) or {}
        asked = str(question.get("digest", ""))
        return self._view(await self._queue.decide(name, allow=allow, digest=digest, asked=asked))

    async def clear(self) -> ClearedView:
        """Remove settled ones."""
        return ClearedView(removed=await self._database.write(intents.clear))

    def _view(self, intent: Intent) -> QueuedView:
        return QueuedView(
            intent_id=intent.intent_id, key=intent.key, state=intent.state.value, text=intent.title,
            wants="" if intent.place == "auto" else self._name_of(intent.place), model=intent.model,
            reason=intent.reason, attempts=intent.attempts, created=_at(intent.created_ms),
            expires=_at(intent.expires_ms), conversation_id=intent.conversation_id, ran_on=intent.ran_on,
            new=intent.state is IntentState.DONE and intent.seen_ms is None,
        )


def _texts(turn: Turn | None) -> tuple[str, str]:
    """Draft and better answer; empty where there is none."""
    if turn is None:
        return "", ""
    detail = json.loads(turn.detail)
    if not detail.get("upgraded"):
        return turn.text, ""
    draft = detail.get("draft")
    return (draft["text"] if draft else ""), turn.text


def _question(intent: Intent) -> dict[str, Any] | None:
    if intent.state is not IntentState.NEEDS_CONSENT or not intent.question:
        return None
    question: dict[str, Any] = json.loads(intent.question)
    return question


def _at(ms: int) -> str:
    return from_ms(ms).isoformat(timespec="seconds")
