"""Free slots between busy times under the constraints of a request: pure arithmetic in UTC, right over a change of
clocks.

Wall-clock rules (working hours, mornings, weekdays) are turned into UTC day by day, so a day of 23 or 25 hours needs no
special case. Must not know calendars, files or people.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from node.sources.event import Interval, merge

__all__ = ["GRID_MIN", "WORKING_HOURS", "SlotRules", "free_slots", "free_time", "without"]

GRID_MIN = 15
WORKING_HOURS = (9 * 60, 18 * 60)
DAYS_LIMIT = 400


@dataclass(frozen=True, slots=True)
class SlotRules:
    """What a slot must satisfy."""

    windows: tuple[Interval, ...]
    """The slot lies wholly inside one of them."""
    duration_min: int
    zone: ZoneInfo
    day_from_min: int | None = None
    """Earliest start by the owner's wall clock, minutes after midnight; None with day_to_min None: working hours."""
    day_to_min: int | None = None
    """Latest end by the wall clock; 1440 is midnight."""
    excluded_weekdays: frozenset[int] = frozenset()
    """0 is Monday."""
    weekends: bool = False
    """True when the request named a weekend or one of its days."""


def free_slots(busy: Sequence[Interval], rules: SlotRules, *, limit: int = 3) -> list[Interval]:
    """The first slots of exactly duration_min, in UTC, starting on the quarter hour, none overlapping a busy time,
    in order; at most limit. They may overlap each other: they are choices. Days further than DAYS_LIMIT from a
    window's start are not looked at."""
    length = timedelta(minutes=rules.duration_min)
    found: list[Interval] = []
    for start, end in free_time(busy, rules):
        slot = _next_grid(start)
        while slot + length <= end:
            found.append((slot, slot + length))
            if len(found) >= limit:
                return found
            slot += timedelta(minutes=GRID_MIN)
    return found


def free_time(busy: Sequence[Interval], rules: SlotRules) -> list[Interval]:
    """All time that is inside a window, allowed by the wall-clock rules and not busy, sorted, in UTC. Never crosses the
    rules' day: a slot that runs over midnight is only possible with hours that allow it."""
    allowed: list[Interval] = []
    for window in merge([(start.astimezone(UTC), end.astimezone(UTC)) for start, end in rules.windows if start < end]):
        allowed.extend(_allowed(window, rules))
    taken = merge([(start.astimezone(UTC), end.astimezone(UTC)) for start, end in busy if start < end])
    return [gap for interval in sorted(allowed) for gap in _subtract(interval, taken)]


def without(busy: Sequence[Interval], freed: Sequence[Interval]) -> list[Interval]:
    """Busy times less what will be free again."""
    again = merge(list(freed))
    return [piece for interval in busy for piece in _subtract(interval, again)]


def _allowed(window: Interval, rules: SlotRules) -> Iterator[Interval]:
    if rules.day_from_min is None and rules.day_to_min is None:
        day_from, day_to = WORKING_HOURS
    else:
        day_from, day_to = rules.day_from_min or 0, 1440 if rules.day_to_min is None else rules.day_to_min
    start, end = window
    day = start.astimezone(rules.zone).date()
    for _ in range(DAYS_LIMIT):
        opens = _at(day, day_from, rules.zone)
        if _at(day, 0, rules.zone) >= end:
            return
        closes = _at(day, day_to, rules.zone)
        if day.weekday() not in rules.excluded_weekdays and (rules.weekends or day.weekday() < 5):
            low, high = max(start, opens), min(end, closes)
            if low < high:
                yield low, high
        day += timedelta(days=1)


def _at(day: date, minute: int, zone: ZoneInfo) -> datetime:
    """The UTC instant of a wall-clock minute; one that the change of clocks skips is read as if they had not yet
    changed."""
    days, minute = divmod(minute, 1440)
    local = datetime.combine(day + timedelta(days=days), time(minute // 60, minute % 60), tzinfo=zone)
    return local.astimezone(UTC)


def _subtract(interval: Interval, taken: Sequence[Interval]) -> Iterator[Interval]:
    """The parts of interval that no merged, sorted busy time covers."""
    start, end = interval
    for busy_from, busy_to in taken:
        if busy_to <= start:
            continue
        if busy_from >= end:
            break
        if busy_from > start:
            yield start, busy_from
        start = max(start, busy_to)
    if start < end:
        yield start, end


def _next_grid(moment: datetime) -> datetime:
    """moment, or the next quarter hour after it."""
    step = GRID_MIN * 60
    seconds = moment.timestamp()
    return datetime.fromtimestamp(-(-seconds // step) * step, UTC)
