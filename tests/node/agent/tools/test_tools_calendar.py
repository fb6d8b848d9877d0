"""Calendar tools: what they show, what they write, and that an approved event is there exactly once."""

import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import icalendar
import pytest
from agent_node import fill_folder, world

from node.agent.ports import Effect, Origin
from node.agent.tools.calendar import CalendarFree, CalendarList
from node.agent.tools.calendar_create import CalendarCreate, uid_of
from node.agent.tools.errors import BadArgument, EffectRefused
from node.agent.tools.registry import Provenance, ToolContext
from node.privacy.labels import Confidentiality, Integrity, Value
from node.sources.ics import Calendars
from node.sources.vcf import Contacts

BERLIN = ZoneInfo("Europe/Berlin")
ROOT = Path(__file__).parents[4]
CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//t//
BEGIN:VEVENT
UID:1
SUMMARY:Dentist
DTSTART;TZID=Europe/Berlin:20260325T090000
DTEND;TZID=Europe/Berlin:20260325T103000
LOCATION:Mill Lane 4
ATTENDEE;CN=Dana Whitfield:mailto:dana@example.org
END:VEVENT
BEGIN:VEVENT
UID:2
SUMMARY:Ana's birthday
DTSTART;VALUE=DATE:20260325
DTEND;VALUE=DATE:20260326
TRANSP:TRANSPARENT
END:VEVENT
BEGIN:VEVENT
UID:3
SUMMARY:Night train
DTSTART;TZID=Europe/Berlin:20260325T220000
DTEND;TZID=Europe/Berlin:20260326T073000
END:VEVENT
END:VCALENDAR
"""
CARDS = """BEGIN:VCARD
VERSION:3.0
FN:Dana Whitfield
N:Whitfield;Dana;;;
EMAIL:dana@example.org
END:VCARD
"""


class StillClock:
    def now(self) -> datetime:
        return datetime(2026, 3, 18, 8, 30, tzinfo=UTC)

    def monotonic_s(self) -> float:
        return 0.0


CTX = ToolContext(StillClock(), BERLIN)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN)


@pytest.fixture
def calendars(tmp_path: Path) -> Calendars:
    (tmp_path / "owner.ics").write_text(CALENDAR)
    (tmp_path / "all.vcf").write_text(CARDS)
    return Calendars(tmp_path, BERLIN)


@pytest.fixture
def create(calendars: Calendars, tmp_path: Path) -> CalendarCreate:
    return CalendarCreate(calendars, Contacts(tmp_path), StillClock())


def events(folder: Path) -> list[str]:
    return [
        str(each["SUMMARY"])
        for each in icalendar.Calendar.from_ical((folder / "owner.ics").read_bytes()).walk("VEVENT")
    ]


# ------------------------------------------------------------ list


async def test_list_shows_days_and_marks_what_is_personal(calendars: Calendars) -> None:
    answer = await CalendarList(calendars).run({"when": (at("2026-03-25T00:00"), at("2026-03-27T00:00"))}, CTX)
    assert answer.text.value == (
        "Wednesday 25 March 2026: 3 events.\n"
        "- all day Ana's birthday\n"
        "- 09:00-10:30 Dentist, Mill Lane 4, with Dana Whitfield\n"
        "- 22:00 to Thursday 26 March 2026, 07:30 Night train"
    )
    assert (answer.text.confidentiality, answer.text.integrity) == (Confidentiality.PERSONAL, Integrity.LOCAL)
    assert answer.text.source == "calendar_list:owner.ics"
    assert set(answer.text.values or ()) == {
        Value("Dentist", "EVENT"),
        Value("Mill Lane 4", "ADDRESS"),
        Value("Dana Whitfield", "PERSON"),
        Value("Ana's birthday", "EVENT"),
        Value("Night train", "EVENT"),
    }


async def test_an_event_from_yesterday_stands_under_today(calendars: Calendars) -> None:
    answer = await CalendarList(calendars).run({"when": (at("2026-03-26T00:00"), at("2026-03-27T00:00"))}, CTX)
    assert answer.text.value.startswith("Thursday 26 March 2026: 1 event.\n- 22:00 to Thursday")


async def test_an_empty_period_says_so(calendars: Calendars) -> None:
    when = ((at("2026-04-01T00:00"), at("2026-04-02T00:00")), (at("2026-04-03T00:00"), at("2026-04-04T00:00")))
    answer = await CalendarList(calendars).run({"when": when}, CTX)
    assert answer.text.value == "Nothing is in your calendar for Wednesday 1 April 2026 to Friday 3 April 2026."


async def test_a_period_without_end_is_refused(calendars: Calendars) -> None:
    for tool in (CalendarList(calendars), CalendarFree(calendars)):
        with pytest.raises(BadArgument):
            await tool.run({"when": (at("2026-01-01T00:00"), at("2036-01-01T00:00"))}, CTX)


# ------------------------------------------------------------ free


async def test_free_takes_working_hours_for_a_whole_day(calendars: Calendars) -> None:
    answer = await CalendarFree(calendars).run(
        {"when": (at("2026-03-25T00:00"), at("2026-03-26T00:00")), "duration": 60}, CTX
    )
    assert answer.text.value == "You have time for 1 hour:\n- Wednesday 25 March 2026: 10:30-18:00"
    assert answer.data["slots"][0] == {"start": "2026-03-25T09:30:00+00:00", "end": "2026-03-25T10:30:00+00:00"}
    assert answer.text.values is None  # all of it is private


async def test_free_takes_a_part_of_a_day_as_it_is(calendars: Calendars) -> None:
    answer = await CalendarFree(calendars).run({"when": (at("2026-03-25T20:00"), at("2026-03-25T22:30"))}, CTX)
    assert answer.text.value == "You have time for 30 minutes:\n- Wednesday 25 March 2026: 20:00-22:00"


async def test_weekends_only_when_nothing_else_is_named(calendars: Calendars) -> None:
    weekend = await CalendarFree(calendars).run({"when": (at("2026-03-28T00:00"), at("2026-03-30T00:00"))}, CTX)
    assert "Saturday 28 March 2026: 09:00-18:00" in weekend.text.value  # the night of the change of clocks included
    week = await CalendarFree(calendars).run({"when": (at("2026-03-23T00:00"), at("2026-03-30T00:00"))}, CTX)
    assert "Friday 27 March" in week.text.value
    assert "Saturday" not in week.text.value


async def test_no_time_says_so(calendars: Calendars) -> None:
    answer = await CalendarFree(calendars).run(
        {"when": (at("2026-03-25T09:00"), at("2026-03-25T11:00")), "duration": 90}, CTX
    )
    assert answer.text.value == "You have no free 1 hour 30 minutes then."
    assert answer.data["slots"] == []


# ------------------------------------------------------------ create


async def test_plan_shows_everything_and_writes_nothing(create: CalendarCreate, tmp_path: Path) -> None:
    before = (tmp_path / "owner.ics").read_bytes()
    ctx = ToolContext(StillClock(), BERLIN, provenance={"title": Provenance(Origin.REQUEST, "your words")})
    effect = await create.plan(
        {"title": "Roof", "start": at("2026-03-25T10:00"), "attendees": ("Dana Whitfield", "Zoe")},
        ctx,
        idempotency_key="k1",
    )
    assert effect.text == (
        'New event "Roof" on Wednesday 25 March 2026, 10:00-10:30.\n'
        "With Dana Whitfield (dana@example.org) and Zoe (no e-mail address known). Nobody is told yet.\n"
        'It overlaps "Dentist" (09:00-10:30).'
    )
    assert {value.name: value.origin for value in effect.values} == {
        "title": Origin.REQUEST,
        "start": Origin.COMPUTED,
        "duration": Origin.DEFAULT,
        "end": Origin.COMPUTED,
        "attendees": Origin.COMPUTED,
    }
    assert (tmp_path / "owner.ics").read_bytes() == before


async def test_an_event_in_the_past_is_shown_as_one(create: CalendarCreate) -> None:
    past = await create.plan({"title": "Roof", "start": at("2020-03-25T10:00")}, CTX, idempotency_key="k1")
    assert past.text.endswith("\nThat time is past.")
    assert "past" not in (await planned(create)).text


async def planned(create: CalendarCreate, key: str = "k1") -> Effect:
    return await create.plan(
        {"title": "Roof", "start": at("2026-03-30T09:00"), "duration": 45}, CTX, idempotency_key=key
    )


async def test_apply_twice_is_one_event_and_undo_restores_every_byte(create: CalendarCreate, tmp_path: Path) -> None:
    before = (tmp_path / "owner.ics").read_bytes()
    effect = await planned(create)
    first = await create.apply(effect, "k1")
    second = await create.apply(effect, "k1")
    assert first == second
    assert events(tmp_path) == ["Dentist", "Ana's birthday", "Night train", "Roof"]
    other = await create.apply(await planned(create, "k2"), "k2")
    assert events(tmp_path).count("Roof") == 2  # another request for the same words is another event
    assert await create.undo(other) == '"Roof" is out of your calendar again.'
    assert await create.undo(first) == '"Roof" is out of your calendar again.'
    assert await create.undo(first) == '"Roof" is not in your calendar any more.'
    assert (tmp_path / "owner.ics").read_bytes() == before


async def test_undo_leaves_an_event_that_was_edited(create: CalendarCreate, tmp_path: Path) -> None:
    record = await create.apply(await planned(create), "k1")
    path = tmp_path / "owner.ics"
    path.write_bytes(path.read_bytes().replace(b"SUMMARY:Roof", b"SUMMARY:Roof and gutter"))
    with pytest.raises(EffectRefused):
        await create.undo(record)
    assert "Roof and gutter" in events(tmp_path)


async def test_apply_refuses_a_broken_calendar(create: CalendarCreate, tmp_path: Path) -> None:
    effect = await planned(create)
    (tmp_path / "owner.ics").write_text("broken")
    with pytest.raises(EffectRefused):
        await create.apply(effect, "k1")
    assert (tmp_path / "owner.ics").read_text() == "broken"


async def test_only_what_the_owner_saw_is_written(create: CalendarCreate, tmp_path: Path) -> None:
    effect = await planned(create)
    await create.apply(effect, "k1")
    [event] = [
        each
        for each in icalendar.Calendar.from_ical((tmp_path / "owner.ics").read_bytes()).walk("VEVENT")
        if each["UID"] == uid_of("k1")
    ]
    assert set(event) == {"UID", "DTSTAMP", "DTSTART", "DTEND", "SUMMARY"}
    assert event["DTEND"].dt - event["DTSTART"].dt == timedelta(minutes=45)


CHILD = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo
import trio
from node.agent.tools.calendar_create import CalendarCreate
from node.agent.tools.registry import ToolContext
from node.sources.ics import Calendars
from node.sources.vcf import Contacts
folder = Path(sys.argv[1])
class StillClock:
    def now(self): return datetime(2026, 3, 18, 8, 30, tzinfo=UTC)
    def monotonic_s(self): return 0.0
async def main():
    zone = ZoneInfo("Europe/Berlin")
    tool = CalendarCreate(Calendars(folder, zone), Contacts(folder), StillClock())
    args = {"title": "Roof", "start": datetime(2026, 3, 30, 9, tzinfo=zone), "duration": 45}
    effect = await tool.plan(args, ToolContext(StillClock(), zone), idempotency_key="k1")
    real = os.rename
    def die(*a, **k):
        if sys.argv[2] == "after":
            real(*a, **k)
        os.kill(os.getpid(), signal.SIGKILL)
    os.rename = die
    await tool.apply(effect, "k1")
trio.run(main)
"""


def die_while_applying(folder: Path, when: str) -> int:
    command = [sys.executable, "-c", CHILD, str(folder), when]
    return subprocess.run(command, cwd=ROOT, timeout=60, check=False).returncode


@pytest.mark.parametrize("when", ["before", "after"])
async def test_kill_9_around_the_write_then_again_is_one_event(
    create: CalendarCreate, tmp_path: Path, when: str
) -> None:
    returncode = die_while_applying(tmp_path, when)
    assert returncode == -signal.SIGKILL
    assert events(tmp_path).count("Roof") == (1 if when == "after" else 0)
    await create.apply(await planned(create), "k1")
    assert events(tmp_path) == ["Dentist", "Ana's birthday", "Night train", "Roof"]


@pytest.mark.parametrize(("text", "tool"), [
    ("what is on friday", "calendar_list"), ("do I have anything on friday", "calendar_list"),
    ("anything on tuesday?", "calendar_list"), ("what's happening tomorrow", "calendar_list"),
    ("am I free on friday", "calendar_free"), ("what free time is there on friday", "calendar_free"),
    ("is there anything free on friday", "calendar_free"),
])
async def test_what_is_on_is_told_from_what_is_free(tmp_path: Path, text: str, tool: str) -> None:
    fill_folder(tmp_path)
    assert (await world(tmp_path).ask(text)).tools_used == (tool,)
