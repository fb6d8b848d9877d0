"""The machine's sleep: noticed by two clocks, kept off while peers are served, and for a moment after."""

from datetime import UTC, datetime

import pytest

from node.daemon.machine_sleep import LINGER_S, RETRY_S, AwakeWhileServing, SleepWatch, slept_since_boot_s
from node.daemon.upkeep import Upkeep


class Clock:
    def __init__(self) -> None:
        self.s = 1000.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic_s(self) -> float:
        return self.s


class Blocker:
    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.calls: list[str] = []

    async def block(self) -> None:
        self.calls.append("block")
        if self.fails:
            raise OSError("no systemd-logind to ask")

    async def release(self) -> None:
        self.calls.append("release")


def test_a_sleep_is_told_once_and_a_rounding_never() -> None:
    readings = iter([10.0, 10.0, 10.4, 3610.4, 3610.4])
    watch = SleepWatch(lambda: next(readings))
    assert [watch.look() for _ in range(4)] == [0.0, 0.0, pytest.approx(3600.0), 0.0]


def test_this_machine_has_slept_no_negative_time() -> None:
    assert slept_since_boot_s() >= 0.0


async def test_sleep_is_kept_off_from_the_first_answer_until_a_while_after_the_last() -> None:
    clock, blocker = Clock(), Blocker()
    awake = AwakeWhileServing(blocker, clock)
    await awake.update(serving=False)
    assert blocker.calls == []
    for _ in range(3):
        await awake.update(serving=True)
        clock.s += 1
    assert blocker.calls == ["block"]
    clock.s += LINGER_S - 2
    await awake.update(serving=False)
    assert awake.blocking
    clock.s += 2
    await awake.update(serving=False)
    assert (awake.blocking, blocker.calls) == (False, ["block", "release"])


async def test_a_system_that_cannot_is_asked_again_later_and_serving_goes_on() -> None:
    clock, blocker = Clock(), Blocker(fails=True)
    awake = AwakeWhileServing(blocker, clock)
    for _ in range(10):
        await awake.update(serving=True)
        clock.s += 1
    assert (blocker.calls, awake.blocking) == (["block"], False)
    blocker.fails = False
    clock.s += RETRY_S
    await awake.update(serving=True)
    assert (blocker.calls, awake.blocking) == (["block", "block"], True)
    await awake.close()
    assert blocker.calls[-1] == "release"


async def test_after_a_sleep_every_peer_is_called_once() -> None:
    readings = iter([0.0, 0.0, 60.0, 60.0])
    called: list[str] = []
    upkeep = Upkeep(
        None, SleepWatch(lambda: next(readings)), serving=lambda: False, call_everyone=lambda: called.append("all")
    )
    await upkeep.tick()
    assert called == []
    await upkeep.tick()
    await upkeep.tick()
    assert called == ["all"]
    await upkeep.close()


async def test_upkeep_passes_on_whether_peers_are_served() -> None:
    blocker, serving = Blocker(), True
    awake = AwakeWhileServing(blocker, Clock())
    upkeep = Upkeep(awake, SleepWatch(lambda: 0.0), serving=lambda: serving, call_everyone=lambda: None)
    await upkeep.tick()
    assert awake.blocking
    await upkeep.close()
    assert blocker.calls == ["block", "release"]
