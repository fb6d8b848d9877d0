"""The words for days and months, a range of days as it was said, and the dates these words stand for.

The vocabulary under dates.py and anchored.py. Must not know sentences, clock times or zones.
"""

import re
from dataclasses import dataclass
from datetime import date, timedelta

from node.agent.ports import Span

__all__ = [
    "MONTH", "MONTHS", "NAMED_DAY", "WEEKDAY", "WEEKDAYS", "YEAR", "Days", "Relation", "coming", "future", "month_of",
    "one_range", "weekday_of",
]

Relation = str
"""on, before, by, after, from, not."""


@dataclass(frozen=True, slots=True)
class Days:
    """The days [first, after) and how they bound the request."""

    first: date
    after: date
    span: Span
    relation: Relation = "on"
    weekday: int | None = None
    """Set when a bare weekday was said: a week named elsewhere in the request moves it there."""
    soft: bool = False
    """A wish ("ideally Monday"): an order of preference, not a bound."""
    anchored: bool = False
    """True when the words themselves name the week ("next Tuesday"): never moved."""


WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT = {"mon": 0, "tue": 1, "tues": 1, "weds": 2, "thu": 3, "thur": 3, "thurs": 3, "fri": 4}
_SHORT_AFTER_WORD = {"wed": 2, "sat": 5, "sun": 6}
MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
WEEKDAY = (
    r"(?:(?:" + "|".join(WEEKDAYS) + r")s?|(?:" + "|".join(sorted(_SHORT, key=len, reverse=True)) + r")\b\.?"
    r"|(?<=on\s)(?:wed|sat|sun)\b|(?<=next\s)(?:wed|sat|sun)\b|(?<=this\s)(?:wed|sat|sun)\b|(?<=or\s)(?:wed|sat|sun)\b"
    r"|(?:wed|sat|sun)\b(?=\s+(?:(?:at|from|between|before|after|until)\s+\d|\d|morning|afternoon|evening|night)))"
)
NAMED_DAY = r"\b(?:(?:" + "|".join(WEEKDAYS) + r")s?|" + "|".join([*_SHORT, *_SHORT_AFTER_WORD]) + r")\b\.?"
"""A day's name where it is known to be one."""
MONTH = r"(?:" + "|".join(m if m == "may" else f"{m[:3]}(?:{m[3:]})?" for m in MONTHS) + r"|sept)\b\.?"
YEAR = r"(?:,?\s+(?P<year>20\d\d))?"


def weekday_of(word: str) -> int:
    word = word.strip(" .")
    for index, name in enumerate(WEEKDAYS):
        if word in {name, name + "s"}:
            return index
    return (_SHORT | _SHORT_AFTER_WORD)[word]


def coming(today: date, weekday: int, modifier: str) -> date:
    monday = today - timedelta(days=today.weekday())
    if modifier == "next":
        return monday + timedelta(days=7 + weekday)
    if modifier == "last":
        return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    ahead = (weekday - today.weekday()) % 7
    return today + timedelta(days=ahead)


def month_of(word: str) -> int:
    return next(index for index, name in enumerate(MONTHS, 1) if name.startswith(word.strip(" .")[:3]))


def future(today: date, month: int, day: int, year: str | None) -> date | None:
    try:
        if year:
            return date(int(year), month, day)
        found = date(today.year, month, day)
        return found if found >= today - timedelta(days=31) else date(today.year + 1, month, day)
    except ValueError:
        return None


def one_range(match: re.Match[str], first: date, length: int = 1, *, anchored: bool = True) -> list[Days]:
    return [Days(first, first + timedelta(days=length), Span(*match.span()), anchored=anchored)]
