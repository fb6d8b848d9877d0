"""What could not be read of the calendars is named beside every answer and before every write that rests on them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_memory import Owner
from agent_node import World, fill_folder, world
from closed_folder import as_somebody_else, close, open_to_all

from node.agent.events import Status
from node.agent.ports import AnswerKind
from node.agent.tools.wording import unread_note

CUT_OFF = "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nUID:1\nSUMMARY:Surprise for Ravi\n"
NOTE = "Could not be read in full: trip.ics. What stands there may be missing here (kith doctor says why)."
READS = (
    "what's on my calendar on Saturday", "what's on my calendar tomorrow", "when am I free on Friday",
    "brief me for tomorrow", "how does my day look?",
)
WRITES = (
    "put dentist on my calendar on Friday at 8", "book an hour with Dana about the boiler next Monday",
    "plan my errands for Friday: bank, bakery",
)


@pytest.fixture
def one(tmp_path: Path) -> World:
    fill_folder(tmp_path)
    return world(tmp_path, owner=Owner(lambda effect: False))


@pytest.mark.parametrize("text", READS)
async def test_an_answer_names_what_it_could_not_read(one: World, text: str) -> None:
    assert "could not be read" not in (await one.ask(text)).text.lower()        # the control: all is whole
    (one.root / "calendars" / "trip.ics").write_text(CUT_OFF)
    answer = await one.ask(text)
    assert answer.kind is AnswerKind.DONE
    assert answer.text.endswith(NOTE) or f"{NOTE}\n" in answer.text
    assert "Surprise" not in answer.text
    (one.root / "calendars" / "trip.ics").unlink()
    assert NOTE not in (await one.ask(text)).text


@pytest.mark.parametrize("text", WRITES)
async def test_a_booking_says_it_before_it_is_confirmed(one: World, text: str) -> None:
    await one.ask(text)
    (one.root / "calendars" / "trip.ics").write_text(CUT_OFF)
    answer = await one.ask(text)
    assert answer.kind is AnswerKind.DENIED
    assert [NOTE in effect.text for effect in one.owner.shown] == [False, True]
    assert "Surprise" not in one.owner.shown[1].text


async def test_no_free_time_is_said_with_what_was_not_seen(one: World) -> None:
    (one.root / "calendars" / "trip.ics").write_text(CUT_OFF)
    answer = await one.ask("book an hour with Ravi about the boiler on Monday at 10")
    assert (answer.kind, one.owner.shown) == (AnswerKind.DONE, [])
    assert NOTE in answer.text


async def test_anothers_broken_calendar_is_named_where_that_person_is_asked_about(one: World) -> None:
    (one.root / "calendars" / "dana.ics").write_text(CUT_OFF)
    assert "dana.ics" in (await one.ask("is Dana free tomorrow afternoon")).text
    answer = await one.ask("book an hour with Dana about the boiler next Monday")
    assert answer.kind is AnswerKind.DENIED
    assert any("dana.ics" in event.text for event in one.events.of(Status))
    assert "dana.ics" not in (await one.ask("what's on my calendar on Friday")).text    # of nobody's else concern


async def test_an_event_that_cannot_be_read_counts_too(one: World) -> None:
    (one.root / "calendars" / "trip.ics").write_text(
        "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nUID:1\nSUMMARY:Odd\nDTSTART:20260320T090000Z\n"
        "DTEND:20260320T100000Z\nRRULE:FREQ=SOMETIMES\nEND:VEVENT\nEND:VCALENDAR\n")
    assert "trip.ics" in (await one.ask("what's on my calendar on Friday")).text


@pytest.fixture
def closed(one: World) -> Iterator[World]:
    (one.root / "calendars" / "work").mkdir()
    open_to_all(one.root)
    yield one
    open_to_all(one.root)


async def test_a_folder_that_is_closed_is_named(closed: World) -> None:
    await closed.ask("what's on my calendar on Friday")   # what is loaded late is there, then
    close(closed.root / "calendars" / "work", 0o000)
    with as_somebody_else():
        answer = await closed.ask("what's on my calendar on Friday")
    assert "Could not be read in full: work." in answer.text


def test_names_are_few_and_on_one_line() -> None:
    assert unread_note([]) == ""
    note = unread_note(["a\nb.ics", "c", "d", "e", "f"])
    assert note.startswith("Could not be read in full: a?b.ics, c, d and 2 more")
