"""Answers at once what cannot be answered where it should be: a draft by this device's own model, and the request
queued for its better answer.

    asked --later, or the peer it names is away, or nobody consented in time, or only an absent peer can have the model
        -> queued durably first, then drafted here; the queue may run it once the draft stands in its conversation

Implements node.agent.ports.Thinker over the node's own one. Must not know when and how the queue runs a request.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

from node.agent.job_record import encode_job
from node.agent.ports import AUTO, LOCAL, Thinker, ThinkJob, ThinkResult
from node.clock import Clock, to_ms
from node.daemon.thinker import ThinkFailed
from node.errors import KithError, ModelMissing, PeerUnreachable
from node.intents.driver import IntentQueue, NewIntent
from node.privacy.errors import ConsentUnanswered
from node.store.intents import Intent

__all__ = ["DraftingThinker", "short_id"]

TITLE_CHARS = 80
SHORT_ID_CHARS = 8


class KnownPeers(Protocol):
    """The paired peers."""

    def find(self, name: str) -> str:
        """The id of the peer called so. Raises UnknownPeer, AmbiguousPeer."""
        ...

    def away(self) -> list[str]:
        """The names of those that are not here."""
        ...


def short_id(intent_id: str) -> str:
    """An id as the owner reads and types it."""
    return intent_id[:SHORT_ID_CHARS]


class DraftingThinker:
    """One per node. policy: "named", "away" or "never", as the setting intents.queue has it."""

    def __init__(
        self, thinker: Thinker, queue: IntentQueue, peers: KnownPeers, clock: Clock, *, node_name: str, policy: str,
        keep_days: int,
    ) -> None:
        self._thinker = thinker
        self._queue = queue
        self._peers = peers
        self._clock = clock
        self._node_name = node_name
        self._policy = policy
        self._keep = timedelta(days=keep_days)
        self._drafts: ContextVar[list[str] | None] = ContextVar("kith_drafts", default=None)

    @contextmanager
    def storing(self) -> Iterator[None]:
        """What is queued by this task in here may run once the block is left: then its draft is stored, or never."""
        begun: list[str] = []
        token = self._drafts.set(begun)
        try:
            yield
        finally:
            self._drafts.reset(token)
            for intent_id in begun:
                self._queue.release(intent_id)

    async def think(self, job: ThinkJob) -> ThinkResult:
        """The answer from where it should come, or a draft with the id of its queued request.

        Raises what the node's own thinker raises, and QueueFull.
        """
        if job.wait == "later" and job.place != LOCAL:
            return await self._draft(job, "you asked for the better answer later", "time")
        shown = _Shown(job.on_text)
        try:
            result = await self._thinker.think(replace(job, on_text=shown.feed))
        except (PeerUnreachable, ConsentUnanswered, ModelMissing, ThinkFailed) as failure:
            if shown.any or not self._waits(job, failure):
                raise
            waits_for = "consent" if isinstance(failure, ConsentUnanswered) else "peer"
            return await self._draft(job, str(failure).rstrip("."), waits_for)
        if result.draft and self._policy == "away" and job.wait == "auto" and job.place == AUTO:
            intent = await self._put(job, "nobody better was here", held=True)
            return replace(
                result, reason=_promise(result.reason, intent), intent_id=intent.intent_id, waits_for="time")
        return result

    def _waits(self, job: ThinkJob, failure: KithError) -> bool:
        """Whether this failure is one that time may heal, and the owner wants to wait for that."""
        if job.wait == "never" or self._policy == "never" or job.place == LOCAL:
            return False
        if job.place != AUTO:
            return isinstance(failure, PeerUnreachable | ConsentUnanswered)
        return job.model is not None and not isinstance(failure, ConsentUnanswered) and bool(self._peers.away())

    async def _draft(self, job: ThinkJob, why: str, waits_for: str) -> ThinkResult:
        intent = await self._put(job, why, held=True)
        if job.on_note is not None:
            await job.on_note(f"{why}; queued as {short_id(intent.intent_id)}, and drafted here")
        # not kept over a restart: the queue then brings the better answer, and two would stand there
        here = replace(job, place=LOCAL, model=None, wait="never", keep=False)
        try:
            draft = await self._thinker.think(here)
        except ModelMissing:
            text = "There is no draft: this device has no model of its own."
            await job.on_text(text)
            draft = ThinkResult(text, self._node_name, "no model on this device")
        return replace(draft, reason=_promise(why, intent), intent_id=intent.intent_id, waits_for=waits_for)

    async def _put(self, job: ThinkJob, why: str, *, held: bool) -> Intent:
        place = AUTO if job.place == AUTO else self._peers.find(job.place)
        now = self._clock.now()
        intent = await self._queue.add(NewIntent(
            intent_id=job.job_id, key=job.job_id, conversation_id=job.conversation_id, place=place, model=job.model,
            title=_title(job), job=encode_job(replace(job, place=place)), reason=why,
            expires_ms=to_ms(now + self._keep),
        ), held=held)
        begun = self._drafts.get()
        if begun is None:
            self._queue.release(intent.intent_id)
        else:
            begun.append(intent.intent_id)
        return intent


class _Shown:
    """Knows whether the owner has read anything yet."""

    def __init__(self, on_text: Callable[[str], Awaitable[bool]]) -> None:
        self._on_text = on_text
        self.any = False

    async def feed(self, text: str) -> bool:
        self.any = self.any or bool(text)
        return await self._on_text(text)


def _title(job: ThinkJob) -> str:
    asked = [part.text.value for part in job.parts if part.name == "request"]
    return " ".join(asked[-1].split())[:TITLE_CHARS] if asked else ""


def _promise(why: str, intent: Intent) -> str:
    name = short_id(intent.intent_id)
    return f"{why}; this is a draft, the better answer is queued as {name}"
