"""A date that nothing bears out removes nothing: at start, after a jump, in sleep; the owner's word ends the doubt."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio
from clock_machine import DAY, MONTHS, Machine, machine_in
from fixed import FixedClock, SeededEntropy
from guard_bench import GuardBench, guard_bench
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from memory_channel import BOB

from node.clock import Clock, to_ms
from node.daemon.ledger_upkeep import LedgerUpkeep
from node.daemon.removal_clock import BETWEEN_LIVES, KEEP_EVERY_S, SETTLING_S, WITHIN_A_LIFE, RemovalClock
from node.daemon.tidying import Tidying
from node.errors import StorageError
from node.mail.outbox import Outbox
from node.privacy.ledger_rows import StoredLedgerRows
from node.privacy.policy import PeerView
from node.store import mail, settings
from node.store.database import Database
from node.store.mail import Incoming, OutboxState


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    async with machine_in(tmp_path) as made:
        yield made


async def test_it_is_the_machines_clock_as_long_as_time_just_passes(machine: Machine) -> None:
    dates = await machine.life()
    for time in (timedelta(seconds=1), DAY, MONTHS):
        machine.run(time)
        assert dates.now() == machine.clock.now()
        assert dates.doubt() == ""


async def test_before_it_begins_everything_is_young(machine: Machine) -> None:
    dates = RemovalClock(machine.clock, machine.database, lambda: 0.0)
    assert dates.now() == datetime(1970, 1, 1, tzinfo=UTC)
    assert dates.doubt() == ""


@pytest.mark.parametrize("by", [MONTHS, WITHIN_A_LIFE + timedelta(seconds=1)])
async def test_a_jump_ahead_while_it_runs_is_doubted_until_the_clock_is_right_again(
    machine: Machine, by: timedelta,
) -> None:
    dates = await machine.life()
    machine.run(timedelta(seconds=SETTLING_S + 1))
    right = dates.now()
    machine.jump(by)
    assert dates.now() == right
    assert f"{by // DAY} day" in dates.doubt() and "ahead of" in dates.doubt()
    machine.run(DAY)
    assert dates.now() == right + DAY       # what the steady count tells is not doubted
    machine.jump(-by)
    assert dates.doubt() == ""
    assert dates.now() == right + DAY == machine.clock.now()


@pytest.mark.parametrize(("settled", "step", "most"), [(True, timedelta(hours=23), DAY), (False, 20 * DAY, 21 * DAY)])
async def test_many_small_jumps_are_a_large_one(
    settled: bool, step: timedelta, most: timedelta, machine: Machine,
) -> None:
    """Whoever sets the date can't creep ahead, neither while the node runs nor in its first hour."""
    dates = await machine.life()
    machine.run(timedelta(minutes=62 if settled else 1))
    begun = dates.now()
    for _ in range(24):
        machine.run(timedelta(minutes=1))
        machine.jump(step)
        assert dates.now() - begun <= most + timedelta(minutes=30)
    assert dates.doubt()


async def test_a_small_jump_a_long_sleep_and_a_late_first_date_are_none_to_doubt(machine: Machine) -> None:
    dates = await machine.life()
    machine.jump(timedelta(days=10))        # a machine without a clock's battery that finds a network
    assert (dates.doubt(), dates.now()) == ("", machine.clock.now())
    machine.run(timedelta(seconds=SETTLING_S + 1))
    machine.jump(timedelta(hours=3))
    assert (dates.doubt(), dates.now()) == ("", machine.clock.now())
    machine.jump(timedelta(days=60))
    machine.slept_s += timedelta(days=60).total_seconds()
    assert (dates.doubt(), dates.now()) == ("", machine.clock.now())


async def test_a_date_far_beyond_the_last_life_is_doubted_in_this_one_and_the_next(machine: Machine) -> None:
    await machine.life()
    machine.jump(BETWEEN_LIVES - DAY)       # a holiday
    dates = await machine.life()
    seen = machine.clock.now()
    assert (dates.doubt(), dates.now()) == ("", seen)
    machine.jump(MONTHS)
    for _ in range(3):                      # each starts anew, as after kill -9
        dates = await machine.life()
        assert dates.doubt()
        assert dates.now() == seen
    machine.jump(-MONTHS)
    dates = await machine.life()
    assert (dates.doubt(), dates.now()) == ("", seen)


async def test_a_clock_that_lost_its_date_neither_removes_nor_makes_the_right_one_doubtful(machine: Machine) -> None:
    await machine.life()
    right = machine.clock.now()
    machine.clock.set(datetime(2010, 1, 1, tzinfo=UTC))
    dates = await machine.life()
    assert "behind" in dates.doubt()
    assert dates.now() == machine.clock.now()       # so early that nothing is old
    machine.run(timedelta(hours=5))
    machine.clock.set(right + timedelta(hours=5))
    assert (dates.doubt(), dates.now()) == ("", machine.clock.now())


async def test_the_owner_ends_the_doubt_for_good_and_can_take_it_back(machine: Machine) -> None:
    await machine.life()
    right = machine.clock.now()
    machine.jump(MONTHS)
    dates = await machine.life()
    assert dates.doubt()
    await dates.confirm()
    assert (dates.doubt(), dates.now()) == ("", machine.clock.now())
    assert (await machine.life()).doubt() == ""
    machine.clock.set(right)                        # it was not right after all
    dates = await machine.life()
    assert (bool(dates.doubt()), dates.now()) == (True, right)
    await dates.confirm()
    machine.jump(MONTHS)
    dates = await machine.life()
    assert (bool(dates.doubt()), dates.now()) == (True, right)


async def test_what_was_seen_is_kept_while_it_runs_and_a_full_disk_ends_nothing(
    autojump_clock: trio.abc.Clock, machine: Machine, monkeypatch: pytest.MonkeyPatch,
) -> None:
    dates = await machine.life()
    write, calls = machine.database.write, []

    async def full_at_first(*args, **kwargs):  # type: ignore[no-untyped-def]
        calls.append(args)
        if len(calls) == 1:
            raise StorageError("no room")
        return await write(*args, **kwargs)

    monkeypatch.setattr(machine.database, "write", full_at_first)
    machine.run(30 * DAY)
    async with trio.open_nursery() as nursery:
        await nursery.start(dates.run)
        while len(calls) < 2:
            await trio.sleep(KEEP_EVERY_S)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert await machine.database.read(settings.get, "clock.seen_ms") == str(to_ms(machine.clock.now()))


@given(steps=st.lists(st.tuples(st.integers(-400, 400), st.integers(0, 40), st.booleans()), max_size=12))
@hypothesis_settings(max_examples=100, deadline=None)
def test_whatever_the_clock_shows_no_more_is_old_than_time_that_passed(steps: list[tuple[int, int, bool]]) -> None:
    """Days that the clock is off, days that pass, and whether the node starts anew. One wrong date moves it by no more
    than a holiday."""
    async def play() -> None:
        clock, kept, truth = FixedClock(), dict[str, str](), FixedClock().now()

        class Rows:
            async def read(self, _: object, key: str) -> str | None:
                return kept.get(key)

            async def write(self, _: object, key: str, value: str) -> None:
                kept[key] = value

        dates = RemovalClock(clock, Rows(), lambda: 0.0)  # type: ignore[arg-type]
        await dates.begin()
        allowed = BETWEEN_LIVES
        for off, passed, anew in steps:
            clock.advance(passed * 86_400)
            truth += timedelta(days=passed)
            clock.set(truth + timedelta(days=off))
            allowed += BETWEEN_LIVES
            if anew:
                dates = RemovalClock(clock, Rows(), lambda: 0.0)  # type: ignore[arg-type]
                await dates.begin()
            assert dates.now() <= truth + allowed

    trio.run(play)


# ---- the node's data under a wrong clock


class Data:
    """A queued message, a read one, and ledger entries, under the clock that is given."""

    def __init__(self, database: Database, guard: GuardBench, by: Clock) -> None:
        self.database = database
        self.ledger = guard.ledger
        self.outbox = Outbox(database, guard.egress, guard.clock, SeededEntropy(3), expiry=by)
        upkeep = LedgerUpkeep(guard.ledger, database, by, texts_days=90, entries_days=120)
        self.tidying = Tidying(upkeep, database, by, messages_days=100, steps_days=100)
        self.owner = guard.owner

    async def fill(self, now_ms: int) -> None:
        for body in ("one", "two"):
            await self.outbox.put(PeerView(BOB, "bob", "home"), body, self.owner)
        await self.ledger.close_crashed(purposes=frozenset({"mail"}))

        def read_one(tx: object) -> None:
            mail.receive(tx, BOB, Incoming(1, "m1", "chat.msg", "hi", now_ms), now_ms)  # type: ignore[arg-type]
            mail.mark_read(tx, 1, now_ms)  # type: ignore[arg-type]

        await self.database.write(read_one)

    async def tidy(self) -> None:
        await self.outbox.expire()
        await self.tidying.tidy()

    async def gone(self) -> tuple[int, int, int, int]:
        """Messages that expired, read ones, ledger texts and ledger entries that are not there any more."""
        expired = sum(row.state is OutboxState.EXPIRED for row in await self.database.read(mail.outbox))
        entries = await self.ledger.page(0)
        return expired, 1 - len(await self.database.read(mail.inbox)), sum(
            not view.texts for view in entries), 2 - len(entries)


@pytest.mark.parametrize("guarded", [True, False])
async def test_months_ahead_for_a_while_costs_nothing(machine: Machine, guarded: bool) -> None:
    """Without this clock it costs all of it: the control."""
    dates = await machine.life()
    guard = await guard_bench(rows=StoredLedgerRows(machine.database))
    data = Data(machine.database, guard, dates if guarded else machine.clock)
    await data.fill(to_ms(machine.clock.now()))
    machine.run(timedelta(seconds=SETTLING_S + 1))
    await data.tidy()
    assert await data.gone() == (0, 0, 0, 0)
    machine.jump(MONTHS)
    await data.tidy()
    assert await data.gone() == ((0, 0, 0, 0) if guarded else (2, 1, 1, 1))
    if guarded:
        await dates.confirm()
        await data.tidy()
        assert await data.gone() == (2, 1, 1, 1)


@pytest.mark.parametrize("behind", [timedelta(days=20 * 365), MONTHS, timedelta(days=20)])
@pytest.mark.parametrize("guarded", [True, False])
async def test_a_message_written_while_the_clock_is_behind_waits_its_whole_time(
    machine: Machine, behind: timedelta, guarded: bool,
) -> None:
    """A machine without a battery for its clock, before it has a network. By its own clock it costs the message."""
    await machine.life()
    machine.jump(-behind)
    dates = await machine.life()
    guard = await guard_bench(rows=StoredLedgerRows(machine.database))
    outbox = Outbox(
        machine.database, guard.egress, machine.clock, SeededEntropy(3), keep=timedelta(days=14), expiry=dates,
        latest=dates.latest if guarded else None)
    await outbox.put(PeerView(BOB, "bob", "home"), "one", guard.owner)
    machine.run(timedelta(minutes=2))
    assert not await outbox.expire()
    machine.jump(behind)
    assert len(await outbox.expire()) == (0 if guarded else 1)
    if guarded:
        machine.run(timedelta(days=13))
        assert not await outbox.expire()
        machine.run(DAY)
        assert [row.state for row in await outbox.expire()] == [OutboxState.EXPIRED]


async def test_the_latest_goes_back_only_from_a_date_that_was_never_borne_out(machine: Machine) -> None:
    dates = await machine.life()
    first = dates.latest()
    machine.run(DAY)
    machine.jump(-MONTHS)
    assert dates.latest() == first + DAY
    machine.jump(2 * MONTHS)
    assert dates.latest() == machine.clock.now()
    machine.jump(-MONTHS)
    assert dates.latest() == first + DAY == machine.clock.now()
