"""Recurring events against a second, plain implementation, and whole booking requests against their hand-made gold."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.sources.event import merge
from node.sources.ics import Calendars
from node.sources.slots import SlotRules, free_slots

SHARED = Path(__file__).parents[4] / "shared" / "data" / "agent"
BERLIN = ZoneInfo("Europe/Berlin")
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
WINDOW = (datetime(2026, 3, 15, tzinfo=UTC), datetime(2026, 4, 15, tzinfo=UTC))  # both changes of clocks inside


@st.composite
def rules(draw: st.DrawFn) -> dict:
    return {
        "first": date(2026, 2, 1) + timedelta(days=draw(st.integers(0, 50))),
        "at": time(draw(st.integers(5, 22)), draw(st.sampled_from([0, 15, 30, 50]))),
        "minutes": draw(st.integers(10, 600)),
        "zone": draw(st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Sydney"])),
        "days": sorted(draw(st.sets(st.integers(0, 6), min_size=1, max_size=4))),
        "count": draw(st.one_of(st.none(), st.integers(1, 25))),
        "exdates": draw(st.sets(st.integers(0, 20), max_size=3)),
        "transparent": draw(st.sampled_from([False, False, False, True])),
        "cancelled": draw(st.sampled_from([False, False, False, True])),
    }


def by_hand(rule: dict) -> Iterator[tuple[datetime, datetime]]:
    """Weekly occurrences by walking over the days: the wall clock stays, the length is of the first one's."""
    zone = ZoneInfo(rule["zone"])
    number = 0
    for offset in range(120):
        day = rule["first"] + timedelta(days=offset)
        if day.weekday() not in rule["days"]:
            continue
        if rule["count"] is not None and number >= rule["count"]:
            return
        if number not in rule["exdates"]:
            start = datetime.combine(day, rule["at"], tzinfo=zone)
            # Within one zone Python adds wall-clock time; a calendar's end is a wall-clock time as well.
            yield start.astimezone(UTC), (start + timedelta(minutes=rule["minutes"])).astimezone(UTC)
        number += 1


def written(number: int, rule: dict) -> str:
    zone = ZoneInfo(rule["zone"])
    first = rule["first"]
    while first.weekday() not in rule["days"]:
        first += timedelta(days=1)
    start = datetime.combine(first, rule["at"], tzinfo=zone)
    starts = [
        datetime.combine(day, rule["at"])
        for offset in range(120)
        if (day := rule["first"] + timedelta(days=offset)).weekday() in rule["days"]
    ]
    lines = [
        "BEGIN:VEVENT",
        f"UID:{number}",
        "SUMMARY:x",
        f"DTSTART;TZID={rule['zone']}:{start:%Y%m%dT%H%M%S}",
        f"DTEND;TZID={rule['zone']}:{start + timedelta(minutes=rule['minutes']):%Y%m%dT%H%M%S}",
        "RRULE:FREQ=WEEKLY;BYDAY="
        + ",".join(DAYS[day] for day in rule["days"])
        + (f";COUNT={rule['count']}" if rule["count"] is not None else ""),
        *(
            f"EXDATE;TZID={rule['zone']}:{starts[at]:%Y%m%dT%H%M%S}"
            for at in sorted(rule["exdates"])
            if at < len(starts)
        ),
        *(["TRANSP:TRANSPARENT"] if rule["transparent"] else []),
        *(["STATUS:CANCELLED"] if rule["cancelled"] else []),
        "END:VEVENT",
    ]
    return "\r\n".join(lines)


@settings(max_examples=60, deadline=None)
@given(st.lists(rules(), min_size=1, max_size=6), st.integers(15, 240))
def test_busy_time_and_slots_agree_with_a_plain_walk_over_the_days(listed: list[dict], minutes: int) -> None:
    with TemporaryDirectory() as folder:
        text = [
            "BEGIN:VCALENDAR",
            "VERSION:2.0",
            "PRODID:-//t//",
            *(written(at, rule) for at, rule in enumerate(listed)),
            "END:VCALENDAR",
            "",
        ]
        (Path(folder) / "owner.ics").write_bytes("\r\n".join(text).encode())
        calendars = Calendars(Path(folder), BERLIN)
        busy = calendars.busy(WINDOW)
        assert calendars.problems() == []
    taken = [
        (max(start, WINDOW[0]), min(end, WINDOW[1]))
        for rule in listed
        if not rule["transparent"] and not rule["cancelled"]
        for start, end in by_hand(rule)
        if start < WINDOW[1] and end > WINDOW[0]
    ]
    assert busy == merge(taken)
    for start, end in free_slots(busy, SlotRules((WINDOW,), minutes, BERLIN), limit=50):
        assert not any(start < busy_to and busy_from < end for busy_from, busy_to in taken)


def cases() -> list[dict]:
    path = SHARED / "booking_dev.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_booking_requests_find_a_slot_exactly_when_there_is_one() -> None:
    if not cases():
        pytest.skip("the development calendars are not beside the checkout")
    calendars = Calendars(SHARED, BERLIN, people=lambda: ["Dana Whitfield", "Ravi Menon"])
    for case in cases():
        if case["expect"] == "ask":
            continue
        windows = tuple(
            (datetime.fromisoformat(start).replace(tzinfo=BERLIN), datetime.fromisoformat(end).replace(tzinfo=BERLIN))
            for start, end in case["windows"]
        )
        weekend = all(start.weekday() >= 5 and end - start <= timedelta(days=2) for start, end in windows)
        wanted = SlotRules(
            windows,
            case["duration_min"],
            BERLIN,
            case["day_from_min"],
            case["day_to_min"],
            frozenset(case["excluded_weekdays"]),
            weekends=weekend,
        )
        people = [None, *(person for person in case["people"] if calendars.known(person))]
        assert ("Dana Whitfield" in people) is ("Dana Whitfield" in case["people"])
        busy = [each for window in windows for person in people for each in calendars.busy(window, person=person)]
        slots = free_slots(busy, wanted)
        assert bool(slots) is (case["expect"] == "ok"), case["text"]
        for start, end in slots:
            assert not any(
                event.busy and event.start < end and start < event.end
                for person in people
                for event in calendars.events((start, end), person=person)
            )
