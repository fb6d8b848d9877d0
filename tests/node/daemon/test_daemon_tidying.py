"""What is over goes once it is old, in small transactions; what is unread, undelivered or unfinished stays."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from fixed import FixedClock
from guard_bench import guard_bench

from node.clock import to_ms
from node.daemon.ledger_upkeep import LedgerUpkeep
from node.daemon.tidying import AT_ONCE, KEEP_USAGE_DAYS, Tidying
from node.errors import StorageError
from node.settings import Settings
from node.store import journal, mail, usage
from node.store.connection import Connection
from node.store.database import Database
from node.store.journal import StepState
from node.store.mail import Incoming
from node.store.schema import KITH

DAY_S = 86_400
MANY = 2 * AT_ONCE + 3


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "kith.db", b"k" * 32, KITH)
    try:
        yield database
    finally:
        with trio.CancelScope(shield=True):
            await database.close()


async def tidying(database: Database, clock: FixedClock, *, messages_days: int = 365, steps_days: int = 365) -> Tidying:
    ledger = LedgerUpkeep((await guard_bench()).ledger, database, clock, texts_days=90, entries_days=730)
    return Tidying(ledger, database, clock, messages_days=messages_days, steps_days=steps_days)


def fill(tx: Connection, clock: FixedClock) -> None:
    now_ms = to_ms(clock.now())
    for seq in range(1, MANY + 2):
        mail.receive(tx, "bea", Incoming(seq, f"in{seq}", "chat.msg", "hi", now_ms), now_ms)
        mail.enqueue(
            tx, peer_id="bea", message_id=f"out{seq}", kind="chat.msg", body="hi", now_ms=now_ms, expires_ms=2**50)
    mail.mark_read(tx, MANY, now_ms)
    mail.acknowledge(tx, "bea", MANY, now_ms)
    for key, done in (("old", True), ("last", True), ("open", False)):
        journal.plan(tx, key=key, run_id=key, step="note_write", plan="{}", now_ms=now_ms)
        journal.advance(tx, key, StepState.APPROVED, now_ms)
        if done:
            journal.advance(tx, key, StepState.APPLIED, now_ms, record="{}")
    usage.add(tx, "bea", clock.now().date().isoformat(), requests=1)


async def left(database: Database) -> tuple[int, int, int, int]:
    def count(tx: Connection) -> tuple[int, int, int, int]:
        names = ("inbox", "outbox", "journal", "usage")
        rows = [tx.execute(f"SELECT count(*) FROM {name}").fetchone() for name in names]
        inbox, outbox, steps, days = (int(row[0]) for row in rows if row)
        return inbox, outbox, steps, days

    return await database.read(count)


async def test_nothing_goes_early_and_what_is_over_goes_late(database: Database) -> None:
    clock = FixedClock()
    tidy = await tidying(database, clock)
    await database.write(fill, clock)
    clock.advance(364 * DAY_S)
    assert await tidy.tidy() == 0
    assert await left(database) == (MANY + 1, MANY + 1, 3, 1)
    clock.advance(2 * DAY_S)
    assert await tidy.tidy() == 2 * MANY + 1
    assert await left(database) == (1, 1, 2, 1)     # the unread, the undelivered, the open and the undoable one
    clock.advance((KEEP_USAGE_DAYS - 365) * DAY_S)
    assert await tidy.tidy() == 1
    clock.advance(9999 * DAY_S)
    assert await tidy.tidy() == 0
    assert await left(database) == (1, 1, 2, 0)
    assert [row.message_id for row in await database.read(mail.pending, "bea")] == [f"out{MANY + 1}"]


async def test_an_owner_who_keeps_everything_keeps_everything(database: Database) -> None:
    clock = FixedClock()
    await database.write(fill, clock)
    clock.advance(9999 * DAY_S)
    assert await (await tidying(database, clock, messages_days=0, steps_days=0)).tidy() == 1    # the day of usage
    assert await left(database) == (MANY + 1, MANY + 1, 3, 0)


async def test_a_long_backlog_goes_in_small_steps_and_goes_on_after_a_failure(
    database: Database, monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FixedClock()
    tidy = await tidying(database, clock)
    await database.write(fill, clock)
    clock.advance(366 * DAY_S)
    whole, sizes = database.write, []

    async def write(function, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        if len(sizes) == 2:
            sizes.append(0)
            raise StorageError("no room")
        count = await whole(function, *args, **kwargs)
        sizes.append(count)
        return count

    monkeypatch.setattr(database, "write", write)
    assert await tidy.tidy() == 2 * AT_ONCE + 1     # of the inbox, and the steps: what fails holds up nothing else
    assert await left(database) == (4, MANY + 1, 2, 1)
    assert await tidy.tidy() == 2 * MANY - 2 * AT_ONCE
    assert max(sizes) == AT_ONCE
    assert await left(database) == (1, 1, 2, 1)


async def test_it_is_done_now_and_then(autojump_clock: trio.abc.Clock, database: Database) -> None:
    clock = FixedClock()
    tidy = await tidying(database, clock)
    await database.write(fill, clock)
    clock.advance(366 * DAY_S)
    async with trio.open_nursery() as nursery:
        await nursery.start(tidy.run)
        assert (await left(database))[0] == MANY + 1
        while (await left(database))[0] > 1:
            await trio.sleep(30)
        await database.write(mail.mark_read, MANY + 1, to_ms(clock.now()))
        clock.advance(366 * DAY_S)
        while (await left(database))[0]:
            await trio.sleep(3600)
        nursery.cancel_scope.cancel()


def test_the_defaults_are_a_year() -> None:
    assert (Settings().mail.history_days, Settings().agent.undo_days) == (365, 365)
