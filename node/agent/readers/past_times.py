"""The times that a request about what has happened already means: "on Monday" is the last one, "this week" began on
Monday, "about lunch on Friday" is no time of it.

Times of a request lie ahead elsewhere. Must not know what happened, or tools.
"""

import re
from datetime import datetime, time, timedelta

from node.agent.ports import Interval
from node.agent.readers.windows import When, wall_time

__all__ = ["past_periods"]

_TOPIC = re.compile(r"\b(?:about|regarding|concerning)\b")
_LAST_NIGHT = re.compile(r"\blast\s+night\b")
_THIS = re.compile(r"\bthis\s+(?P<unit>week|month|year)\b")
_WEEKDAY = re.compile(r"\b(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b")
_NIGHT_BEGINS_MIN, _NIGHT_ENDS_MIN = 17 * 60, 6 * 60
_WEEK = timedelta(days=7)


def past_periods(low: str, when: When, now: datetime) -> tuple[Interval, ...] | None:
    """The times to look at, UTC, of a folded request. None when it says nothing about when, and when what it says is
    part of the matter ("about dinner at 7") or can be no past time: then nothing is left out for it."""
    topic = _TOPIC.search(low)
    if not when.said or (topic and when.spans and all(span.start > topic.start() for span in when.spans)):
        return None
    today = now.astimezone(when.zone).date()
    if _LAST_NIGHT.search(low):
        evening = wall_time(today - timedelta(days=1), _NIGHT_BEGINS_MIN, when.zone)
        return ((evening, wall_time(today, _NIGHT_ENDS_MIN, when.zone)),)
    if this := _THIS.search(low):
        first = {"week": today - timedelta(days=today.weekday()), "month": today.replace(day=1)}.get(
            this["unit"], today.replace(month=1, day=1))
        return ((wall_time(first, 0, when.zone), now),)
    found = when.periods(now)
    if _WEEKDAY.search(low):
        found = tuple(_before(period, when, now) for period in found)
    past = tuple(period for period in found if period[0] <= now)
    return past or None


def _before(period: Interval, when: When, now: datetime) -> Interval:
    """A day that is at most a week ahead, the same weekday of the week before, by the clock on the wall."""
    begin, end = (moment.astimezone(when.zone) for moment in period)
    if not now < begin <= now + _WEEK:
        return period
    return _a_week_back(begin, when), _a_week_back(end, when)


def _a_week_back(moment: datetime, when: When) -> datetime:
    at: time = moment.time()
    return wall_time(moment.date() - _WEEK, at.hour * 60 + at.minute, when.zone)
