"""A queued request at its peer: where it goes, what comes of every ending, and that a yes counts for one text only."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fixed import FixedClock

from node.agent.job_record import encode_job
from node.agent.ports import AUTO, ThinkJob, ThinkPart, ThinkResult
from node.daemon.upgrading import LaterConsent, PeerUpgrader
from node.errors import PeerUnreachable
from node.intents.ports import Again, GaveUp, Parked, Refused, Upgraded
from node.privacy.consent import ConsentAnswer, ConsentQuestion, OutgoingText
from node.privacy.errors import ConsentRefused, HoldsSecret, LedgerFailed
from node.privacy.labels import owner_text
from node.privacy.policy import Level, Purpose
from node.store import conversations, intents
from node.store.database import Database
from node.store.intents import Intent, IntentState
from node.store.schema import KITH

TALK, JOB, HOME, OTHER = "c" * 32, "a" * 32, "12D3KooWHome", "12D3KooWOther"


def question(text: str, digest: str, request_id: str = JOB) -> ConsentQuestion:
    return ConsentQuestion(
        "q", request_id, TALK, HOME, "home-pc", Purpose.INFER, Level.MASKED, "heavy work",
        (OutgoingText("user", text, "owner"),), ("vault",), (), 120.0, digest)


class Owner:
    """Sits at the terminal; must not be asked about requests of the queue."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, asked: ConsentQuestion) -> ConsentAnswer:
        self.asked.append(asked.request_id)
        return ConsentAnswer(True, asked.digest)


class Places:
    """A thinker whose guard asks before it answers."""

    def __init__(self, consent: LaterConsent) -> None:
        self.consent = consent
        self.asks: ConsentQuestion | None = None
        self.ending: Exception | None = None
        self.result = ThinkResult("better", "home-pc", "you named it", peer_id=HOME)
        self.jobs: list[ThinkJob] = []
        self.where = "peer"
        self.able: list[str | None] = [None, OTHER]

    async def explain(self, job: ThinkJob) -> Any:
        candidates = [SimpleNamespace(able=True, peer_id=one) for one in self.able]
        return None, SimpleNamespace(
            where=self.where, peer_id=HOME if self.where == "peer" else None, candidates=candidates)

    async def think(self, job: ThinkJob) -> ThinkResult:
        self.jobs.append(job)
        if self.asks is not None and not (await self.consent.ask(self.asks)).allowed:
            raise ConsentRefused
        if self.ending is not None:
            raise self.ending
        return self.result


class Bench:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.owner = Owner()
        self.consent = LaterConsent(database, self.owner)
        self.places = Places(self.consent)
        self.paired = {HOME}
        self.upgrader = PeerUpgrader(self.places, self.consent, FixedClock(), lambda peer: peer in self.paired)

    async def intent(self, place: str = HOME) -> Intent:
        async def read(text: str) -> bool:
            return True

        job = ThinkJob(JOB, TALK, (ThinkPart("user", owner_text("what is salt"), "request"),), read, keep=True)
        await self.database.write(
            intents.add, intent_id=JOB, key=JOB, conversation_id=TALK, place=place, model=None, title="",
            job=encode_job(job), reason="", now_ms=1, expires_ms=2**50)
        running = await self.database.write(intents.advance, JOB, IntentState.RUNNING, 2)
        assert running is not None
        return running


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    database = await Database.open(tmp_path / "kith.db", bytes(32), KITH)
    await database.write(conversations.create, TALK, 1, confidentiality=0, integrity=2)
    yield Bench(database)
    await database.close()


async def test_the_answer_becomes_a_turn_with_its_label(bench: Bench) -> None:
    outcome = await bench.upgrader.run(await bench.intent())
    assert isinstance(outcome, Upgraded)
    turn = outcome.turn
    assert (turn.role, turn.text, turn.ran_on, turn.integrity) == ("assistant", "better", "home-pc", 0)
    (job,) = bench.places.jobs
    assert (job.place, job.keep, job.job_id) == (HOME, False, JOB)
    assert [part.text.value for part in job.parts] == ["what is salt"]


@pytest.mark.parametrize(("place", "peer_id", "finish", "taken"), [
    (HOME, HOME, "stop", True), (HOME, HOME, "length", True), (HOME, OTHER, "stop", False), (HOME, None, "stop", False),
    (HOME, HOME, "broken", False), (AUTO, OTHER, "stop", True), (AUTO, None, "stop", False),
])
async def test_only_the_chosen_machine_s_whole_answer_is_an_upgrade(
    bench: Bench, place: str, peer_id: str | None, finish: str, taken: bool
) -> None:
    bench.places.result = replace(bench.places.result, peer_id=peer_id, finish_reason=finish)
    outcome = await bench.upgrader.run(await bench.intent(place))
    assert isinstance(outcome, Upgraded if taken else Again)


async def test_a_question_is_kept_and_a_later_yes_counts_for_exactly_its_text(bench: Bench) -> None:
    intent = await bench.intent()
    bench.places.asks = question("what is [PERSON_1]", "d1")
    outcome = await bench.upgrader.run(intent)
    assert isinstance(outcome, Parked)
    assert '"digest":"d1"' in outcome.question_json
    assert "what is [PERSON_1]" in outcome.question_json
    await bench.database.write(
        intents.advance, JOB, IntentState.NEEDS_CONSENT, 3, question=outcome.question_json)
    await bench.database.write(intents.advance, JOB, IntentState.WAITING, 4, allowed_digest="d1")
    allowed = await bench.database.write(intents.advance, JOB, IntentState.RUNNING, 5)
    assert allowed is not None
    assert isinstance(await bench.upgrader.run(allowed), Upgraded)
    bench.places.asks = question("what is [PERSON_1] and more", "d2")       # another text: another question
    assert isinstance(await bench.upgrader.run(allowed), Parked)
    assert bench.owner.asked == []


async def test_who_sits_at_the_terminal_is_asked_as_ever(bench: Bench) -> None:
    answer = await bench.consent.ask(question("hello", "d9", "b" * 32))
    assert (answer.allowed, bench.owner.asked) == (True, ["b" * 32])


@pytest.mark.parametrize(("ending", "kind"), [
    (HoldsSecret("a password"), Refused), (LedgerFailed("disk"), Again), (PeerUnreachable(), Again),
])
async def test_every_ending_has_its_outcome(bench: Bench, ending: Exception, kind: type) -> None:
    bench.places.ending = ending
    assert isinstance(await bench.upgrader.run(await bench.intent()), kind)


async def test_what_can_never_run_is_tried_once_to_say_so(bench: Bench) -> None:
    intent = await bench.intent()
    bench.paired.clear()
    assert await bench.upgrader.can_run(intent)
    assert isinstance(await bench.upgrader.run(intent), GaveUp)
    damaged = replace(intent, job=b"\xff")
    assert await bench.upgrader.can_run(damaged)
    assert isinstance(await bench.upgrader.run(damaged), GaveUp)


async def test_nobody_here_and_this_device_is_nobody(bench: Bench) -> None:
    intent = await bench.intent(AUTO)
    bench.places.where, bench.places.able = "here", [None]
    assert not await bench.upgrader.can_run(intent)
    assert isinstance(await bench.upgrader.run(intent), Again)
    bench.places.able = [None, OTHER]       # the router would rather answer here, but that is what we have already
    assert await bench.upgrader.can_run(intent)
    await bench.upgrader.run(intent)
    assert bench.places.jobs[-1].place == OTHER
    assert not await bench.upgrader.can_run(replace(intent, place=HOME))
