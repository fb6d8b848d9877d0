"""What an appointment is, read and to be written. Must not know files, iCalendar or time zones other than UTC."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

__all__ = ["Attendee", "Event", "Interval", "Master", "NewEvent", "Problem", "merge"]

Interval: TypeAlias = tuple[datetime, datetime]
"""Half-open [start, end), both aware."""


@dataclass(frozen=True, slots=True)
class Event:
    """One occurrence."""

    uid: str
    title: str
    start: datetime
    """Aware, UTC. A whole day begins at the owner's midnight."""
    end: datetime
    all_day: bool
    busy: bool
    """False for TRANSPARENT events and for those of no length."""
    location: str
    attendees: tuple[str, ...]
    """Names, or addresses where no name is given."""
    calendar: str
    """The file it stands in."""

    @property
    def item(self) -> str:
        """Names this occurrence among all of its calendar."""
        return f"{self.uid}@{self.start:%Y%m%dT%H%M%SZ}"


@dataclass(frozen=True, slots=True)
class Master:
    """What an event says in words, whatever its times: where personal values stand."""

    title: str
    location: str
    attendees: tuple[str, ...]
    emails: tuple[str, ...]
    calendar: str


@dataclass(frozen=True, slots=True)
class Attendee:
    """A person to invite; email is empty where nobody knows it."""

    name: str
    email: str = ""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to write. uid is its idempotency key: written twice, it is there once."""

    uid: str
    title: str
    start: datetime
    end: datetime
    attendees: tuple[Attendee, ...] = ()
    location: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a file that could not be read; everything else of the file still counts."""

    source: str
    reason: str


def merge(intervals: list[Interval]) -> list[Interval]:
    """The same time as sorted intervals that neither overlap nor touch."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
