"""Supervision with real processes: started on need, started again, given up, idle ones stopped, none left behind."""

import math
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from offload.child import process
from offload.child.errors import (
    ChildClosed,
    ChildError,
    ChildGone,
    ChildQuarantined,
    ChildStartFailed,
    FrameTooLarge,
)
from offload.child.policy import RestartPolicy
from offload.child.process import Child, Death, start_child
from offload.child.supervisor import Supervisor

FAKE = Path(__file__).resolve().parents[2] / "support" / "fake_child.py"
QUICK = RestartPolicy(first_delay_s=0.01, longest_delay_s=0.02, crash_limit=4, quarantine_s=1000.0)


class Owner:
    """Starts fake children and notes what happens."""

    def __init__(self, greeting: str = "plain", *, wanted_back: bool = False) -> None:
        self.word = greeting
        self.wanted_back = wanted_back
        self.launched: list[int] = []
        self.got: list[bytes] = []
        self.deaths: list[tuple[Death, bool]] = []
        self.given_up: list[str] = []
        self.arrived = trio.Event()
        self.dead = trio.Event()

    def launch(self) -> Child:
        child = start_child("unused", command=(sys.executable, "-P", str(FAKE)))
        self.launched.append(child.pid)
        return child

    def greeting(self) -> bytes:
        return self.word.encode()

    def became_ready(self, payload: bytes) -> None:
        if payload != b"ready":
            raise ChildStartFailed("the model is broken")

    def received(self, payload: bytes) -> None:
        if payload == b"nonsense":
            raise ChildError("it spoke nonsense")
        self.got.append(payload)
        self.arrived.set()

    def died(self, death: Death, *, was_ready: bool) -> bool:
        self.deaths.append((death, was_ready))
        self.dead.set()
        return self.wanted_back

    def gave_up(self, reason: str) -> None:
        self.given_up.append(reason)


@asynccontextmanager
async def supervised(
    owner: Owner, idle_stop_s: float = math.inf, start_deadline_s: float = 20.0,
) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(
        "test child", owner, policy=QUICK, idle_stop_s=idle_stop_s, start_deadline_s=start_deadline_s)
    with trio.fail_after(40):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(supervisor.run)
            yield supervisor
            nursery.cancel_scope.cancel()
    assert all(gone(pid) for pid in owner.launched)


def gone(pid: int) -> bool:
    """Reaped, or taken by a process that is none of our children."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


async def test_nothing_runs_before_it_is_wanted() -> None:
    owner = Owner()
    async with supervised(owner) as supervisor:
        await trio.sleep(0.05)
        assert owner.launched == []
        assert supervisor.state == "idle"
        child = await supervisor.ready()
        assert supervisor.state == "ready"
        await child.send(b"hello")
        await owner.arrived.wait()
        assert owner.got == [b"hello"]
        assert await supervisor.ready() is child
        assert len(owner.launched) == 1
    with pytest.raises(ChildClosed):
        await supervisor.ready()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGILL, signal.SIGSEGV, signal.SIGABRT])
async def test_a_death_is_seen_with_its_cause_and_the_child_comes_back(number: signal.Signals) -> None:
    owner = Owner(wanted_back=True)
    async with supervised(owner) as supervisor:
        child = await supervisor.ready()
        os.kill(child.pid, number)
        await owner.dead.wait()
        death, was_ready = owner.deaths[0]
        assert (death.return_code, death.reason, was_ready) == (-number, number.name, True)
        again = await supervisor.ready()
        assert again.pid != child.pid
        assert supervisor.restarts == 1


async def test_a_death_that_nobody_minds_starts_nothing() -> None:
    owner = Owner(wanted_back=False)
    async with supervised(owner) as supervisor:
        await (await supervisor.ready()).send(b"exit:3")
        await owner.dead.wait()
        assert owner.deaths[0][0].reason == "exit status 3"
        await trio.sleep(0.05)
        assert len(owner.launched) == 1
        assert supervisor.state == "idle"


async def test_after_too_many_crashes_it_is_left_alone_until_released() -> None:
    owner = Owner("crash", wanted_back=True)
    async with supervised(owner) as supervisor:
        with pytest.raises(ChildQuarantined, match="4 times"):
            await supervisor.ready()
        assert len(owner.launched) == 4
        assert len(owner.given_up) == 1
        with pytest.raises(ChildQuarantined):
            await supervisor.ready()
        assert len(owner.launched) == 4
        supervisor.release()
        owner.word = "plain"
        await supervisor.ready()
        assert len(owner.launched) == 5


async def test_a_child_that_says_it_can_not_start_is_believed() -> None:
    owner = Owner("refuse")
    async with supervised(owner) as supervisor:
        with pytest.raises(ChildStartFailed, match="the model is broken"):
            await supervisor.ready()
        assert len(owner.launched) == 1
        owner.word = "plain"
        await supervisor.ready()


@pytest.mark.parametrize("word", ["mute", "huge"])
async def test_a_child_that_never_becomes_ready_is_ended(word: str) -> None:
    owner = Owner(word)
    async with supervised(owner, start_deadline_s=0.5) as supervisor:
        with pytest.raises(ChildStartFailed):
            await supervisor.ready()
        assert owner.deaths[0][0].return_code == -signal.SIGKILL


async def test_nonsense_ends_the_child() -> None:
    owner = Owner()
    async with supervised(owner) as supervisor:
        await (await supervisor.ready()).send(b"nonsense")
        await owner.dead.wait()
        assert owner.deaths[0] == (Death(-signal.SIGKILL, wanted=False), True)


async def test_an_idle_child_is_stopped_and_that_is_no_crash() -> None:
    owner = Owner()
    async with supervised(owner, idle_stop_s=0.05) as supervisor:
        await supervisor.ready()
        await owner.dead.wait()
        assert owner.deaths[0][0].wanted
        assert supervisor.restarts == 0
        await supervisor.ready()
        assert len(owner.launched) == 2


async def test_a_child_that_stops_reading_does_not_hold_its_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_WRITE_DEADLINE_S", 0.1)
    child = start_child("unused", command=(sys.executable, "-c", "import time; time.sleep(60)"))
    with pytest.raises(ChildGone):
        await child.send(b"x" * 8_000_000)
    assert (await child.end()).return_code == -signal.SIGKILL


async def test_without_pidfd_a_child_is_still_reaped(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_pid: int) -> int:
        raise OSError(38, "not implemented")

    monkeypatch.setattr(os, "pidfd_open", unknown)
    child = start_child("unused", command=(sys.executable, "-c", "import time; time.sleep(60)"))
    child.kill(wanted=True)
    assert await child.end() == Death(-signal.SIGKILL, wanted=True)
    assert gone(child.pid)


async def test_too_large_a_frame_is_refused_before_anything_is_sent() -> None:
    child = start_child("unused", command=(sys.executable, "-c", "import time; time.sleep(60)"))
    with pytest.raises(FrameTooLarge):
        await child.send(b"x" * (16 * 1024 * 1024 + 1))
    await child.end()
