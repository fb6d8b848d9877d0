"""The occurrences of one iCalendar series inside a window, in UTC, whatever the file holds.

A series is all VEVENTs of one UID: the rule and its changed or cancelled occurrences. This is the only module that
touches recurring-ical-events; TRANSP and STATUS are its callers' trap and are handled here. Must not know files or
who asks.
"""

from calendar import isleap, monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events

from node.sources.errors import BrokenSource
from node.sources.event import Event, Interval, Master

__all__ = ["WINDOW_LIMIT", "occurrences", "overlaps", "words"]

WINDOW_LIMIT = timedelta(days=800)
"""Longest window that is expanded: a rule may fire hourly for ever."""
DAILY_LIMIT = 48
"""Most occurrences a day of one rule. Above it the rule is refused: expanding a rule by seconds takes all memory."""
STEPS_LIMIT = 150_000
"""Most occurrences from a rule's start to the window's end: they are gone through one by one. Hourly for 17 years."""
EARLIEST_YEAR = 1900
TITLE_LIMIT_CHARS = 300
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_MARGIN = timedelta(days=2)
"""Whole days and floating times have no zone in the library's eyes: ask for more, then cut in UTC."""


def occurrences(series: icalendar.Calendar, window: Interval, zone: ZoneInfo, calendar: str) -> list[Event]:
    """Occurrences that touch the window, cancelled ones left out. Times without a zone are the owner's. Raises
    BrokenSource with a reason when the series cannot be expanded; the window must not exceed WINDOW_LIMIT."""
    start, end = window
    if end - start > WINDOW_LIMIT:
        raise ValueError(f"a window of {end - start} is above {WINDOW_LIMIT}")
    components = series.walk("VEVENT")
    found: list[Event] = []
    try:
        for component in components:
            _check(component, window, zone)
        if len(components) == 1 and _far_away(components[0], window, zone):
            return []
        for component in recurring_ical_events.of(series).between(start - _MARGIN, end + _MARGIN):
            if _text(component, "STATUS").upper() == "CANCELLED":
                continue
            event = _event(component, zone, calendar)
            if overlaps(event, window):
                found.append(event)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, IndexError) as error:
        # What a hand-made or damaged file makes the two libraries raise. The others still count.
        raise BrokenSource(f"an event cannot be expanded ({type(error).__name__})") from error
    return found


def overlaps(event: Event, window: Interval) -> bool:
    """True when the event shares time with the window; one of no length counts where it stands."""
    start, end = window
    return event.start < end and (event.end > start or event.start >= start)


def words(component: Any, calendar: str) -> Master:
    """What one VEVENT says in words, as far as it can be read."""
    people = [*_people(component), *_people(component, "ORGANIZER")]
    return Master(
        title=_text(component, "SUMMARY"), location=_text(component, "LOCATION"),
        attendees=tuple(dict.fromkeys(name for name, _ in people)),
        emails=tuple(dict.fromkeys(email for _, email in people if email)),
        calendar=calendar,
    )


def _far_away(component: Any, window: Interval, zone: ZoneInfo) -> bool:
    """True when this only component of its series surely has no occurrence near the window. Saves the library's work on
    years of past events."""
    if "RDATE" in component or "RECURRENCE-ID" in component:
        return False
    first = component["DTSTART"].dt
    if _utc(first, zone) > window[1] + _MARGIN:
        return True
    if "RRULE" in component:
        return False
    if "DURATION" in component:
        last = first + component["DURATION"].dt
    else:
        last = component["DTEND"].dt if "DTEND" in component else first
    return max(_utc(first, zone), _utc(last, zone)) < window[0] - _MARGIN


def _check(component: Any, window: Interval, zone: ZoneInfo) -> None:
    """Raises BrokenSource for properties the parser could not read, and for rules that the library would follow for
    ever, or for so long that nobody waits for it."""
    for name, reason in component.errors:
        if name in {"DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID"}:
            raise BrokenSource(f"{name} cannot be read ({str(reason)[:80]})")
    if "DTSTART" not in component:
        raise BrokenSource("an event has no start")
    if isinstance(component["DTSTART"], list):
        raise BrokenSource("an event has several starts")
    if component["DTSTART"].dt.year < EARLIEST_YEAR:
        raise BrokenSource(f"an event starts before {EARLIEST_YEAR}")
    rules = component.get("RRULE", [])
    for rule in rules if isinstance(rules, list) else [rules]:
        if min(map(int, rule.get("INTERVAL", [1])), default=1) < 1:
            raise BrokenSource("a rule never moves on")    # the library would look for its next occurrence for ever
        if _daily_rate(rule) > DAILY_LIMIT:
            raise BrokenSource("a rule repeats more than every half hour")
        days = (window[1] + _MARGIN - _utc(component["DTSTART"].dt, zone)) / timedelta(days=1)
        if _daily_rate(rule) * days > STEPS_LIMIT:
            raise BrokenSource("a rule has repeated too often since its start")
        if not _happens(rule):
            raise BrokenSource("a rule names days that there are not")


def _daily_rate(rule: Any) -> float:
    """An upper bound of the occurrences in a day."""
    def count(name: str) -> int:
        return max(1, len(rule.get(name, [])))

    interval = max(1, int(rule.get("INTERVAL", [1])[0]))
    seconds, minutes, hours = count("BYSECOND"), count("BYMINUTE"), count("BYHOUR")
    match str(rule.get("FREQ", [""])[0]).upper():
        case "SECONDLY":
            return 86_400 / interval
        case "MINUTELY":
            return 1_440 / interval * seconds
        case "HOURLY":
            return 24 / interval * minutes * seconds
        case _:
            return float(hours * minutes * seconds)


def _happens(rule: Any) -> bool:
    """Whether any day fits the rule's days and months. One that there is not, such as 30 February, is looked for
    until the year 9999: only by years that is soon done."""
    if str(rule.get("FREQ", [""])[0]).upper() == "YEARLY":
        return True
    months, month_days, year_days = (
        frozenset(map(int, rule.get(name, []))) for name in ("BYMONTH", "BYMONTHDAY", "BYYEARDAY"))
    weekdays = frozenset(str(name)[-2:].upper() for name in rule.get("BYDAY", []))
    if not (months or month_days or year_days):
        return True
    first, last = date(2000, 1, 1).toordinal(), date(2028, 1, 1).toordinal()    # every weekday on every day of a year
    for day in map(date.fromordinal, range(first, last)):
        in_month, in_year = monthrange(day.year, day.month)[1], 365 + isleap(day.year)
        of_year = day.timetuple().tm_yday
        if (not months or day.month in months) \
                and (not month_days or month_days & {day.day, day.day - in_month - 1}) \
                and (not year_days or year_days & {of_year, of_year - in_year - 1}) \
                and (not weekdays or _WEEKDAYS[day.weekday()] in weekdays):
            return True
    return False


def _event(component: Any, zone: ZoneInfo, calendar: str) -> Event:
    first = component["DTSTART"].dt
    last = component["DTEND"].dt if "DTEND" in component else first
    all_day = not isinstance(first, datetime)
    if all_day and last <= first:
        last = first + timedelta(days=1)
    start, end = _utc(first, zone), _utc(last, zone)
    return Event(
        uid=_text(component, "UID"), title=_text(component, "SUMMARY") or "(no title)", start=start, end=max(start,
        end), all_day=all_day, busy=end > start and _text(component, "TRANSP").upper() != "TRANSPARENT",
        location=_text(component, "LOCATION"), attendees=tuple(name for name, _ in _people(component)),
        calendar=calendar,
    )


def _utc(moment: date, zone: ZoneInfo) -> datetime:
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time.min)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(UTC)


def _text(component: Any, name: str) -> str:
    value = component.get(name, "")
    return " ".join(str(value[0] if isinstance(value, list) and value else value).split())[:TITLE_LIMIT_CHARS]


def _people(component: Any, name: str = "ATTENDEE") -> Iterator[tuple[str, str]]:
    """(name to show, e-mail or nothing)."""
    found = component.get(name, [])
    for entry in found if isinstance(found, list) else [found]:
        address = str(entry)
        email = address[7:].strip() if address.lower().startswith("mailto:") else ""
        shown = " ".join(str(getattr(entry, "params", {}).get("CN", "")).split()) or email
        if shown:
            yield shown, email
