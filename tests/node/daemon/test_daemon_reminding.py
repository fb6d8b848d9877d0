"""Reminders are told once: on time, after quiet hours, or at the next start; and stay new until somebody looked."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import trio

from node.agent.tools.reminders import KeptReminder
from node.daemon import reminding
from node.daemon.reminding import QuietHours, Reminding
from node.errors import StorageError, UsageError
from node.store.database import Database
from node.store.schema import KITH

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2026, 3, 18, 8, 30, tzinfo=UTC)


class TrioClock:
    """A wall clock that goes with trio's."""

    def __init__(self) -> None:
        self.started_s = trio.current_time()
        self.start = START

    def now(self) -> datetime:
        return self.start + timedelta(seconds=trio.current_time() - self.started_s)

    def monotonic_s(self) -> float:
        return trio.current_time()


class House:
    def __init__(self, database: Database, quiet: str = "") -> None:
        self.database, self.clock = database, TrioClock()
        self.events: list[tuple[Any, str, bool]] = []
        self.notices: list[str] = []
        self.reminding = self.built(quiet)

    def built(self, quiet: str = "") -> Reminding:
        return Reminding(
            self.database, self.clock, QuietHours(quiet, BERLIN),
            lambda event: self.events.append((self.clock.now(), event["id"], event["missed"])), self.notices.append,
        )

    async def put(self, name: str, after: timedelta) -> None:
        await self.reminding.put(KeptReminder(name, f"text of {name}", self.clock.now() + after))


@pytest.fixture
async def house(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[House]:
    monkeypatch.setattr(reminding, "LOOK_S", 300.0)
    database = await Database.open(tmp_path / "kith.db", bytes(32), KITH)
    yield House(database)
    await database.close()


async def test_each_is_told_once_at_its_time(
    house: House, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock,
) -> None:
    nursery.start_soon(house.reminding.run)
    await trio.sleep(0.01)
    await house.put("b", timedelta(minutes=10))
    await house.put("a", timedelta(minutes=5))
    await trio.sleep(3600)
    assert [(name, missed) for _, name, missed in house.events] == [("a", False), ("b", False)]
    for (at, _, _), due in zip(house.events, (5, 10), strict=True):
        assert timedelta(0) <= at - START - timedelta(minutes=due) < timedelta(seconds=30)
    assert house.notices == ["A reminder is due. See it with: kith reminders"] * 2
    nursery.cancel_scope.cancel()


async def test_what_was_due_while_the_node_was_off_is_told_as_missed(
    house: House, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock,
) -> None:
    await house.put("a", timedelta(minutes=5))
    await trio.sleep(7200)
    nursery.start_soon(house.reminding.run)
    await trio.sleep(1)
    assert [(name, missed) for _, name, missed in house.events] == [("a", True)]
    nursery.cancel_scope.cancel()


async def test_quiet_hours_hold_it_back_and_it_is_told_when_they_end(
    house: House, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock,
) -> None:
    house.reminding = house.built("09:25-11:00")   # 08:30 UTC is 09:30 in Berlin
    nursery.start_soon(house.reminding.run)
    await trio.sleep(0.01)
    await house.put("a", timedelta(minutes=5))
    await trio.sleep(80 * 60)
    assert house.events == []
    await trio.sleep(11 * 60)
    assert [(name, missed) for _, name, missed in house.events] == [("a", True)]
    assert house.events[0][0] >= datetime(2026, 3, 18, 10, 0, tzinfo=UTC)
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize("failing", ["write", "read"])
async def test_a_disk_that_fails_ends_nothing_and_is_not_asked_without_pause(
    house: House, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, failing: str,
) -> None:
    await house.put("a", timedelta(minutes=1))
    original, failed = getattr(house.database, failing), 0

    async def fail(*args: Any, **kwargs: Any) -> Any:
        nonlocal failed
        if house.clock.now() > START + timedelta(minutes=10):
            return await original(*args, **kwargs)
        failed += 1
        await trio.lowlevel.checkpoint()
        raise StorageError("The disk is full.")

    setattr(house.database, failing, fail)
    nursery.start_soon(house.reminding.run)
    await trio.sleep(3600)
    assert [(name, missed) for _, name, missed in house.events] == [("a", True)]
    assert 0 < failed <= 10 * 60 / reminding.RETRY_S + 1
    nursery.cancel_scope.cancel()


async def test_a_cancelled_one_is_not_told_and_can_come_back(
    house: House, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock,
) -> None:
    nursery.start_soon(house.reminding.run)
    await house.put("abc1", timedelta(minutes=5))
    await house.put("abd2", timedelta(minutes=6))
    with pytest.raises(UsageError, match="Several"):
        await house.reminding.drop("ab")
    assert (await house.reminding.drop("abc")).state == "cancelled"
    with pytest.raises(UsageError, match="No reminder"):
        await house.reminding.drop("abc")
    await house.reminding.cancel("abd2")
    assert await house.reminding.restore("abd2")
    await trio.sleep(600)
    assert [name for _, name, _ in house.events] == ["abd2"]
    nursery.cancel_scope.cancel()


async def test_looking_makes_it_seen(
    house: House, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock,
) -> None:
    nursery.start_soon(house.reminding.run)
    await house.put("a", timedelta(seconds=1))
    await trio.sleep(60)
    assert [(one.state, one.new) for one in await house.reminding.all(10)] == [("told", True)]
    assert [(one.state, one.new) for one in await house.reminding.all(10)] == [("told", False)]
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("hours", "local", "ends"), [
    ("22:00-07:00", "2026-03-18T23:30", "2026-03-19T07:00"),
    ("22:00-07:00", "2026-03-19T06:59", "2026-03-19T07:00"),
    ("22:00-07:00", "2026-03-19T07:00", None),
    ("22:00-07:00", "2026-03-18T22:00", "2026-03-19T07:00"),
    ("12:00-14:00", "2026-03-18T13:00", "2026-03-18T14:00"),
    ("12:00-14:00", "2026-03-18T14:00", None),
    ("22:00-07:00", "2026-03-28T23:30", "2026-03-29T07:00"),    # the night in which clocks go forward
    ("", "2026-03-18T03:00", None),
])
def test_quiet_hours_go_by_the_owners_clock(hours: str, local: str, ends: str | None) -> None:
    until = QuietHours(hours, BERLIN).until(datetime.fromisoformat(local).replace(tzinfo=BERLIN).astimezone(UTC))
    assert (until and until.astimezone(BERLIN).strftime("%Y-%m-%dT%H:%M")) == ends
