"""The running queue over a real database: a scripted upgrader in place of peers, a mock clock, restarts."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from fixed import FixedClock, SeededEntropy
from trio.testing import MockClock

from node.errors import StorageError
from node.intents.driver import MOST_WAITING, IntentQueue, NewIntent
from node.intents.errors import IntentSettled, NoSuchIntent, NothingToDecide, QueueFull
from node.intents.ports import Again, GaveUp, Outcome, Parked, Refused, Upgraded
from node.store import conversations, intents
from node.store.conversations import Turn
from node.store.database import Database
from node.store.intents import Intent, IntentState
from node.store.schema import KITH

TALK = "c" * 32
A, B = "a" * 32, "b" * 32
FAR_MS = 2**50
S = IntentState


def answer(text: str = "better") -> Upgraded:
    return Upgraded(Turn("assistant", text, 0, 2, 50, "home-pc", detail='{"kind": "done"}'))


class Scripted:
    """An upgrader that plays outcomes; an exception is raised, a callable is awaited."""

    def __init__(self, *script: Outcome | Exception | Callable[[], Awaitable[Outcome]]) -> None:
        self.script = list(script)
        self.here = True
        self.looks = 0
        self.runs: list[str] = []
        self.cancelled = 0

    async def can_run(self, intent: Intent) -> bool:
        self.looks += 1
        return self.here

    async def run(self, intent: Intent) -> Outcome:
        self.runs.append(intent.intent_id)
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        if callable(step):
            try:
                return await step()
            except trio.Cancelled:
                self.cancelled += 1
                raise
        return step


class Told:
    """Remembers every change."""

    def __init__(self) -> None:
        self.states: list[tuple[str, str]] = []

    def intent_changed(self, intent: Intent) -> None:
        self.states.append((intent.intent_id[0], intent.state.value))


class Bench:
    """One queue over one file; again() is the node after a restart."""

    def __init__(self, path: Path, upgrader: Scripted) -> None:
        self.path = path
        self.upgrader = upgrader
        self.clock = FixedClock()
        self.told = Told()

    @asynccontextmanager
    async def running(self, *, driven: bool = True) -> AsyncIterator[IntentQueue]:
        self.database = await Database.open(self.path, bytes(32), KITH)
        try:
            if await self.database.read(conversations.get, TALK) is None:
                await self.database.write(conversations.create, TALK, 1, confidentiality=0, integrity=2)
            queue = IntentQueue(self.database, self.upgrader, self.clock, SeededEntropy(), self.told)
            async with trio.open_nursery() as nursery:
                if driven:
                    await nursery.start(queue.run)
                yield queue
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await self.database.close()

    async def state(self, name: str = A) -> str:
        found = await self.database.read(intents.get, name)
        return found.state.value if found else "gone"

    async def until(self, state: str, name: str = A) -> None:
        # bounded by a count: a deadline would be jumped to while the database's thread is still at work
        for _ in range(600):
            if await self.state(name) == state:
                return
            await trio.sleep(0.5)
        raise AssertionError(f"{name} never became {state}")

    async def texts(self) -> list[str]:
        return [turn.text for turn in await self.database.read(conversations.turns, TALK)]


def new(name: str = A, *, key: str = "", expires_ms: int = FAR_MS) -> NewIntent:
    return NewIntent(
        intent_id=name, key=key or name, conversation_id=TALK, place="auto", model=None, title="t", job=b"job",
        reason="away", expires_ms=expires_ms)


Making = Callable[..., Bench]


@pytest.fixture
def bench(tmp_path: Path, autojump_clock: MockClock) -> Making:
    return lambda *script: Bench(tmp_path / "kith.db", Scripted(*script))


async def test_the_answer_comes_once_and_everybody_is_told(bench: Making, autojump_clock: MockClock) -> None:
    made = bench(answer())
    async with made.running() as queue:
        await queue.add(new())
        await made.until("done")
        await trio.sleep(3600)
        assert await made.texts() == ["better"]
        assert made.upgrader.runs == [A]
        assert made.told.states == [("a", "waiting"), ("a", "running"), ("a", "done")]


async def test_held_until_released_and_not_tried_while_nobody_is_here(bench: Making, autojump_clock: MockClock) -> None:
    made = bench(answer())
    async with made.running() as queue:
        made.upgrader.here = False
        await queue.add(new(), held=True)
        await trio.sleep(600)
        assert made.upgrader.looks == 0
        queue.release(A)
        await trio.sleep(1)
        assert (made.upgrader.looks, made.upgrader.runs) == (1, [])
        made.upgrader.here = True
        queue.changed()
        await made.until("done")


async def test_failures_are_tried_again_with_pauses_and_a_bug_ends_nothing(
    bench: Making, autojump_clock: MockClock
) -> None:
    made = bench(Again("busy"), RuntimeError("a bug"), Again("died"), answer())
    async with made.running() as queue:
        began_s = trio.current_time()
        await queue.add(new())
        await made.until("done")
        assert trio.current_time() - began_s > 10           # 2 + 4 + 8 s, less a fifth
        assert len(made.upgrader.runs) == 4
        assert await made.texts() == ["better"]


async def test_a_question_waits_for_the_owner_over_a_restart_and_its_answer_releases_it(
    bench: Making, autojump_clock: MockClock
) -> None:
    made = bench(Parked('{"digest": "d1"}', "you decide"), answer())
    async with made.running() as queue:
        await queue.add(new())
        await made.until("needs_consent")
        await trio.sleep(3600)
    async with made.running() as queue:
        await trio.sleep(3600)
        assert made.upgrader.runs == [A]                    # nobody is asked twice
        for digest, asked in (("d2", "d1"), ("", "")):
            with pytest.raises(NothingToDecide):
                await queue.decide(A, allow=True, digest=digest, asked=asked)
        allowed = await queue.decide(A, allow=True, digest="d1", asked="d1")
        assert (allowed.state, allowed.allowed_digest, allowed.question) == (S.WAITING, "d1", None)
        await made.until("done")
        with pytest.raises(NothingToDecide):
            await queue.decide(A, allow=True, digest="d1", asked="d1")


async def test_no_is_the_end_and_so_is_what_can_never_be(bench: Making, autojump_clock: MockClock) -> None:
    made = bench(Parked('{"digest": "d1"}', "you decide"), Refused("holds a secret"), GaveUp("not paired any more"))
    async with made.running() as queue:
        await queue.add(new(A))
        await made.until("needs_consent")
        await queue.decide(A, allow=False, digest="d1", asked="d1")
        await queue.add(new(B))
        await made.until("refused", B)
        await queue.add(new("d" * 32))
        await made.until("failed", "d" * 32)
        await trio.sleep(3600)
        assert await made.state(A) == "refused"
        assert len(made.upgrader.runs) == 3
        assert await made.texts() == []


async def test_taken_back_while_it_runs_ends_the_run_and_writes_nothing(
    bench: Making, autojump_clock: MockClock
) -> None:
    async def long() -> Outcome:
        await trio.sleep_forever()
        raise AssertionError

    made = bench(long)
    async with made.running() as queue:
        await queue.add(new())
        await made.until("running")
        assert (await queue.cancel("aaaa")).state is S.CANCELLED
        await trio.sleep(1)
        assert made.upgrader.cancelled == 1
        with pytest.raises(IntentSettled):
            await queue.cancel(A)
        with pytest.raises(NoSuchIntent):
            await queue.cancel("f")
        await trio.sleep(3600)
        assert (await made.state(), await made.texts()) == ("cancelled", [])


async def test_an_answer_that_arrives_with_the_cancel_is_dropped(bench: Making, autojump_clock: MockClock) -> None:
    made = bench()

    async def answered_anyway() -> Outcome:
        await made.database.write(intents.advance, A, S.CANCELLED, 1)      # the owner was quicker by one commit
        return answer("too late")

    made.upgrader.script.append(answered_anyway)
    async with made.running() as queue:
        await queue.add(new())
        await made.until("cancelled")
        await trio.sleep(60)
        assert await made.texts() == []


async def test_a_restart_in_the_middle_tries_it_again(
    bench: Making, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "node.intents.driver")
    async def long() -> Outcome:
        await trio.sleep_forever()
        raise AssertionError

    made = bench(long, answer())
    async with made.running() as queue:
        await queue.add(new())
        await made.until("running")
    assert "being answered" not in caplog.text      # the first start found none and says nothing
    async with made.running():
        await made.until("done")
        assert await made.texts() == ["better"]
    assert "1 queued request was being answered when the node was stopped" in caplog.text


async def test_time_runs_out(bench: Making, autojump_clock: MockClock) -> None:
    made = bench()
    made.upgrader.here = False
    async with made.running() as queue:
        now_ms = int(made.clock.now().timestamp() * 1000)
        await queue.add(new(expires_ms=now_ms + 60_000))
        made.clock.advance(61)
        await trio.sleep(120)
        assert await made.state() == "expired"
        assert made.told.states[-1] == ("a", "expired")
        looks = made.upgrader.looks
        await trio.sleep(3600)
        assert made.upgrader.looks == looks


async def test_a_disk_that_fails_for_a_while_loses_nothing(bench: Making, autojump_clock: MockClock) -> None:
    made = bench(answer("lost to the disk"), answer())
    async with made.running() as queue:
        write, failures = made.database.write, 1

        async def failing(function, /, *args, **kwargs):
            nonlocal failures
            if function is intents.settle and failures:
                failures -= 1
                raise StorageError("The disk is full.")
            return await write(function, *args, **kwargs)

        made.database.write = failing
        await queue.add(new())
        await made.until("done")
        assert await made.texts() == ["better"]


async def test_a_bug_on_the_way_to_a_place_ends_nothing(bench: Making, autojump_clock: MockClock) -> None:
    made = bench(answer())
    can_run, bugs = made.upgrader.can_run, 2

    async def failing(intent: Intent) -> bool:
        nonlocal bugs
        if bugs:
            bugs -= 1
            raise ValueError("a bug, or an engine's own error")
        return await can_run(intent)

    made.upgrader.can_run = failing  # type: ignore[method-assign]
    async with made.running() as queue:
        await queue.add(new())
        await made.until("done")
        assert bugs == 0


async def test_the_same_key_is_one_request_and_there_is_an_end_to_waiting(
    bench: Making, autojump_clock: MockClock
) -> None:
    made = bench()
    async with made.running(driven=False) as queue:
        first = await queue.add(new(A, key="mine"))
        assert (await queue.add(new(B, key="mine"))).intent_id == first.intent_id
        assert made.told.states == [("a", "waiting")]

        def fill(tx) -> None:
            for number in range(MOST_WAITING):
                intents.add(tx, intent_id=f"{number:032x}", key=f"{number}", conversation_id=TALK, place="auto",
                            model=None, title="", job=b"", reason="", now_ms=1, expires_ms=FAR_MS)

        await made.database.write(fill)
        with pytest.raises(QueueFull):
            await queue.add(new(B))
