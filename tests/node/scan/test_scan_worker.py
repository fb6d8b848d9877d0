"""The scan worker with its real process: vectors in order, deaths survived, limits kept, nothing running when idle."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from node.scan import client as client_module
from node.scan.client import ScanWorker
from node.scan.errors import ScanBusy, ScanTooLarge, ScanTooLate, ScanUnavailable
from offload.child.box import HELD
from offload.child.errors import ChildGone
from offload.child.policy import RestartPolicy
from offload.child.process import Child, start_child

FAKE = Path(__file__).resolve().parents[2] / "support" / "fake_scan.py"
QUICK = RestartPolicy(first_delay_s=0.01, longest_delay_s=0.02, crash_limit=4, quarantine_s=1000.0)


@asynccontextmanager
async def scanning(**options: Any) -> AsyncIterator[ScanWorker]:
    worker = ScanWorker(**options)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(worker.run)
            yield worker
            nursery.cancel_scope.cancel()
    assert worker.pid is None


async def test_vectors_come_in_order_from_a_boxed_process() -> None:
    async with scanning() as worker:
        assert worker.pid is None
        texts = [f"text number {number}" for number in range(600)]      # several frames
        vectors = await worker.embed(texts)
        assert len(vectors) == 600
        assert {len(vector) for vector in vectors} == {256}
        assert vectors[599] == pytest.approx((await worker.embed([texts[599]]))[0], abs=1e-5)
        assert await worker.embed([]) == []
        assert worker.pid not in (None, os.getpid())
        assert "wordllama" not in sys.modules or "search.vectors" in sys.modules
        if worker.box["landlock"] == HELD and worker.box["seccomp"] == HELD:
            assert "possible" not in worker.probe.values()


async def test_many_callers_at_once_get_their_own() -> None:
    async with scanning() as worker:
        alone = {word: (await worker.embed([word]))[0] for word in ("rain", "bread", "music", "train")}

        async def ask(word: str) -> None:
            for _ in range(5):
                assert (await worker.embed([word, word]))[1] == pytest.approx(alone[word], abs=1e-5)

        async with trio.open_nursery() as nursery:
            for word in alone:
                nursery.start_soon(ask, word)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
async def test_a_death_is_survived(number: signal.Signals) -> None:
    async with scanning() as worker:
        before = await worker.embed(["hello"])
        assert worker.pid is not None
        os.kill(worker.pid, number)
        assert await worker.embed(["hello"]) == before


async def test_a_process_that_dies_slowly_uses_up_one_try_only(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Child.send
    async with scanning() as worker:
        before = await worker.embed(["hello"])
        dying = worker.pid
        assert dying is not None

        async def send(child: Child, payload: bytes) -> None:
            if child.pid == dying:      # its end of the pipe is gone, and that is all that anybody knows yet
                os.kill(dying, signal.SIGKILL)
                raise ChildGone()
            await real(child, payload)

        monkeypatch.setattr(Child, "send", send)
        assert await worker.embed(["hello"]) == before


async def test_it_stops_when_nobody_asks_and_comes_back() -> None:
    async with scanning(idle_stop_s=0.05) as worker:
        await worker.embed(["hello"])
        while worker.pid is not None:
            await trio.sleep(0.01)
        assert worker.state == "idle"
        assert len(await worker.embed(["hello"])) == 1


async def test_too_much_at_once_is_refused_before_anything_starts() -> None:
    async with scanning() as worker:
        with pytest.raises(ScanTooLarge):
            await worker.embed(["x"] * 20_001)
        with pytest.raises(ScanTooLarge):
            await worker.embed(["x" * 1_000_001])
        assert worker.pid is None


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is a fake one that does what the first text says."""
    monkeypatch.setattr(client_module, "start_child", partial(start_child, command=(sys.executable, "-P", str(FAKE))))


@pytest.mark.usefixtures("fake")
async def test_what_kills_the_worker_twice_fails_with_a_reason() -> None:
    async with scanning(policy=RestartPolicy(first_delay_s=0.01, crash_limit=50)) as worker:
        with pytest.raises(ScanUnavailable, match="SIGKILL"):
            await worker.embed(["die"])
        assert await worker.embed(["fine"]) == [[1.0, 2.0]]


@pytest.mark.usefixtures("fake")
async def test_a_worker_that_keeps_dying_is_left_alone() -> None:
    async with scanning(policy=QUICK) as worker:
        for _ in range(3):
            with pytest.raises(ScanUnavailable):
                await worker.embed(["die"])
        assert worker.state == "quarantined"
        with pytest.raises(ScanUnavailable):
            await worker.embed(["fine"])


@pytest.mark.usefixtures("fake")
async def test_no_answer_in_time_and_a_failed_text_are_told_apart() -> None:
    async with scanning(deadline_s=4.0) as worker:
        with pytest.raises(ScanUnavailable, match="ValueError"):
            await worker.embed(["refuse"])
        with pytest.raises(ScanUnavailable, match="wrong number"):
            await worker.embed(["short"])
        with pytest.raises(ScanTooLate):
            await worker.embed(["silent"])


@pytest.mark.usefixtures("fake")
async def test_waiting_callers_are_bounded() -> None:
    async with scanning() as worker:
        await worker.embed(["fine"])
        busy = 0

        async def ask() -> None:
            nonlocal busy
            try:
                with trio.move_on_after(0.5):
                    await worker.embed(["silent"])
            except ScanBusy:
                busy += 1

        async with trio.open_nursery() as nursery:
            for _ in range(70):
                nursery.start_soon(ask)
        assert busy == 70 - 64
