"""Conversations with labels that only get stricter, and the journal of effects that survives a crash at any step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_rows import memory_rows

from node.errors import StoreConflict, UsageError
from node.store import conversations, journal
from node.store.conversations import Turn
from node.store.journal import StepState

PUBLIC, PERSONAL = 0, 1
UNTRUSTED, LOCAL, OWNER = 0, 1, 2


def talk(tx, conversation_id="c1", now_ms=10):
    conversations.create(tx, conversation_id, now_ms, confidentiality=PUBLIC, integrity=OWNER)
    return conversations.append(tx, conversation_id, Turn("user", "What  is\nnext?", PUBLIC, OWNER, now_ms))


def test_turns_are_numbered_titled_and_kept_whole():
    tx = memory_rows()
    assert talk(tx) == 1
    said = Turn("assistant", "Dentist at 9.", PERSONAL, LOCAL, 20, "amber-otter-41", ("home.ics",), '{"tools": ["x"]}')
    assert conversations.append(tx, "c1", said) == 2
    found = conversations.turns(tx, "c1")
    assert [one.number for one in found] == [1, 2]
    assert found[1] == Turn("assistant", "Dentist at 9.", PERSONAL, LOCAL, 20, "amber-otter-41", ("home.ics",),
                            '{"tools": ["x"]}', 2)
    conversation = conversations.get(tx, "c1")
    assert (conversation.title, conversation.updated_ms) == ("What is next?", 20)
    assert [one.number for one in conversations.turns(tx, "c1", limit=1)] == [2]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=8))
def test_a_label_only_gets_stricter(labels):
    tx = memory_rows()
    conversations.create(tx, "c", 1, confidentiality=PUBLIC, integrity=OWNER)
    before = (PUBLIC, OWNER)
    for at, (confidentiality, integrity) in enumerate(labels):
        conversations.append(tx, "c", Turn("user", "x", confidentiality, integrity, at))
        now = conversations.get(tx, "c")
        assert now.confidentiality == max(before[0], confidentiality)
        assert now.integrity == min(before[1], integrity)
        before = (now.confidentiality, now.integrity)


def test_finding_listing_and_the_latest():
    tx = memory_rows()
    assert conversations.latest(tx) is None
    talk(tx, "aa11", 10)
    talk(tx, "aa22", 20)
    talk(tx, "bb33", 15)
    assert [one.conversation_id for one in conversations.newest(tx)] == ["aa22", "bb33", "aa11"]
    assert conversations.latest(tx).conversation_id == "aa22"
    assert conversations.find(tx, "bb").conversation_id == "bb33"
    assert conversations.find(tx, "cc") is None
    with pytest.raises(UsageError):
        conversations.find(tx, "aa")
    with pytest.raises(StoreConflict):
        conversations.append(tx, "zz", Turn("user", "x", 0, 0, 1))


def test_a_draft_waits_is_replaced_and_dropped():
    tx = memory_rows()
    talk(tx)
    assert conversations.draft(tx, "c1") is None
    conversations.keep_draft(tx, "c1", '{"tool": "calendar_create"}')
    assert conversations.draft(tx, "c1") == '{"tool": "calendar_create"}'
    conversations.keep_draft(tx, "c1", None)
    assert conversations.draft(tx, "c1") is None


def test_deleting_takes_the_turns_and_export_gives_everything():
    tx = memory_rows()
    talk(tx, "c1")
    talk(tx, "c2", 20)
    exported = conversations.export(tx)
    assert [one["conversation_id"] for one in exported] == ["c2", "c1"]
    assert exported[1]["turns"][0]["text"] == "What  is\nnext?"
    assert conversations.delete(tx, "c1")
    assert not conversations.delete(tx, "c1")
    assert tx.execute("SELECT count(*) FROM turns").fetchone() == (1,)
    assert conversations.export(tx, ["c1", "c2"])[0]["conversation_id"] == "c2"


# ---- journal

def planned(tx, key="k1", plan='{"title": "Dentist"}', run_id="run", step="calendar_create", now_ms=10):
    return journal.plan(tx, key=key, run_id=run_id, step=step, plan=plan, now_ms=now_ms)


def test_a_step_goes_planned_approved_applied_undone():
    tx = memory_rows()
    assert planned(tx).state is StepState.PLANNED
    assert journal.advance(tx, "k1", StepState.APPROVED, 20, decision='{"by": "owner"}').decision == '{"by": "owner"}'
    applied = journal.advance(tx, "k1", StepState.APPLIED, 30, record='{"uid": "u"}')
    assert (applied.record, applied.decision, applied.updated_ms) == ('{"uid": "u"}', '{"by": "owner"}', 30)
    assert journal.last_undoable(tx) == applied
    journal.advance(tx, "k1", StepState.UNDONE, 40)
    assert journal.last_undoable(tx) is None


def test_the_same_key_is_one_step_and_never_another():
    tx = memory_rows()
    first = planned(tx)
    journal.advance(tx, "k1", StepState.APPROVED, 20)
    assert planned(tx, now_ms=99).number == first.number
    with pytest.raises(StoreConflict):
        planned(tx, plan='{"title": "Other"}')
    with pytest.raises(StoreConflict):
        planned(tx, step="note_write")


@pytest.mark.parametrize(("path", "wrong"), [
    ((), StepState.APPLIED),
    ((), StepState.UNDONE),
    ((StepState.DENIED,), StepState.APPROVED),
    ((StepState.APPROVED,), StepState.DENIED),
    ((StepState.APPROVED, StepState.APPLIED), StepState.APPROVED),
    ((StepState.APPROVED, StepState.APPLIED, StepState.UNDONE), StepState.APPLIED),
    ((StepState.APPROVED, StepState.FAILED), StepState.APPLIED),
])
def test_no_step_is_skipped_and_none_goes_back(path, wrong):
    tx = memory_rows()
    planned(tx)
    for state in path:
        journal.advance(tx, "k1", state, 20)
        journal.advance(tx, "k1", state, 21)  # again changes nothing
    with pytest.raises(StoreConflict):
        journal.advance(tx, "k1", wrong, 30)
    with pytest.raises(StoreConflict):
        journal.advance(tx, "unknown", StepState.APPROVED, 30)


def test_what_a_crash_left_behind_is_found_in_order_and_undo_takes_the_last_applied():
    tx = memory_rows()
    for key in ("a", "b", "c", "d"):
        planned(tx, key)
    for key in ("d", "b", "a"):
        journal.advance(tx, key, StepState.APPROVED, 20)
    assert [one.key for one in journal.unfinished(tx)] == ["a", "b", "d"]
    journal.advance(tx, "b", StepState.APPLIED, 30, record="{}")
    journal.advance(tx, "a", StepState.APPLIED, 30, record="{}")
    journal.advance(tx, "d", StepState.APPLIED, 30)  # nothing to undo it with
    assert journal.last_undoable(tx).key == "a"
    journal.advance(tx, "a", StepState.UNDONE, 40)
    assert journal.last_undoable(tx).key == "b"


def test_old_steps_go_but_for_unfinished_ones_and_the_one_undone_next():
    tx = memory_rows()
    ways = {
        "asked": (), "yes": ("approved",), "no": ("denied",), "wrong": ("approved", "failed"),
        "back": ("approved", "applied", "undone"), "done": ("approved", "applied"), "last": ("approved", "applied"),
    }
    for key, states in ways.items():
        planned(tx, key)
        for state in states:
            journal.advance(tx, key, StepState(state), 20, record="{}" if state == "applied" else None)
    assert journal.drop_before(tx, 20, limit=9) == 0
    assert [journal.drop_before(tx, 21, limit=3) for _ in range(3)] == [3, 1, 0]
    assert [key for key in ways if journal.get(tx, key) is not None] == ["asked", "yes", "last"]
    assert journal.last_undoable(tx).key == "last"
    planned(tx, "new")
    journal.advance(tx, "new", StepState.APPROVED, 30)
    journal.advance(tx, "new", StepState.APPLIED, 30, record="{}")
    assert journal.last_undoable(tx).key == "new"
    assert journal.drop_before(tx, 25, limit=9) == 1
