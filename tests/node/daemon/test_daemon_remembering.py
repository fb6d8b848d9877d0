"""What was read in a conversation is masked in all that leaves later in it: what was answered here, many turns ago, in
an earlier life of the node. The values stand in no list of the owner's."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fixed import FixedClock
from guard_bench import GuardBench, guard_bench

from node.agent.conversation import HISTORY_TURNS, Conversation
from node.agent.ports import Answer, AnswerKind, ConversationStore
from node.agent.records import StoredConversations
from node.clock import SystemEntropy
from node.daemon import remembering
from node.daemon.remembering import RememberedConversations
from node.privacy.egress import Part
from node.privacy.errors import GuardFailed
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, owner_text
from node.store.database import Database
from node.store.schema import KITH

NOTE = Labeled(
    "Treatment with Vrbnikol at 9", Confidentiality.PERSONAL, Integrity.LOCAL, "notes", (Value("Vrbnikol", "PRIVATE"),))
LATER = Part("user", owner_text("Is Vrbnikol taken with milk?"))
MASKED, OPEN = ("Is [PRIVATE_1] taken with milk?",), ("Is Vrbnikol taken with milk?",)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "kith.db", bytes(32), KITH)
    yield opened
    await opened.close()


def stored(database: Database) -> StoredConversations:
    return StoredConversations(database, FixedClock(), SystemEntropy())


def remembered(database: Database, guard: GuardBench) -> RememberedConversations:
    return RememberedConversations(
        stored(database), lambda conversation, texts: guard.egress.absorb(conversation, *texts))


async def talk(store: ConversationStore, turns: int) -> str:
    """A conversation that read the note, was answered here, and went on about other things."""
    conversation = await Conversation.open(None, store, FixedClock())
    answer = Answer(NOTE.value, AnswerKind.DONE, "phone", "", conversation.conversation_id)
    await conversation.heard(owner_text("read my note about the treatment"))
    await conversation.said(NOTE, answer)
    for _ in range(turns):
        await conversation.heard(owner_text("what is the time?"))
        await conversation.said(owner_text("It is noon."), answer)
    return conversation.conversation_id


async def texts_later(store: ConversationStore, guard: GuardBench, conversation_id: str) -> tuple[str, ...]:
    """What leaves when the conversation is taken up again and goes to a peer."""
    opened = await Conversation.open(conversation_id, store, FixedClock())
    assert all(NOTE.value != part.text.value for part in opened.parts())    # too long ago to go along
    return (await guard.clear(LATER, conversation=conversation_id)).texts


async def test_what_was_answered_here_long_ago_is_masked_later(database: Database) -> None:
    guard = await guard_bench([])
    store = remembered(database, guard)
    assert await texts_later(store, guard, await talk(store, HISTORY_TURNS)) == MASKED


async def test_without_it_the_value_leaves(database: Database) -> None:
    """The negative control."""
    guard = await guard_bench([])
    store = stored(database)
    assert await texts_later(store, guard, await talk(store, HISTORY_TURNS)) == OPEN


async def test_also_after_a_restart(database: Database) -> None:
    first = await guard_bench([])
    conversation_id = await talk(remembered(database, first), HISTORY_TURNS)
    guard = await guard_bench([])
    assert await texts_later(remembered(database, guard), guard, conversation_id) == MASKED
    control = await guard_bench([])
    assert await texts_later(stored(database), control, conversation_id) == OPEN


async def test_another_conversation_knows_nothing_of_it_and_a_deleted_one_is_forgotten(database: Database) -> None:
    guard = await guard_bench([])
    conversation_id = await talk(remembered(database, guard), 0)
    assert (await guard.clear(LATER, conversation="another")).texts == OPEN
    guard.egress.forget(conversation_id)
    assert (await guard.clear(LATER, conversation=conversation_id)).texts == OPEN


async def test_of_many_conversations_one_is_told_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembering, "_TAKEN_LIMIT", 1)
    guard = await guard_bench([])
    store = remembered(database, guard)
    first = await talk(store, HISTORY_TURNS)
    await talk(store, 0)
    guard.egress.forget(first)      # the guard, too, keeps a number of them only
    assert await texts_later(store, guard, first) == MASKED


async def test_a_conversation_with_too_many_values_goes_on_here_and_nothing_of_it_leaves(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("node.privacy.memory._VALUES_LIMIT", 2)
    guard = await guard_bench([])
    store = remembered(database, guard)
    many = tuple(Value(f"Vrbnikol {number}", "PRIVATE") for number in range(3))
    conversation = await Conversation.open(None, store, FixedClock())
    answer = Answer("x", AnswerKind.DONE, "phone", "", conversation.conversation_id)
    await conversation.said(Labeled("a list", Confidentiality.PERSONAL, Integrity.LOCAL, "notes", many), answer)
    with pytest.raises(GuardFailed):
        await guard.clear(LATER, conversation=conversation.conversation_id)
    turns: Any = await store.turns(conversation.conversation_id, limit=5)
    assert len(turns) == 1
    assert "Vrbnikol" not in caplog.text
