"""The agent's journal and conversations in the real database: what is put in comes out again after reopening."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from agent_memory import FixedClock

from node.agent.drafts import Draft, Given, pick_choice
from node.agent.effect_json import effect_from_json, effect_to_json
from node.agent.effects import Approval, Effect, EffectValue, Origin, Span
from node.agent.ports import TurnRecord
from node.agent.records import StoredConversations, StoredJournal
from node.clock import SystemEntropy
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value
from node.store.database import Database
from node.store.schema import KITH

AT = datetime(2026, 3, 18, 8, 30, tzinfo=UTC)
EFFECT = Effect("note_write", "write", "New note", (
    EffectValue("text", "buy bread", "buy bread", Origin.REQUEST, "your words", Span(3, 12), ("bread",)),
    EffectValue("plan", {"name": "a.md", "size": 3, "before": None, "list": [1, {"x": "y"}]}, "new file",
    Origin.COMPUTED),
), "key-1")


def test_effects_survive_json() -> None:
    assert effect_from_json(effect_to_json(EFFECT)) == EFFECT
    with pytest.raises(Exception, match="unknown field"):
        effect_from_json(effect_to_json(EFFECT).replace('"tool"', '"more":1,"tool"'))


async def test_journal_over_a_restart(tmp_path: Path) -> None:
    clock = FixedClock(AT)
    database = await Database.open(tmp_path / "kith.db", b"k" * 32, KITH)
    journal = StoredJournal(database, clock)
    assert await journal.find("key-1") is None
    yes = Approval("key-1", True, "owner, terminal", AT, {"text": "bread"})
    await journal.approved(EFFECT, yes)
    await journal.approved(EFFECT, yes)
    no = Effect("note_write", "write", "x", (), "key-2")
    await journal.approved(no, Approval("key-2", False, "deadline", AT))
    await database.close()
    database = await Database.open(tmp_path / "kith.db", b"k" * 32, KITH)
    journal = StoredJournal(database, clock)
    entry, = await journal.unfinished()
    assert (entry.effect, entry.approval, entry.applied, entry.undo) == (EFFECT, yes, False, None)
    denied = await journal.find("key-2")
    assert denied is not None
    assert not denied.approval.approved
    await journal.applied("key-1", {"name": "a.md", "size": 3})
    await journal.applied("key-1", {"name": "a.md", "size": 3})
    assert await journal.unfinished() == []
    last = await journal.last_applied()
    assert last is not None
    assert last.undo == {"name": "a.md", "size": 3}
    await journal.undone("key-1")
    assert await journal.last_applied() is None
    await database.close()


async def test_conversations_over_a_restart(tmp_path: Path) -> None:
    clock = FixedClock(AT)
    database = await Database.open(tmp_path / "kith.db", b"k" * 32, KITH)
    store = StoredConversations(database, clock, SystemEntropy())
    assert await store.latest() is None
    name = await store.create()
    text = Labeled("Dana owes 20", Confidentiality.PERSONAL, Integrity.LOCAL, "note", (Value("Dana", "PERSON"),))
    await store.append(name, TurnRecord("user", Labeled("hi", Confidentiality.PUBLIC, Integrity.OWNER, "owner"), AT))
    await store.append(name, TurnRecord("assistant", text, AT, "phone", ("note",),
        {"kind": "done", "tools": ["note_read"]}))
    draft = Draft("tool", "note_write", "take a note", AT, "text", ("a",), (Given("title", "x", AT),))
    await store.keep_draft(name, draft.as_json())
    await database.close()
    database = await Database.open(tmp_path / "kith.db", b"k" * 32, KITH)
    store = StoredConversations(database, clock, SystemEntropy())
    assert await store.latest() == name
    turns = await store.turns(name, limit=5)
    assert [turn.text for turn in turns] == [Labeled("hi", Confidentiality.PUBLIC, Integrity.OWNER, "owner"), text]
    assert (turns[1].ran_on, turns[1].detail) == ("phone", {"kind": "done", "tools": ["note_read"]})
    label = await store.label(name)
    assert label is not None
    assert (label.confidentiality, label.integrity) == (Confidentiality.PERSONAL, Integrity.LOCAL)
    stored = await store.draft(name)
    assert stored is not None
    assert Draft.from_json(stored) == draft
    await store.keep_draft(name, None)
    assert await store.draft(name) is None
    assert await store.label("nobody") is None
    await database.close()


@pytest.mark.parametrize("stored", [{}, {"kind": "odd", "given": [], "choices": []}, {"given": 1, "choices": []}])
def test_a_draft_of_another_version_is_dropped(stored: dict[str, object]) -> None:
    assert Draft.from_json(stored) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "picked"), [
    ("1", 0), ("the second", 1), ("Yes.", 0), ("no", "no"), ("never mind", "no"), ("Anna Lindqvist", 1),
    ("lindqvist", 1),
    ("something else", None), ("an", None), ("3", None),
])
def test_picking_a_choice(text: str, picked: object) -> None:
    assert pick_choice(text, ["Ana Kovac", "Anna Lindqvist"]) == picked
