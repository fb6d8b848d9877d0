"""Undo goes back one action of the owner: after a correction, to what stood before it; shown first, and never twice."""

from pathlib import Path

import pytest
from agent_memory import Crash, MemoryJournal, Owner
from agent_node import World, fill_folder, world

from node.agent.effects import Effect
from node.agent.events import ApprovalNeeded
from node.agent.ports import Answer, AnswerKind

BOOKED = "put dentist on my calendar for Monday at 10:00"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill_folder(tmp_path)
    return tmp_path


async def talk(one: World, *texts: str) -> list[Answer]:
    answers: list[Answer] = []
    for text in texts:
        conversation = answers[0].conversation_id if answers else None
        answers.append(await one.ask(text, conversation_id=conversation))
    return answers


def days_of(one: World, title: str) -> list[str]:
    """The days of March 2026 on which the calendar file has events of this title."""
    events = one.calendar_text().replace("\r\n", "\n").split("BEGIN:VEVENT")
    found = [event for event in events if f"SUMMARY:{title}\n" in event]
    return sorted(event.split("DTSTART")[1].split("202603")[1][:2] for event in found)


async def test_after_a_correction_the_first_event_comes_back(root: Path) -> None:
    one = world(root)
    empty = one.calendar_text()
    answers = await talk(one, BOOKED, "no, Tuesday")
    assert days_of(one, "dentist") == ["24"]
    undone = await one.ask("undo that", conversation_id=answers[0].conversation_id)
    assert days_of(one, "dentist") == ["23"]
    shown = one.events.of(ApprovalNeeded)[-1].effect
    assert undone.kind is AnswerKind.DONE
    for text in (" ".join((shown.text, *shown.cautions)), undone.text):
        assert "23 March" in text
        assert "24 March" in text
    again = await one.ask("undo", conversation_id=answers[0].conversation_id)      # one more action back: the first
    assert (days_of(one, "dentist"), again.kind, one.calendar_text()) == ([], AnswerKind.DONE, empty)
    last = await one.ask("undo", conversation_id=answers[0].conversation_id)
    assert last.text == "There is nothing to take back."
    assert len(one.events.of(ApprovalNeeded)) == 3


async def test_two_corrections_go_back_one_by_one(root: Path) -> None:
    one = world(root)
    answers = await talk(one, BOOKED, "no, Tuesday", "no, Wednesday")
    seen = []
    for _ in range(4):
        await one.ask("undo", conversation_id=answers[0].conversation_id)
        seen.append(days_of(one, "dentist"))
    assert seen == [["24"], ["23"], [], []]


async def test_a_reminder_goes_back_to_its_first_time(root: Path) -> None:
    one = world(root)
    await talk(one, "remind me to call the vet tomorrow at 9", "no, Friday", "undo that")
    kept, = one.reminders.kept.values()
    assert (kept.text, kept.due.day) == ("call the vet", 19)


async def test_no_to_the_undo_changes_nothing_and_it_can_be_asked_for_again(root: Path) -> None:
    yes = iter([True, True, False, True])
    one = world(root, owner=Owner(lambda effect: next(yes)))
    answers = await talk(one, BOOKED, "no, Tuesday", "undo that")
    assert answers[2].kind is AnswerKind.DENIED
    assert "nothing was changed" in answers[2].text
    assert days_of(one, "dentist") == ["24"]
    await one.ask("undo that", conversation_id=answers[0].conversation_id)
    assert days_of(one, "dentist") == ["23"]


async def test_what_was_changed_since_by_hand_stays_and_nothing_is_put_back(root: Path) -> None:
    one = world(root)
    answers = await talk(one, BOOKED, "no, Tuesday")
    path = root / "calendars" / "owner.ics"
    path.write_bytes(path.read_bytes().replace(b"SUMMARY:dentist", b"SUMMARY:dentist, tooth 12"))
    undone = await one.ask("undo that", conversation_id=answers[0].conversation_id)
    assert undone.kind is AnswerKind.STOPPED
    assert "was changed in the calendar since" in undone.text
    assert one.calendar_text().count("SUMMARY:dentist") == 1


async def test_a_first_write_that_is_kept_no_longer_is_said_not_to_come_back(root: Path) -> None:
    one = world(root)
    answers = await talk(one, BOOKED, "no, Tuesday")
    del one.journal.entries[next(iter(one.journal.entries))]
    undone = await one.ask("undo that", conversation_id=answers[0].conversation_id)
    assert days_of(one, "dentist") == []
    assert "does not come back" in undone.text


async def test_the_command_needs_no_question(root: Path) -> None:
    def never(effect: Effect) -> bool:
        return len(one.owner.shown) <= 2

    one = world(root, owner=Owner(never))
    await talk(one, BOOKED, "no, Tuesday")
    undone = await one.agent.undo()
    assert undone is not None
    assert "23 March" in undone.text
    assert days_of(one, "dentist") == ["23"]
    assert len(one.owner.shown) == 2


@pytest.mark.parametrize("step", ["approved", "applied"])
async def test_killed_in_the_undo_it_is_finished_and_nothing_is_there_twice(root: Path, step: str) -> None:
    class Dies(MemoryJournal):
        async def applied(self, idempotency_key: str, undo: object) -> None:
            if idempotency_key.endswith("+") and step == "applied":
                raise Crash
            await super().applied(idempotency_key, undo)    # type: ignore[arg-type]

    journal = Dies()
    one = world(root, journal=journal)
    answers = await talk(one, BOOKED, "no, Tuesday")
    journal.crash_after_approval = step == "approved"
    with pytest.raises(Crash):
        await one.ask("undo that", conversation_id=answers[0].conversation_id)
    healthy = MemoryJournal()
    healthy.entries = journal.entries
    later = world(root, journal=healthy, conversations=one.conversations)
    assert await later.agent.start() == 1
    assert days_of(later, "dentist") == ["23"]
    assert await later.agent.start() == 0
