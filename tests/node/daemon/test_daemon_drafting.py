"""What is drafted and queued, and what fails as before: the wrapper around the node's thinker, over a real queue."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from fixed import FixedClock, SeededEntropy

from node.agent.job_record import decode_job
from node.agent.ports import AUTO, LOCAL, ThinkJob, ThinkPart, ThinkResult, Wait
from node.daemon.drafting import DraftingThinker
from node.daemon.thinker import ThinkFailed
from node.errors import KithError, ModelMissing, PeerUnreachable, UnknownPeer
from node.intents.driver import IntentQueue
from node.privacy.errors import ConsentRefused, ConsentUnanswered
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, owner_text
from node.store import conversations, intents
from node.store.database import Database
from node.store.intents import Intent, IntentState
from node.store.schema import KITH

TALK, JOB = "c" * 32, "a" * 32
HOME = "12D3KooWHome"
AWAY = PeerUnreachable("home-pc is not reachable now.")
MINE = Labeled("Dana's letter", Confidentiality.PERSONAL, Integrity.LOCAL, "file:letter", (Value("Dana", "PERSON"),))


class Thinker:
    """Fails as told for other places; drafts locally."""

    def __init__(self, failure: Exception | None = None, *, model: bool = True, says_first: str = "") -> None:
        self.failure = failure
        self.model = model
        self.says_first = says_first
        self.jobs: list[ThinkJob] = []
        self.result = ThinkResult("an answer", "phone", "no peer is paired")

    async def think(self, job: ThinkJob) -> ThinkResult:
        self.jobs.append(job)
        if job.place == LOCAL:
            if not self.model:
                raise ModelMissing
            await job.on_text("a draft")
            return ThinkResult("a draft", "phone", "you asked for this device only")
        if self.says_first:
            await job.on_text(self.says_first)
        if self.failure is not None:
            raise self.failure
        return self.result


class Peers:
    def __init__(self) -> None:
        self.absent = ["home-pc"]

    def find(self, name: str) -> str:
        if name != "home-pc":
            raise UnknownPeer
        return HOME

    def away(self) -> list[str]:
        return self.absent


class Nobody:
    async def can_run(self, intent: Intent) -> bool:
        return False

    async def run(self, intent: Intent) -> object:
        raise AssertionError("nothing runs in these tests")

    def intent_changed(self, intent: Intent) -> None:
        pass


class Bench:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.queue = IntentQueue(database, Nobody(), FixedClock(), SeededEntropy(), Nobody())  # type: ignore[arg-type]
        self.peers = Peers()
        self.shown: list[str] = []
        self.notes: list[str] = []

    def over(self, thinker: Thinker, policy: str = "named") -> DraftingThinker:
        return DraftingThinker(
            thinker, self.queue, self.peers, FixedClock(), node_name="phone", policy=policy, keep_days=7)

    def job(self, place: str = AUTO, *, wait: Wait = "auto", model: str | None = None) -> ThinkJob:
        async def on_text(text: str) -> bool:
            self.shown.append(text)
            return True

        async def on_note(text: str) -> None:
            self.notes.append(text)

        parts = (ThinkPart("user", owner_text("explain  this\nletter"), "request"), ThinkPart("user", MINE, "file"))
        return ThinkJob(
            JOB, TALK, parts, on_text, place=place, model=model, wait=wait, on_note=on_note, keep=True)

    async def queued(self) -> list[Intent]:
        return await self.database.read(intents.live)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    database = await Database.open(tmp_path / "kith.db", bytes(32), KITH)
    await database.write(conversations.create, TALK, 1, confidentiality=0, integrity=2)
    yield Bench(database)
    await database.close()


async def test_a_named_peer_that_is_away_gets_it_later_and_the_owner_a_draft_now(bench: Bench) -> None:
    thinker = Thinker(AWAY)
    result = await bench.over(thinker).think(bench.job("home-pc"))
    (intent,) = await bench.queued()
    assert (result.text, result.ran_on, result.intent_id) == ("a draft", "phone", JOB)
    assert bench.shown == ["a draft"]
    assert result.reason == "home-pc is not reachable now; this is a draft, the better answer is queued as aaaaaaaa"
    assert bench.notes == ["home-pc is not reachable now; queued as aaaaaaaa, and drafted here"]
    assert (intent.place, intent.state, intent.title) == (HOME, IntentState.WAITING, "explain this letter")
    assert intent.expires_ms - intent.created_ms == 7 * 86_400_000

    async def read(text: str) -> bool:
        return True

    kept = decode_job(intent.job, read)
    assert [part.text for part in kept.parts] == [owner_text("explain  this\nletter"), MINE]    # every label with it
    assert [job.keep for job in thinker.jobs] == [True, False]      # a restart must not bring the draft back as well


@pytest.mark.parametrize(("failure", "place", "wait", "model", "absent", "queued"), [
    (AWAY, "home-pc", "auto", None, ["home-pc"], True),
    (ConsentUnanswered("120 s"), "home-pc", "auto", None, [], True),
    (ConsentRefused(), "home-pc", "auto", None, [], False),
    (AWAY, "home-pc", "never", None, ["home-pc"], False),
    (ModelMissing("not here"), AUTO, "auto", "big", ["home-pc"], True),
    (ThinkFailed("nowhere"), AUTO, "auto", "big", ["home-pc"], True),
    (ModelMissing("not here"), AUTO, "auto", "big", [], False),
    (ModelMissing("not here"), AUTO, "auto", None, ["home-pc"], False),
    (ModelMissing("not here"), AUTO, "never", "big", ["home-pc"], False),
    (UnknownPeer(), "attic", "auto", None, [], False),
])
async def test_what_waits_and_what_fails_as_before(
    bench: Bench, failure: KithError, place: str, wait: Wait, model: str | None, absent: list[str], queued: bool
) -> None:
    bench.peers.absent = absent
    drafting, job = bench.over(Thinker(failure)), bench.job(place, wait=wait, model=model)
    if queued:
        result = await drafting.think(job)
        assert result.intent_id == JOB
        assert result.waits_for == ("consent" if isinstance(failure, ConsentUnanswered) else "peer")
        assert len(await bench.queued()) == 1
    else:
        with pytest.raises(type(failure)):
            await drafting.think(job)
        assert await bench.queued() == []


async def test_never_is_never_and_later_is_in_any_case(bench: Bench) -> None:
    with pytest.raises(PeerUnreachable):
        await bench.over(Thinker(AWAY), "never").think(bench.job("home-pc"))
    thinker = Thinker()
    result = await bench.over(thinker, "never").think(bench.job(wait="later"))
    assert (result.text, result.intent_id, result.waits_for) == ("a draft", JOB, "time")
    assert [job.place for job in thinker.jobs] == [LOCAL]           # nobody else was even asked
    assert (await bench.queued())[0].place == AUTO


async def test_an_answer_that_has_begun_is_not_begun_anew(bench: Bench) -> None:
    with pytest.raises(PeerUnreachable):
        await bench.over(Thinker(AWAY, says_first="Salt is")).think(bench.job("home-pc"))
    assert await bench.queued() == []


async def test_what_nobody_better_was_here_for_is_queued_if_the_owner_wants_that(bench: Bench) -> None:
    thinker = Thinker()
    thinker.result = replace(thinker.result, draft=True)
    assert (await bench.over(thinker, "named").think(bench.job())).intent_id == ""
    assert await bench.queued() == []
    result = await bench.over(thinker, "away").think(bench.job())
    assert (result.text, result.intent_id) == ("an answer", JOB)
    assert (await bench.queued())[0].place == AUTO


async def test_without_a_model_here_it_is_queued_all_the_same(bench: Bench) -> None:
    result = await bench.over(Thinker(AWAY, model=False)).think(bench.job("home-pc"))
    assert result.text == "There is no draft: this device has no model of its own."
    assert (result.intent_id, bench.shown) == (JOB, [result.text])


async def test_it_may_run_once_the_draft_is_stored_or_never_will_be(bench: Bench) -> None:
    drafting, released = bench.over(Thinker(AWAY)), []
    bench.queue.release = released.append  # type: ignore[method-assign]
    with drafting.storing():
        await drafting.think(bench.job("home-pc"))
        assert released == []
    assert released == [JOB]
    with trio.CancelScope() as scope, drafting.storing():
        await drafting.think(bench.job("home-pc"))
        scope.cancel()                                  # the reader left
        await trio.lowlevel.checkpoint()
    assert released == [JOB, JOB]
