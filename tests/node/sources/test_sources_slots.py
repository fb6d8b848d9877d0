"""Free slots: never on busy time, always inside the rules, right over both changes of clocks."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.sources.event import merge
from node.sources.slots import SlotRules, free_slots, free_time

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: ZoneInfo = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


def shown(slots: list) -> list[str]:
    return [f"{start.astimezone(BERLIN):%d.%m. %H:%M}-{end.astimezone(BERLIN):%H:%M}" for start, end in slots]


def rules(first: str, last: str, minutes: int = 60, **more: object) -> SlotRules:
    return SlotRules(((at(first), at(last)),), minutes, BERLIN, **more)  # type: ignore[arg-type]


def test_working_hours_and_weekdays_when_nothing_else_is_said() -> None:
    week = rules("2026-03-20T00:00", "2026-03-24T00:00", minutes=240)
    busy = [(at("2026-03-20T09:00"), at("2026-03-20T13:30"))]
    assert shown(free_slots(busy, week, limit=5)) == [
        "20.03. 13:30-17:30",
        "20.03. 13:45-17:45",
        "20.03. 14:00-18:00",
        "23.03. 09:00-13:00",
        "23.03. 09:15-13:15",
    ]


def test_a_named_weekend_is_allowed() -> None:
    weekend = rules("2026-03-21T00:00", "2026-03-23T00:00", minutes=180, weekends=True)
    assert shown(free_slots([], weekend, limit=1)) == ["21.03. 09:00-12:00"]
    assert free_slots([], rules("2026-03-21T00:00", "2026-03-23T00:00", minutes=180)) == []


def test_part_of_day_and_excluded_weekdays() -> None:
    mornings = rules(
        "2026-03-23T00:00",
        "2026-03-28T00:00",
        minutes=300,
        day_from_min=360,
        day_to_min=720,
        excluded_weekdays=frozenset({0, 1, 3}),
    )
    assert shown(free_slots([], mornings, limit=20)) == [
        f"{day}.03. {start}"
        for day in (25, 27)
        for start in ("06:00-11:00", "06:15-11:15", "06:30-11:30", "06:45-11:45", "07:00-12:00")
    ]


def test_starts_stand_on_the_quarter_hour_and_after_the_window_opens() -> None:
    assert shown(free_slots([], rules("2026-03-18T09:31", "2026-03-18T18:00"), limit=1)) == ["18.03. 09:45-10:45"]


def test_touching_busy_times_leave_no_slot_and_no_gap() -> None:
    busy = [(at("2026-03-18T09:00"), at("2026-03-18T12:00")), (at("2026-03-18T12:00"), at("2026-03-18T17:15"))]
    assert free_slots(busy, rules("2026-03-18T00:00", "2026-03-19T00:00")) == []
    assert shown(free_slots(busy, rules("2026-03-18T00:00", "2026-03-19T00:00", minutes=45))) == ["18.03. 17:15-18:00"]


@pytest.mark.parametrize(("day", "expected_hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-03-30", 24)])
def test_a_day_of_the_change_of_clocks_has_its_real_length(day: str, expected_hours: int) -> None:
    after = (datetime.fromisoformat(day) + timedelta(days=1)).isoformat()
    whole = rules(day, after, day_from_min=0, day_to_min=1440, weekends=True)
    [(start, end)] = free_time([], whole)
    assert end - start == timedelta(hours=expected_hours)


def test_the_skipped_hour_is_never_offered() -> None:
    night = rules("2026-03-29T00:00", "2026-03-29T06:00", minutes=60, day_from_min=0, day_to_min=1440, weekends=True)
    slots = free_slots([], night, limit=100)
    assert all(end - start == timedelta(hours=1) for start, end in slots)
    assert "29.03. 01:30-03:30" in shown(slots)  # one hour on the clock of the world, two on the wall
    assert not any(" 02:" in text.split("-")[0] for text in shown(slots))


moments = st.integers(0, 40 * 24 * 4).map(
    lambda quarter: datetime(2026, 3, 10, tzinfo=UTC) + timedelta(minutes=15 * quarter)
)
odd_moments = st.tuples(moments, st.integers(0, 14)).map(lambda pair: pair[0] + timedelta(minutes=pair[1]))
intervals = st.tuples(odd_moments, st.integers(1, 2_000)).map(
    lambda pair: (pair[0], pair[0] + timedelta(minutes=pair[1]))
)
zones = st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"]).map(
    ZoneInfo
)


@settings(max_examples=300, deadline=None)
@given(
    busy=st.lists(intervals, max_size=25),
    windows=st.lists(intervals, min_size=1, max_size=4),
    minutes=st.integers(5, 300),
    zone=zones,
    hours=st.one_of(st.none(), st.tuples(st.integers(0, 1380), st.integers(60, 1440))),
    excluded=st.frozensets(st.integers(0, 6), max_size=4),
    weekends=st.booleans(),
)
def test_no_slot_ever_overlaps_busy_time_or_leaves_the_rules(
    busy, windows, minutes, zone, hours, excluded, weekends
) -> None:
    wanted = SlotRules(
        tuple(windows), minutes, zone, hours[0] if hours else None, hours[1] if hours else None, excluded, weekends
    )
    joined = merge(list(windows))
    for start, end in free_slots(busy, wanted, limit=200):
        assert end - start == timedelta(minutes=minutes)
        assert start.tzinfo is UTC
        assert start.minute % 15 == start.second == 0
        assert not any(start < busy_to and busy_from < end for busy_from, busy_to in busy)
        assert any(low <= start and end <= high for low, high in joined)
        local, local_end = start.astimezone(zone), end.astimezone(zone)
        assert local.weekday() not in excluded
        assert weekends or local.weekday() < 5
        day_from, day_to = hours or (540, 1080)
        assert local.hour * 60 + local.minute >= day_from
        ends_at = local_end.hour * 60 + local_end.minute or 1440
        assert ends_at <= day_to
