"""The words in which tools show days, times and lists: plain English, one look everywhere. Must not know tools or
data."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from node.counting import counted

__all__ = ["clock_span", "day", "listed", "minutes", "moment", "unread_note"]

_NAMED = 3
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)


def unread_note(names: Sequence[str]) -> str:
    """What is said beside an answer that may lack what stands in these files; nothing where all could be read."""
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    shown = ["".join(letter if letter.isprintable() else "?" for letter in name) for name in names[:_NAMED]]
    named = f"{', '.join(shown)}{more}"
    return f"Could not be read in full: {named}. What stands there may be missing here (kith doctor says why)."


def day(value: date) -> str:
    """Wednesday 18 March 2026."""
    return f"{_DAYS[value.weekday()]} {value.day} {_MONTHS[value.month - 1]} {value.year}"


def moment(value: datetime, zone: ZoneInfo) -> str:
    """Wednesday 18 March 2026, 09:30, by the zone's wall clock."""
    local = value.astimezone(zone)
    return f"{day(local.date())}, {local:%H:%M}"


def clock_span(start: datetime, end: datetime, zone: ZoneInfo) -> str:
    """09:00-10:30; an end at midnight is 24:00, an end on a later day names it."""
    first, last = start.astimezone(zone), end.astimezone(zone)
    if last.date() == first.date():
        return f"{first:%H:%M}-{last:%H:%M}"
    if last.date() - first.date() == timedelta(days=1) and f"{last:%H:%M}" == "00:00":
        return f"{first:%H:%M}-24:00"
    return f"{first:%H:%M} to {day(last.date())}, {last:%H:%M}"


def minutes(count: int) -> str:
    """45 minutes, 1 hour, 1 hour 30 minutes."""
    hours, rest = divmod(count, 60)
    parts = [counted(hours, "hour")] if hours else []
    return " ".join(parts + ([counted(rest, "minute")] if rest or not hours else []))


def listed(items: Sequence[str], *, last: str = "and") -> str:
    """a, b and c."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"
