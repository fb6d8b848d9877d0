"""No clash, no wrong person, no error of time over households drawn by seed, both changes of clocks among them.

A seeded tenth by default, all 1,000 with KITH_SOAK=full. The truth is calendar_oracle's, minute by minute in UTC; it is
checked by hand here, and each kind of fault is put in to see that it is found.
"""

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from calendar_oracle import Oracle, minute_of
from calendar_runs import ERRORS, count, judge_all
from random_calendars import ZONES, Booking, Household, Series, changes_of, household

import node.agent.skills.book_meeting as booking
import node.sources.slots as slots
from node.agent.ports import Interval
from node.agent.readers.people import AddressBook, People, Person
from node.sources.ics import Calendars

HOUSEHOLDS = 1_000
SEEDS = range(0, HOUSEHOLDS, 1 if os.environ.get("KITH_SOAK") == "full" else 10)
FEW = range(1, 250, 8)


@pytest.mark.soak
async def test_no_household_gets_a_clash_a_wrong_person_or_a_wrong_time() -> None:
    judged = await judge_all(SEEDS)
    found = count(judged)
    faults = [(one.house.seed, one.faults) for one in judged if one.faults]
    assert {kind: found[kind] for kind in ERRORS} == dict.fromkeys(ERRORS, 0), faults
    assert found["booked"] >= 0.45 * len(judged) and found["asked"] >= 0.07 * len(judged)
    assert found["missed"] <= 0.01 * len(judged) and found["other"] <= 0.02 * len(judged)


async def errors(kind: str, seeds: Sequence[int] = FEW) -> int:
    return count(await judge_all(seeds))[kind]


def of_the_change() -> list[int]:
    """Households that want a meeting at a stated hour of the very day when their clocks change."""
    found = []
    for seed in range(HOUSEHOLDS):
        house = household(seed)
        changes = {at.astimezone(ZoneInfo(house.zone)).date() for at in changes_of(house.zone, house.now.year)}
        if house.booking.fixed_min is not None and changes.intersection(house.booking.days):
            found.append(seed)
    return found


async def test_an_offset_of_the_wrong_day_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_the_day_before(day: date, minute: int, zone: ZoneInfo) -> datetime:
        local = datetime(day.year, day.month, day.day) + timedelta(minutes=minute)
        offset = (local - timedelta(days=1)).replace(tzinfo=zone).utcoffset()
        assert offset is not None
        return (local - offset).replace(tzinfo=UTC)

    monkeypatch.setattr(slots, "_at", of_the_day_before)
    monkeypatch.setattr(booking, "wall_time", of_the_day_before)
    seeds = of_the_change()
    assert len(seeds) >= 50
    assert await errors("time", seeds[:40]) >= 2


async def test_a_calendar_that_is_not_looked_at_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Calendars.busy

    def the_owners_only(self: Calendars, window: Interval, *, person: str | None = None) -> list[Interval]:
        return [] if person else real(self, window)

    monkeypatch.setattr(Calendars, "busy", the_owners_only)
    assert await errors("clash") >= 1


async def test_a_guess_between_two_people_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = AddressBook.read

    def guess(self: AddressBook, text: str, **more: Any) -> People:
        read = real(self, text, **more)
        guessed = [Person(one.candidates[0], one.span) for one in read.unclear if one.candidates]
        return People((*read.found, *guessed), tuple(one for one in read.unclear if not one.candidates))

    monkeypatch.setattr(AddressBook, "read", guess)
    assert await errors("wrong person") >= 1


# ---------------------------------------------------------------- the oracle and the generator themselves


def of(zone: str, series: Sequence[Series]) -> Oracle:
    asked = Booking("", (), False, 60, (date(2026, 3, 29),), (540, 1080), None, True)
    now = datetime(2026, 3, 1, tzinfo=UTC)
    return Oracle(Household(0, zone, now, (), {"owner.ics": tuple(series)}, {"owner.ics": None}, asked, (now, now)))


def spans(minutes: frozenset[int]) -> list[str]:
    """Runs of minutes, in UTC."""
    ordered = sorted(minutes)
    starts = [at for at in ordered if at - 1 not in minutes]
    ends = [at + 1 for at in ordered if at + 1 not in minutes]
    return [f"{datetime.fromtimestamp(a * 60, UTC):%m-%dT%H:%M}/{datetime.fromtimestamp(b * 60, UTC):%m-%dT%H:%M}"
            for a, b in zip(starts, ends, strict=True)]


@pytest.mark.parametrize(("zone", "series", "taken"), [
    # Berlin is at +1 until 29 March 2026, 01:00 UTC, then at +2: worked out by hand.
    ("Europe/Berlin", Series("a", "Europe/Berlin", datetime(2026, 3, 28, 9), 60, every_days=1, count=3),
     ["03-28T08:00/03-28T09:00", "03-29T07:00/03-29T08:00", "03-30T07:00/03-30T08:00"]),
    ("Europe/Berlin", Series("b", None, datetime(2026, 3, 29), 0, all_days=1), ["03-28T23:00/03-29T22:00"]),
    ("Europe/Berlin", Series("c", "UTC", datetime(2026, 3, 28, 9), 30, every_days=1, count=2),
     ["03-28T09:00/03-28T09:30", "03-29T09:00/03-29T09:30"]),
    ("Europe/Berlin", Series("d", "Europe/Berlin", datetime(2026, 3, 29, 2, 30), 120), ["03-29T01:30/03-29T02:30"]),
    # New York changes three weeks earlier: its afternoon is an hour earlier in Berlin in between.
    ("Europe/Berlin", Series("e", "America/New_York", datetime(2026, 3, 3, 10), 60, every_days=7, count=2),
     ["03-03T15:00/03-03T16:00", "03-10T14:00/03-10T15:00"]),
    ("Europe/Berlin", Series("f", "Europe/Berlin", datetime(2026, 3, 2, 9), 30, every_days=1, count=4, skipped=(1,),
                             moved=(2, datetime(2026, 3, 4, 12))),
     ["03-02T08:00/03-02T08:30", "03-04T11:00/03-04T11:30", "03-05T08:00/03-05T08:30"]),
    ("Europe/Berlin", Series("w", None, datetime(2026, 3, 26, 9), 30, weekdays=(1, 3), count=3, by_until=True),
     ["03-26T08:00/03-26T08:30", "03-31T07:00/03-31T07:30", "04-02T07:00/04-02T07:30"]),
    ("Europe/Berlin", Series("g", None, datetime(2026, 3, 2, 9), 30, opaque=False), []),
    ("Europe/Berlin", Series("h", None, datetime(2026, 3, 2, 9), 30, cancelled=True), []),
    # A night shift: in the night with an hour less the standard says six hours, most calendar programs five.
    ("Europe/Berlin", Series("i", "Europe/Berlin", datetime(2026, 3, 27, 23), 360, every_days=1, count=2),
     ["03-27T22:00/03-28T04:00", "03-28T22:00/03-29T03:00"]),
])
def test_the_oracle_by_hand(zone: str, series: Series, taken: list[str]) -> None:
    assert spans(of(zone, [series]).taken(None).surely) == taken


def test_the_oracle_knows_a_clash_and_a_wrong_hour() -> None:
    oracle = of("Europe/Berlin", [Series("a", None, datetime(2026, 3, 29, 9), 60)])
    nine, ten = datetime(2026, 3, 29, 7, tzinfo=UTC), datetime(2026, 3, 29, 8, tzinfo=UTC)
    assert oracle.clashes(nine, ten) and not oracle.clashes(ten, ten + timedelta(hours=1))
    assert oracle.misplaced(ten, ten + timedelta(hours=1)) == ""
    assert oracle.misplaced(ten, ten + timedelta(minutes=45)) == "45 minutes"
    assert "08:00" in oracle.misplaced(nine - timedelta(hours=1), nine)
    assert oracle.free_start() == minute_of(ten)


def test_the_households_have_what_is_asked_for() -> None:
    houses = [household(seed) for seed in range(0, HOUSEHOLDS, 10)]
    assert houses[3] == household(30)
    assert {house.zone for house in houses} == set(ZONES)
    every = [one for house in houses for series in house.files.values() for one in series]
    assert min(sum(map(bool, found)) for found in (
        [one.all_days for one in every], [one.moved for one in every], [one.skipped for one in every],
        [one.zone == "UTC" for one in every], [one.zone is None for one in every], [one.cancelled for one in every],
        [one.weekdays for one in every], [one.by_until for one in every],
    )) >= 10
    assert len(changes_of("Europe/Berlin", 2026)) == 2 and changes_of("Asia/Kolkata", 2026) == ()
    later = [change - house.now for house in houses for change in changes_of(house.zone, house.now.year)]
    assert sum(timedelta() < ahead < timedelta(days=7) for ahead in later) >= 50
    assert sum(house.booking.asks for house in houses) >= 5
