"""Runs a queued request at the peer it waits for, through the same thinker and guard as any other request.

The owner is not there: a question of the guard is kept for him instead of asked, and his later yes counts for exactly
the text that he was shown. Implements node.intents.ports.Upgrader. Must not know when a request is tried.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

import msgspec

from node.agent.heavy import answer_label
from node.agent.job_record import decode_job
from node.agent.ports import AUTO, ThinkJob, ThinkResult, TurnRecord
from node.agent.records import turn_row
from node.agent.repetition import RepeatedText
from node.clock import Clock
from node.daemon.owner import consent_payload
from node.errors import KithError
from node.intents.ports import Again, GaveUp, Outcome, Parked, Refused, Upgraded
from node.privacy.consent import ConsentAnswer, ConsentAsker, ConsentQuestion
from node.privacy.errors import EgressDenied, GuardFailed, LedgerFailed
from node.store import intents
from node.store.database import Database
from node.store.intents import Intent
from offload.errors import OffloadError
from offload.router import Choice, JobNeeds
from protocol.errors import ChannelError

__all__ = ["LaterConsent", "PeerUpgrader"]

log = logging.getLogger(__name__)


class LaterConsent:
    """Implements node.privacy.consent.ConsentAsker: asks the owner who is there, and for requests of the queue, whose
    owner is not, keeps the question until it is taken."""

    def __init__(self, database: Database, present: ConsentAsker) -> None:
        self._database = database
        self._present = present
        self._absent: set[str] = set()
        self._kept: dict[str, ConsentQuestion] = {}

    @contextmanager
    def for_later(self, intent_id: str) -> Iterator[None]:
        """Questions about this request are kept while in here."""
        self._absent.add(intent_id)
        try:
            yield
        finally:
            self._absent.discard(intent_id)
            self._kept.pop(intent_id, None)

    async def ask(self, question: ConsentQuestion) -> ConsentAnswer:
        """The owner's answer; for a request of the queue yes when he has allowed exactly this before, and else no."""
        if question.request_id not in self._absent:
            return await self._present.ask(question)
        intent = await self._database.read(intents.get, question.request_id)
        if intent is not None and intent.allowed_digest == question.digest:
            return ConsentAnswer(True, question.digest, "owner, from the queue")
        self._kept[question.request_id] = question
        return ConsentAnswer(False, question.digest, "owner, asked later")

    def kept(self, intent_id: str) -> ConsentQuestion | None:
        """The question that is kept for this request."""
        return self._kept.get(intent_id)


class Places(Protocol):
    """The thinker, as far as the queue needs it."""

    async def think(self, job: ThinkJob) -> ThinkResult:
        """The finished answer."""
        ...

    async def explain(self, job: ThinkJob) -> tuple[JobNeeds, Choice]:
        """Where the job would go now."""
        ...


class PeerUpgrader:
    """One per node. is_paired: whether a peer is still paired."""

    def __init__(
        self, places: Places, consent: LaterConsent, clock: Clock, is_paired: Callable[[str], bool],
    ) -> None:
        """places: a thinker that asks this very consent."""
        self._places = places
        self._consent = consent
        self._clock = clock
        self._is_paired = is_paired

    async def can_run(self, intent: Intent) -> bool:
        """Whether a peer would take it now; also when it can never run, so that run() says so."""
        job = _job(intent, _read)
        if job is None or not self._waits_for_somebody(intent):
            return True
        return await self._place(intent, job) is not None

    async def run(self, intent: Intent) -> Outcome:
        """Run it at the peer. What it says is for the owner; nothing of it is logged."""
        watch = RepeatedText()

        async def read(piece: str) -> bool:
            return not watch.feed(piece)

        job = _job(intent, read)
        if job is None:
            return GaveUp("what was asked can no longer be read")
        if not self._waits_for_somebody(intent):
            return GaveUp("the peer it waited for is no longer paired")
        with self._consent.for_later(intent.intent_id):
            try:
                place = await self._place(intent, job)
                if place is None:
                    return Again("nobody could take it")
                result = await self._places.think(replace(job, place=place))
            except EgressDenied as denied:
                return self._denied(intent, denied)
            except (KithError, OffloadError, ChannelError) as failure:
                return Again(str(failure))
            return self._upgraded(intent, job, result)

    def _upgraded(self, intent: Intent, job: ThinkJob, result: ThinkResult) -> Outcome:
        elsewhere = result.peer_id is not None and intent.place in (AUTO, result.peer_id)
        if not elsewhere or result.finish_reason in ("broken", "cancelled"):
            question = self._consent.kept(intent.intent_id)
            return Parked(*_parked(question)) if question is not None else Again(result.reason)
        turn = TurnRecord(
            "assistant", answer_label(result, job), self._clock.now(), result.ran_on,
            detail={"kind": "done", "reason": result.reason, "tools": []},
        )
        return Upgraded(turn_row(turn))

    def _denied(self, intent: Intent, denied: EgressDenied) -> Outcome:
        question = self._consent.kept(intent.intent_id)
        if question is not None:
            return Parked(*_parked(question))
        if isinstance(denied, GuardFailed | LedgerFailed):
            return Again(str(denied))
        return Refused(str(denied))

    def _waits_for_somebody(self, intent: Intent) -> bool:
        return intent.place == AUTO or self._is_paired(intent.place)

    async def _place(self, intent: Intent, job: ThinkJob) -> str | None:
        """The peer that would take it now; never this device."""
        _, choice = await self._places.explain(job)
        if choice.where == "peer":
            return choice.peer_id
        able = [one.peer_id for one in choice.candidates if one.able and one.peer_id is not None]
        return able[0] if able and intent.place == AUTO else None


def _job(intent: Intent, read: Callable[[str], Awaitable[bool]]) -> ThinkJob | None:
    """What was asked, as it was asked; None when the record is damaged or gone."""
    try:
        job = decode_job(intent.job, read)
    except (msgspec.MsgspecError, ValueError) as error:
        log.warning("a queued request cannot be read: %s", type(error).__name__)
        return None
    return replace(job, place=intent.place, model=intent.model, keep=False)


async def _read(piece: str) -> bool:
    return True


def _parked(question: ConsentQuestion) -> tuple[str, str]:
    payload = {"kind": "consent", **consent_payload(question)}
    return msgspec.json.encode(payload).decode(), f"{question.peer_name} is here; you decide what may leave"
