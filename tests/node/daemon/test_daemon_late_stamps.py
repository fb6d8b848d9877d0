"""What was noted as over by a clock that was behind moves to when it was, once the clock is put right."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest
import trio
from clock_machine import DAY, MONTHS, Machine, machine_in
from guard_bench import guard_bench
from memory_channel import BOB

from node.clock import Clock, to_ms
from node.daemon.ledger_upkeep import LedgerUpkeep
from node.daemon.removal_clock import RemovalClock
from node.daemon.tidying import EVERY_S, FIRST_AFTER_S, Tidying
from node.errors import StorageError
from node.privacy.ledger_rows import StoredLedgerRows
from node.store import mail
from node.store.connection import Connection
from node.store.database import Database
from node.store.mail import Incoming


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    async with machine_in(tmp_path) as made:
        yield made


def over(number: int, stamp: Clock) -> Callable[[Connection], None]:
    """A message that came is read, and one that was sent is delivered."""
    def write(tx: Connection) -> None:
        now_ms = to_ms(stamp.now())
        mail.receive(tx, BOB, Incoming(number, f"in{number}", "chat.msg", "hi", now_ms), now_ms)
        mail.enqueue(
            tx, peer_id=BOB, message_id=f"out{number}", kind="chat.msg", body="hi", now_ms=now_ms, expires_ms=2**50)
        mail.mark_read(tx, number, now_ms)
        mail.acknowledge(tx, BOB, number, now_ms)
    return write


async def kept(database: Database) -> tuple[set[str], set[str]]:
    return ({row.message_id for row in await database.read(mail.inbox)},
            {row.message_id for row in await database.read(mail.outbox)})


async def tidying(machine: Machine, dates: RemovalClock, *, guarded: bool = True) -> Tidying:
    guard = await guard_bench(rows=StoredLedgerRows(machine.database))
    upkeep = LedgerUpkeep(guard.ledger, machine.database, dates, texts_days=0, entries_days=0)
    return Tidying(
        upkeep, machine.database, dates, messages_days=10, steps_days=0, dates=dates if guarded else None)


@pytest.mark.parametrize("behind", [timedelta(days=20 * 365), MONTHS, timedelta(days=20)])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("guarded", [True, False])
async def test_what_was_over_while_the_clock_was_behind_is_kept_its_whole_time(
    machine: Machine, behind: timedelta, first: bool, guarded: bool,
) -> None:
    """first: this machine never had the right date. Without the correction it is all gone at once: the control."""
    if not first:
        await machine.life()
    machine.run(timedelta(hours=1))
    machine.jump(-behind)
    dates = await machine.life()
    stamp = dates.stamps if guarded else machine.clock
    machine.run(timedelta(minutes=1))
    await machine.database.write(over(1, stamp))
    machine.run(timedelta(minutes=2))
    tidy = await tidying(machine, dates, guarded=guarded)
    await tidy.tidy()
    assert await kept(machine.database) == ({"in1"}, {"out1"})
    machine.jump(behind)
    if dates.doubt():
        await dates.confirm()
    await machine.database.write(over(2, stamp))
    await tidy.tidy()
    assert await kept(machine.database) == (({"in1", "in2"}, {"out1", "out2"}) if guarded else ({"in2"}, {"out2"}))
    if guarded:
        machine.run(10 * DAY - timedelta(minutes=4))
        await tidy.tidy()
        assert await kept(machine.database) == ({"in1", "in2"}, {"out1", "out2"})
        machine.run(timedelta(minutes=5))
        await tidy.tidy()
        assert await kept(machine.database) == (set(), set())


async def test_a_correction_moves_nothing_of_before_and_of_after(machine: Machine) -> None:
    dates = await machine.life()
    await machine.database.write(over(1, dates.stamps))
    machine.run(9 * DAY)
    machine.jump(timedelta(hours=-30))
    dates = await machine.life()
    tidy = await tidying(machine, dates)
    machine.run(timedelta(minutes=30))
    machine.jump(timedelta(hours=30 + 24))      # a day had passed unseen
    await tidy.tidy()
    assert await kept(machine.database) == (set(), set())       # ten days after it was read, by the right date
    await machine.database.write(over(2, dates.stamps))
    machine.run(timedelta(minutes=1))
    assert dates.corrections() == ()
    (row,) = await machine.database.read(mail.inbox)
    assert row.read_ms == to_ms(machine.clock.now()) - 60_000


async def test_a_holiday_between_two_lives_corrects_nothing(machine: Machine) -> None:
    dates = await machine.life()
    await machine.database.write(over(1, dates.stamps))
    machine.jump(11 * DAY)
    dates = await machine.life()
    assert dates.corrections() == ()
    await (await tidying(machine, dates)).tidy()
    assert await kept(machine.database) == (set(), set())


async def test_each_correction_moves_what_the_ones_before_moved(machine: Machine) -> None:
    dates = await machine.life()
    await machine.database.write(over(1, dates.stamps))
    for days in (3, 4, 5):
        machine.run(timedelta(minutes=1))
        machine.jump(timedelta(days=days))
        dates.latest()
    assert [one.by_ms for one in dates.corrections()] == [days * 86_400_000 for days in (3, 4, 5)]
    await (await tidying(machine, dates)).tidy()
    (row,) = await machine.database.read(mail.inbox)
    assert row.read_ms == to_ms(machine.clock.now()) - 180_000


@pytest.mark.parametrize("confirmed", [True, False])
async def test_a_date_ahead_that_was_confirmed_in_error_keeps_nothing_for_ever(
    machine: Machine, confirmed: bool,
) -> None:
    """The control: without the word that the right date is right, what was over meanwhile stays as if it came later."""
    dates = await machine.life()
    await machine.database.write(over(1, dates.stamps))
    tidy = await tidying(machine, dates)
    machine.jump(MONTHS)
    await dates.confirm()
    await machine.database.write(over(2, dates.stamps))
    await tidy.tidy()
    machine.jump(-MONTHS)
    if confirmed:
        await dates.confirm()
    await machine.database.write(over(3, dates.stamps))
    await tidy.tidy()
    assert await kept(machine.database) == ({"in1", "in2", "in3"}, {"out1", "out2", "out3"})
    moments = [row.read_ms for row in await machine.database.read(mail.inbox)]
    assert (set(moments) == {to_ms(machine.clock.now())}) is confirmed
    machine.run(10 * DAY + timedelta(minutes=1))
    await tidy.tidy()
    left = set() if confirmed else {1, 2, 3}
    assert await kept(machine.database) == ({f"in{one}" for one in left}, {f"out{one}" for one in left})


async def test_nothing_goes_while_stamps_could_not_be_moved(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    dates = await machine.life()
    await machine.database.write(over(1, dates.stamps))
    machine.jump(20 * DAY)
    tidy = await tidying(machine, dates)
    write = machine.database.write

    async def full(*args: object) -> int:
        raise StorageError("no room")

    monkeypatch.setattr(machine.database, "write", full)
    assert await tidy.tidy() == 0
    monkeypatch.setattr(machine.database, "write", write)
    assert await tidy.tidy() == 0
    assert await kept(machine.database) == ({"in1"}, {"out1"})


async def test_stamps_are_moved_soon_and_not_with_the_next_tidying(
    autojump_clock: trio.abc.Clock, machine: Machine,
) -> None:
    dates = await machine.life()
    async with trio.open_nursery() as nursery:
        await nursery.start((await tidying(machine, dates)).run)
        await trio.sleep(FIRST_AFTER_S + 1)
        await machine.database.write(over(1, dates.stamps))
        machine.jump(5 * DAY)
        dates.latest()
        while dates._corrections:
            await trio.sleep(1)
        assert trio.current_time() < EVERY_S / 2
        nursery.cancel_scope.cancel()
