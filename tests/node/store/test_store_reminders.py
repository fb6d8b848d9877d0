"""Reminders as rows: told once, cancelled, brought back, seen."""

from pathlib import Path

import pytest

from node.store import reminders
from node.store.database import Database
from node.store.reminders import ReminderState
from node.store.schema import KITH


@pytest.fixture
async def database(tmp_path: Path):
    opened = await Database.open(tmp_path / "kith.db", bytes(32), KITH)
    yield opened
    await opened.close()


async def test_each_is_told_once_and_in_order(database: Database) -> None:
    for name, due in (("b", 200), ("a", 100), ("c", 900)):
        await database.write(reminders.add, name, f"text {name}", due, 1)
    await database.write(reminders.add, "a", "other words", 5, 2)  # the same id again
    due = await database.read(reminders.due, 300)
    assert [(one.reminder_id, one.text) for one in due] == [("a", "text a"), ("b", "text b")]
    told = await database.write(lambda tx: reminders.tell(tx, ["a", "b", "zzz"], 300, missed=["a"]))
    assert [(one.reminder_id, one.missed, one.told_ms) for one in told] == [("a", True, 300), ("b", False, 300)]
    assert await database.write(lambda tx: reminders.tell(tx, ["a", "b"], 400, missed=[])) == []
    assert await database.read(reminders.next_due_ms) == 900
    assert [one.reminder_id for one in await database.read(reminders.listed, 10)] == ["c", "b", "a"]


async def test_cancelling_and_bringing_back(database: Database) -> None:
    await database.write(reminders.add, "a", "x", 100, 1)
    assert await database.write(reminders.restore, "a") is False
    assert await database.write(reminders.cancel, "a", 5) is True
    assert await database.write(reminders.cancel, "a", 6) is False
    assert await database.read(reminders.due, 1000) == []
    assert await database.write(reminders.restore, "a") is True
    assert [one.state for one in await database.read(reminders.due, 1000)] == [ReminderState.WAITING]
    assert await database.write(reminders.remove, "a") is True
    assert await database.read(reminders.get, "a") is None


async def test_what_was_told_is_new_until_it_was_looked_at(database: Database) -> None:
    await database.write(reminders.add, "a", "x", 100, 1)
    await database.write(lambda tx: reminders.tell(tx, ["a"], 150, missed=[]))
    assert await database.write(reminders.see, 200) == 1
    assert await database.write(reminders.see, 300) == 0


async def test_the_list_of_what_is_over_is_bounded_and_loses_nothing_unseen(
    database: Database, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reminders, "KEEP", 3)
    for number in range(6):
        await database.write(reminders.add, f"r{number}", "x", number, 1)
    await database.write(lambda tx: reminders.tell(tx, [f"r{n}" for n in range(5)], 50, missed=[]))
    assert len(await database.read(reminders.listed, 100)) == 6   # nobody looked yet
    await database.write(reminders.see, 60)
    await database.write(lambda tx: reminders.tell(tx, ["r5"], 70, missed=[]))
    assert [one.reminder_id for one in await database.read(reminders.listed, 100)] == ["r5", "r4", "r3"]
