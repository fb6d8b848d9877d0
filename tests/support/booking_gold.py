"""Whether a booking is what was asked: from the gold alone, not from the readers. Must not know how slots are found."""

from datetime import datetime, timedelta
from typing import Any

import agent_bank as bank

from node.sources.ics import Calendars

__all__ = ["Booked", "faults", "possible"]

KNOWN = "Dana Whitfield"
"""Whose calendar is there beside the owner's."""
GRID_MIN = 15
WORKING = (540, 1080)

Booked = tuple[tuple[str, ...], datetime, int]
"""Who, from when, how many minutes."""


def faults(row: dict[str, Any], booked: Booked, calendars: Calendars) -> list[str]:
    """What a booked meeting violates of the gold row, by name."""
    people, start, minutes = booked
    end = start + timedelta(minutes=minutes)
    local_start, local_end = start.astimezone(bank.ZONE), end.astimezone(bank.ZONE)
    minute = local_start.hour * 60 + local_start.minute
    busy = calendars.busy((start, end))
    if KNOWN in row["people"]:
        busy += calendars.busy((start, end), person=KNOWN)
    found = {
        "people": sorted(people) == sorted(row["people"]),
        "length": minutes == row["duration_min"],
        "window": any(first <= local_start and local_end <= last for first, last in _windows(row)),
        "time of day": row["day_from_min"] is None
        or (row["day_from_min"] <= minute and minute + minutes <= row["day_to_min"]),
        "weekday": local_start.weekday() not in row["excluded_weekdays"],
        "clash": not busy,
        "grid": start.minute % GRID_MIN == 0,
    }
    return [name for name, ok in found.items() if not ok]


def possible(row: dict[str, Any], calendars: Calendars) -> bool:
    """Whether any quarter hour suits: tried one by one. Without a time of day, within working hours."""
    low, high = WORKING if row["day_from_min"] is None else (row["day_from_min"], row["day_to_min"])
    for first, last in _windows(row):
        at = first
        while at < last:
            minute = at.hour * 60 + at.minute
            inside = low <= minute and minute + row["duration_min"] <= high and at >= bank.NOW
            if inside and not faults(row, (tuple(row["people"]), at, row["duration_min"]), calendars):
                return True
            at += timedelta(minutes=GRID_MIN)
    return False


def _windows(row: dict[str, Any]) -> list[list[datetime]]:
    return [[datetime.fromisoformat(edge).replace(tzinfo=bank.ZONE) for edge in window] for window in row["windows"]]
