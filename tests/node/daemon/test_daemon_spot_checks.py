"""Spot checks: what is checked, when and how often, and what a verdict does."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from node.daemon.spot_checks import FIRST_CHECKS, FIRST_PAUSE_S, PAUSE_S, SpotChecks
from node.errors import StorageError
from node.store import settings
from node.store.database import Database
from node.store.schema import KITH
from offload.errors import NoModel
from offload.ports import ChatPrompt, GenerateRequest, Message, ModelInfo
from offload.workload import Ahead
from protocol.inference import InferRequest, Part, PromptParts, ToolOffer

BOB, DIGEST = "bob", "ab" * 32
IDS = tuple(range(40))
REQUEST = InferRequest(
    request_id=bytes(16), prompt=PromptParts((Part("system", "Be brief."), Part("user", "Why is the sky blue?"))),
    model_digest=DIGEST, max_tokens=64, deadline_s=60,
)


class Bench:
    def __init__(self, database: Database) -> None:
        self.loss = 0.0
        self.scored: list[tuple[GenerateRequest, tuple[int, ...]]] = []
        self.here = [ModelInfo(name="m", digest=DIGEST, size_bytes=1, context_tokens=2048)]
        self.load = Ahead(0, 0, 0.0)
        self.battery = False
        self.doubts: dict[str, str] = {}
        self.told: list[Any] = []
        self.failure: Exception | None = None
        self.checks = SpotChecks(
            self, lambda: self.load, database, self.doubts.__setitem__, self.told.append, lambda: self.battery)

    async def models(self) -> list[ModelInfo]:
        return self.here

    async def score(self, request: GenerateRequest, token_ids: Sequence[int]) -> tuple[list[float], list[float]]:
        if self.failure is not None:
            raise self.failure
        self.scored.append((request, tuple(token_ids)))
        return [-1.0 - self.loss] * len(token_ids), [-1.0] * len(token_ids)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    database = await Database.open(tmp_path / "kith.db", bytes(32), KITH)
    yield Bench(database)
    await database.close()


async def test_an_honest_peer_is_looked_at_and_left_alone(bench: Bench) -> None:
    bench.checks.note(BOB, DIGEST, REQUEST, IDS)
    verdict = await bench.checks.check_one()
    assert verdict is not None and verdict.fits
    ((request, ids),) = bench.scored
    assert ids == IDS[:32]
    assert (request.model, request.principal) == (DIGEST, "owner")
    # exactly what the peer was given: the parts as they left
    assert request.prompt == ChatPrompt((Message("system", "Be brief."), Message("user", "Why is the sky blue?")))
    assert bench.doubts == {BOB: ""}
    assert [(one["event"], one["peer_id"], one["fits"]) for one in bench.told] == [("spot_check", BOB, True)]


async def test_another_model_is_doubted_told_and_remembered_until_it_fits_again(bench: Bench) -> None:
    bench.loss = 0.3
    bench.checks.note(BOB, DIGEST, REQUEST, IDS)
    await bench.checks.check_one()
    words = "its answers are not those of m, which it names"
    assert bench.doubts == {BOB: words} and bench.told[-1]["fits"] is False
    again = Bench(bench.checks._database)
    await again.checks.recall([BOB, "nobody"])
    assert again.doubts == {BOB: words}
    again.checks.note(BOB, DIGEST, REQUEST, IDS)
    await again.checks.check_one()
    assert again.doubts == {BOB: ""}
    third = Bench(bench.checks._database)
    await third.checks.recall([BOB])
    assert third.doubts == {}


async def test_the_right_weights_for_one_model_do_not_clear_a_peer_of_another(bench: Bench) -> None:
    other = "cd" * 32
    bench.here = [*bench.here, ModelInfo(name="n", digest=other, size_bytes=1)]
    bench.loss = 0.3
    bench.checks.note(BOB, DIGEST, REQUEST, IDS)
    await bench.checks.check_one()
    words = "its answers are not those of m, which it names"
    bench.loss = 0.0
    bench.checks.note(BOB, other, msgspec.structs.replace(REQUEST, model_digest=other), IDS)
    verdict = await bench.checks.check_one()
    assert verdict is not None
    assert verdict.fits
    assert bench.doubts == {BOB: words}
    again = Bench(bench.checks._database)       # nor after a restart
    await again.checks.recall([BOB])
    again.here = bench.here
    again.checks.note(BOB, other, msgspec.structs.replace(REQUEST, model_digest=other), IDS)
    await again.checks.check_one()
    assert again.doubts == {BOB: words}
    again.checks.note(BOB, DIGEST, REQUEST, IDS)      # the control: the very model does
    await again.checks.check_one()
    assert again.doubts == {BOB: ""}


@pytest.mark.parametrize(("kept", "words"), [
    ("its answers are not those of m, which it names", "its answers are not those of m, which it names"),
    ("[1]", "[1]"), ('{"ab": "not m"}', "not m"), ("{}", None),
])
async def test_whatever_was_kept_of_a_doubt_is_read(bench: Bench, kept: str, words: str | None) -> None:
    await bench.checks._database.write(settings.put, "doubt:bob", kept)
    await bench.checks.recall([BOB])
    assert bench.doubts.get(BOB) == words


@pytest.mark.parametrize(("changes", "ids"), [
    ({"temperature": 0.7}, IDS),
    ({"tools": (ToolOffer("a", "b", "{}"),)}, IDS),
    ({"thinking_tokens": 9}, IDS),
    ({"text_so_far": "x", "resume_cursor": 1}, IDS),
    ({"prompt": PromptParts((Part("user", "x" * 5000),))}, IDS),
    ({}, IDS[:5]),
    ({}, ()),
])
async def test_what_says_little_or_costs_much_is_not_checked(
    bench: Bench, changes: dict[str, Any], ids: tuple[int, ...]
) -> None:
    bench.checks.note(BOB, DIGEST, msgspec.structs.replace(REQUEST, **changes), ids)
    assert await bench.checks.check_one() is None and bench.scored == []


async def test_without_the_same_model_or_with_one_that_fails_nothing_is_said(bench: Bench) -> None:
    bench.here = [ModelInfo(name="other", digest="cd" * 32, size_bytes=1)]
    bench.checks.note(BOB, DIGEST, REQUEST, IDS)
    assert await bench.checks.check_one() is None
    bench.here, bench.failure = [ModelInfo(name="m", digest=DIGEST, size_bytes=1)], NoModel()
    bench.checks.note("cara", DIGEST, REQUEST, IDS)
    assert await bench.checks.check_one() is None
    assert bench.doubts == {} and bench.told == []


async def test_a_disk_that_keeps_no_verdict_ends_nothing(
    bench: Bench, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def full(*args: Any) -> None:
        raise StorageError("The disk is full.")

    monkeypatch.setattr(bench.checks._database, "write", full)
    bench.loss = 0.3
    async with trio.open_nursery() as nursery:
        await nursery.start(bench.checks.run)
        for _ in range(2):
            bench.checks.note(BOB, DIGEST, REQUEST, IDS)
            await trio.sleep(FIRST_PAUSE_S + 10)
        nursery.cancel_scope.cancel()
    assert len(bench.scored) == 2
    assert bench.doubts[BOB]  # it holds all the same, in this life of the node


async def test_it_happens_when_idle_and_seldom(bench: Bench, autojump_clock: trio.testing.MockClock) -> None:
    async def keep_noting() -> None:
        while True:
            bench.checks.note(BOB, DIGEST, REQUEST, IDS)
            await trio.sleep(1)

    bench.checks._judge = _nothing  # type: ignore[method-assign]  # it writes to the database, in a thread
    async with trio.open_nursery() as nursery:
        await nursery.start(bench.checks.run)
        nursery.start_soon(keep_noting)
        bench.load = Ahead(1, 0, 2.0)
        await trio.sleep(100)
        assert bench.scored == []
        bench.load, bench.battery = Ahead(0, 0, 0.0), True
        await trio.sleep(100)
        assert bench.scored == []
        bench.battery = False
        await trio.sleep((FIRST_CHECKS - 1) * FIRST_PAUSE_S + 20)
        first = len(bench.scored)
        await trio.sleep(10 * PAUSE_S)
        nursery.cancel_scope.cancel()
    assert first == FIRST_CHECKS
    assert 9 <= len(bench.scored) - first <= 11


async def _nothing(*_: Any) -> None:
    await trio.lowlevel.checkpoint()


async def test_a_forgotten_peer_is_not_looked_at(bench: Bench) -> None:
    bench.checks.note(BOB, DIGEST, REQUEST, IDS)
    bench.checks.forget(BOB)
    assert await bench.checks.check_one() is None
