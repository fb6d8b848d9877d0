"""The booking skill on its development bank: right people, exact length, inside every constraint, never a clash."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import agent_bank as bank
import pytest
from agent_memory import Events, Owner
from agent_node import fill_folder, world
from booking_gold import faults
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.agent_bookings import measure_bookings, variations
from node.agent.ports import AnswerKind, Interval
from node.agent.readers.windows import Locale
from node.agent.skills.book_meeting import BookMeeting
from node.agent.skills.booking_words import names_all_of_a_meeting
from node.agent.skills.registry import SkillAsk, SkillCall, SkillOutcome, SkillSay, SkillWrite
from node.agent.skills.see_availability import SeeAvailability
from node.agent.slots import SlotReader
from node.sources.ics import Calendars


@pytest.fixture
def calendars(tmp_path: Path) -> Calendars:
    fill_folder(tmp_path)
    return Calendars(tmp_path / "calendars", bank.ZONE, people=lambda: bank.TOOLS["contacts"])


async def run(skill: BookMeeting | SeeAvailability, text: str, now: datetime = bank.NOW,
    **answers: str) -> SkillOutcome:
    reader = bank.reader()
    said = {slot: reader.read(words, now, names_expected=slot == "people") for slot, words in answers.items()}
    return await skill.run(SkillCall(reader.read(text, now), said, reader, Events()))


def wrong(row: dict[str, Any], outcome: SkillOutcome, calendars: Calendars) -> list[str]:
    """What the outcome violates of the gold: the checks are made from the gold alone, not from the readers."""
    if row["expect"] != "ok":
        expected = {"ask": SkillAsk, "none": SkillSay}[row["expect"]]
        return [] if isinstance(outcome, expected) else [f"no {row['expect']}"]
    if not isinstance(outcome, SkillWrite):
        return [f"no write: {outcome!r}"]
    args: Any = outcome.args
    return faults(row, (tuple(args.get("attendees", ())), args["start"], args["duration"]), calendars)


async def test_the_booking_bank(calendars: Calendars) -> None:
    results = [wrong(row, await run(BookMeeting(calendars), row["text"]), calendars) for row in bank.bookings()]
    assert sum(not found for found in results) >= 19        # of 20
    assert not any("clash" in found or "people" in found for found in results)


async def test_the_checks_above_can_fail(calendars: Calendars) -> None:
    row = next(row for row in bank.bookings() if row["expect"] == "ok" and row["excluded_weekdays"])
    outcome = await run(BookMeeting(calendars), row["text"])
    assert isinstance(outcome, SkillWrite)
    moved = SkillWrite(outcome.tool, {**outcome.args, "start": datetime(2026, 3, 23, 10, 20, tzinfo=bank.ZONE),
        "duration": 7},
                       outcome.provenance, "", "")
    assert {"length", "weekday", "clash", "grid"} <= set(wrong(row, moved, calendars))


async def test_variations_of_phrasing_over_the_whole_agent() -> None:
    rows = variations()
    assert len(rows) >= 40 and len({row["text"] for row in rows}) == len(rows)
    assert not {row["text"] for row in rows} & {row["text"] for row in bank.bookings()}
    skill, agent = await measure_bookings(rows)
    assert len(skill) <= 0.15 * len(rows), skill
    assert len(agent) <= 0.15 * len(rows), agent
    assert not any("clash" in line or "people" in line for line in (*skill, *agent))


@pytest.mark.parametrize(("text", "all_said"), [
    ("Dana and I should sit down tomorrow for half an hour", True), ("an hour with Ravi on Friday", True),
    ("could we see Priya for 20 minutes next week", True), ("book an hour with Zoe tomorrow", True),
    ("tell Dana that I need half an hour with Ravi tomorrow", False), ("cancel my hour with Dana tomorrow", False),
    ("remind me to book an hour with Dana on Friday", False), ("is my meeting with Dana on Friday an hour long", False),
    ("note that Dana and I met for an hour on Monday", False), ("book an hour tomorrow", False),
    ("what about the hour with Dana tomorrow", False), ("book Dana tomorrow", False), ("book an hour with Dana", False),
    ("let Dana know I need an hour with her tomorrow", False), ("move my hour with Dana to Friday", False),
    ("Dana says the film of tomorrow is two hours long", False), ("call Dana for 20 minutes tomorrow", False),
])
def test_who_how_long_and_when_in_the_way_of_a_meeting_leave_nothing_to_choose(text: str, all_said: bool) -> None:
    assert names_all_of_a_meeting(bank.reader().read(text, bank.NOW)) is all_said


@pytest.mark.parametrize("text", [
    "tell Dana that we meet on Tuesday at 4pm about the roof", "let Ravi know the meeting is on Friday at 3",
    "could you text Priya: lunch with Sofia tomorrow at one",
])
async def test_words_to_pass_on_are_no_booking(text: str, calendars: Calendars) -> None:
    assert BookMeeting(calendars).evidence(bank.reader().read(text, bank.NOW)) == 0.0


async def test_titles_are_soft_and_shown(calendars: Calendars) -> None:
    rows = [row for row in bank.bookings() if row["titles"]]
    hits = 0
    for row in rows:
        outcome = await run(BookMeeting(calendars), row["text"])
        accepted = [title.lower() for title in row["titles"]]
        hits += isinstance(outcome, SkillWrite) and str(outcome.args["title"]).lower() in accepted
    assert hits >= len(rows) - 2


@pytest.mark.parametrize(("text", "slot", "part"), [
    ("book 45 minutes with Zoe next Monday", "people", "Zoe"),
    ("book an hour with Ann next week", "people", "Ana Kovac or Anna"),
    ("Book a meeting with Ravi about the boiler", "when", "When"),
    ("schedule a call with Dana and Bjorn tomorrow", "people", "Bjorn"),
])
async def test_asks_for_exactly_what_is_missing(calendars: Calendars, text: str, slot: str, part: str) -> None:
    outcome = await run(BookMeeting(calendars), text)
    assert isinstance(outcome, SkillAsk)
    assert outcome.slot == slot
    assert part in outcome.question


async def test_answers_fill_what_was_asked(calendars: Calendars) -> None:
    outcome = await run(BookMeeting(calendars), "book a meeting with Zoe about the boiler", people="Dana",
        when="next Monday morning")
    assert isinstance(outcome, SkillWrite)
    assert outcome.args["attendees"] == ("Dana Whitfield",)
    assert outcome.args["title"] == "Boiler"
    again = await run(BookMeeting(calendars), "book a meeting with Zoe", people="Bjorn")
    assert isinstance(again, SkillAsk)


async def test_defaults_are_said_aloud(calendars: Calendars) -> None:
    outcome = await run(BookMeeting(calendars), "book a meeting with Ravi next week")
    assert isinstance(outcome, SkillWrite)
    assert outcome.args["duration"] == 30
    assert "30 minutes" in outcome.before
    assert "Ravi Menon's calendar" in outcome.before
    assert outcome.provenance["duration"].source.startswith("default")
    assert "not told" in outcome.after


async def test_usual_hours_and_no_weekend_unless_said(calendars: Calendars) -> None:
    for text in ("book an hour next week", "set aside two hours as soon as possible for the papers"):
        outcome = await run(BookMeeting(calendars), text)
        assert isinstance(outcome, SkillWrite)
        start: Any = outcome.args["start"]
        local = start.astimezone(bank.ZONE)
        assert 9 <= local.hour < 18
        assert local.weekday() < 5


async def test_a_taken_fixed_time_is_said(calendars: Calendars) -> None:
    outcome = await run(BookMeeting(calendars), "book half an hour with Tomas tomorrow at 4pm")
    assert isinstance(outcome, SkillSay)
    assert "16:00" in outcome.text.value
    assert "taken" in outcome.text.value


async def test_a_day_that_is_over_is_said(calendars: Calendars) -> None:
    outcome = await run(BookMeeting(calendars), "book a meeting with Tomas yesterday")
    assert isinstance(outcome, SkillSay)
    assert outcome.text.value == "That time is over. Nothing was written. Give a day that is still to come."


async def test_repeating_events_are_not_pretended(tmp_path: Path) -> None:
    fill_folder(tmp_path)
    owner = Owner()
    await world(tmp_path, owner=owner).ask("schedule yoga every Tuesday at 18:00")
    shown, = owner.shown
    assert shown.tool == "calendar_create"
    assert "Nothing is repeated yet: this is for the first time only." in shown.cautions


async def test_a_meeting_on_the_day_the_clocks_change(calendars: Calendars) -> None:
    outcome = await run(BookMeeting(calendars), "set aside an hour on Sunday 29 March at 10am for the hedge")
    assert isinstance(outcome, SkillWrite)
    assert outcome.args["start"] == datetime(2026, 3, 29, 8, 0, tzinfo=UTC)     # summer time by then


async def test_a_name_that_ends_in_the_is_no_part_of_a_date(calendars: Calendars) -> None:
    outcome = await run(BookMeeting(calendars), "Schedule a meeting with Xanthe next week for two hours")
    assert isinstance(outcome, SkillAsk)
    assert "Xanthe" in outcome.question


def night(name: str, day: int, month: int) -> tuple[datetime, Any]:
    zone = ZoneInfo(name)
    return datetime(2026, month, day, 12, tzinfo=zone) - timedelta(days=2), zone


@pytest.mark.parametrize(("zone", "day", "month", "said", "start"), [
    # The hour from two to three comes twice on 25 October: the first is meant, and a busy one is not moved within it.
    ("Europe/Berlin", 25, 10, "2:00 am", "2026-10-25T00:00Z"),
    ("Europe/Berlin", 25, 10, "1:30 am", "2026-10-24T23:30Z"),
    # It does not come at all on 29 March.
    ("Europe/Berlin", 29, 3, "1:30 am", "2026-03-29T00:30Z"), ("Europe/Berlin", 29, 3, "2:30 am", "2026-03-29T01:30Z"),
    ("Australia/Lord_Howe", 5, 4, "1:30 am", "2026-04-04T14:30Z"),
    ("Europe/Berlin", 29, 3, "10:10 am", "2026-03-29T08:10Z"),
])
async def test_a_said_time_is_kept_in_nights_when_clocks_change(
    zone: str, day: int, month: int, said: str, start: str,
) -> None:
    now, where = night(zone, day, month)
    reader = SlotReader(bank.BOOK, Locale(where))
    text = f"book two hours with Dana on Sunday at {said}"
    free = await BookMeeting(Busy([])).run(SkillCall(reader.read(text, now), {}, reader, Events()))
    assert isinstance(free, SkillWrite)
    assert free.args["start"] == datetime.fromisoformat(start)
    first = datetime.fromisoformat(start)
    taken = BookMeeting(Busy([(first, first + timedelta(minutes=30))]))
    full = await taken.run(SkillCall(reader.read(text, now), {}, reader, Events()))
    assert isinstance(full, SkillSay)


class Busy:
    """A calendar with given busy times, the same for everybody."""

    def __init__(self, taken: list[Interval]) -> None:
        self.taken = taken

    def busy(self, window: Interval, *, person: str | None = None) -> list[Interval]:
        return [(start, end) for start, end in self.taken if start < window[1] and window[0] < end]

    def known(self, person: str) -> bool:
        return True

    def unreadable(self, person: str | None = None) -> list[str]:
        return []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 14 * 24 * 4), st.integers(1, 40)), max_size=40),
       st.sampled_from(["next week", "tomorrow", "this weekend", "next week, afternoons", "between Monday and Friday",
       "on 29 March"]),
       st.integers(5, 300))
async def test_a_booked_slot_never_overlaps_a_busy_time(blocks: list[tuple[int, int]], when: str, minutes: int) -> None:
    base = bank.NOW.replace(hour=0, minute=0)
    taken = [(base + timedelta(minutes=15 * at), base + timedelta(minutes=15 * (at + length))) for at, length in blocks]
    outcome = await run(BookMeeting(Busy(taken)), f"book {minutes} minutes with Dana {when}")
    if isinstance(outcome, SkillWrite):
        starts: list[Any] = [outcome.args["start"], *outcome.options.get("start", {}).values()]
        for start in starts:
            end = start + timedelta(minutes=minutes)
            assert not any(busy_from < end and start < busy_to for busy_from, busy_to in taken)
            assert start >= bank.NOW


async def test_availability_of_others_is_never_the_owners(calendars: Calendars) -> None:
    known = await run(SeeAvailability(calendars), "is Dana free tomorrow afternoon")
    assert isinstance(known, SkillSay)
    assert "12:00-18:00" in known.text.value             # the owner is busy then
    stranger = await run(SeeAvailability(calendars), "is Tomas free on Friday")
    assert isinstance(stranger, SkillSay)
    assert "do not have the calendar" in stranger.text.value
    asked = await run(SeeAvailability(calendars), "when is Ann free")
    assert isinstance(asked, SkillAsk)


async def test_over_the_whole_agent(tmp_path: Path) -> None:
    fill_folder(tmp_path)
    one = world(tmp_path)
    asked = await one.ask("book 45 minutes with Zoe next Monday")
    assert (asked.kind, asked.missing) == (AnswerKind.ASKED, "people")
    done = await one.ask("Dana", conversation_id=asked.conversation_id)
    assert done.kind is AnswerKind.DONE
    assert done.tools_used == ("book_meeting", "calendar_create")
    assert one.calendar_text().count("SUMMARY:Meeting with Dana") == 1
