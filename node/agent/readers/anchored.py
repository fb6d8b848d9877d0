"""Days that are counted from another day: "a week from Friday", "the first Monday in May", "in two months".

Rules of the same kind as those of dates.py, tried before them. Must not know clock times or zones.
"""

import calendar
import re
from collections.abc import Callable
from datetime import date, timedelta

from node.agent.ports import Span
from node.agent.readers.day_words import (
    MONTH,
    WEEKDAY,
    Days,
    coming,
    future,
    month_of,
    one_range,
    weekday_of,
)
from node.agent.readers.numbers import NUMBER, ORDINAL, number, ordinal

__all__ = ["ANCHORED"]

_COUNT = rf"(?P<n>{NUMBER}|an?|the)"
_UNIT = r"(?P<unit>days?|weeks?|fortnights?|months?|years?)"
_PERIOD = rf"(?P<period>{MONTH}|(?:the|this|next)\s+month)"
_NTH = r"(?P<nth>first|1st|second|2nd|third|3rd|fourth|4th|last)"
_NTHS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}


def _later(start: date, count: int, unit: str) -> date:
    """`start` plus so many units; a month's end stays within the month."""
    if unit.startswith(("month", "year")):
        months = start.month - 1 + count * (1 if unit.startswith("month") else 12)
        year, month = start.year + months // 12, months % 12 + 1
        return date(year, month, min(start.day, calendar.monthrange(year, month)[1]))
    return start + timedelta(days=count * (1 if unit.startswith("day") else 7 if unit.startswith("week") else 14))


def _count(said: str) -> int:
    return 1 if said in {"a", "an", "the"} else round(number(said))


def _anchor(said: str, today: date) -> date | None:
    """The day that is counted from."""
    said = said.strip()
    if said in {"today", "now"}:
        return today
    if said in {"tomorrow", "tmrw"}:
        return today + timedelta(days=1)
    modifier, _, word = said.rpartition(" ")
    return coming(today, weekday_of(word), "next" if modifier.endswith("next") else "")


def _counted(match: re.Match[str], today: date, _: bool) -> list[Days]:
    anchor = _anchor(match.group("from"), today)
    return one_range(match, _later(anchor, _count(match.group("n")), match.group("unit"))) if anchor else []


def _in_months(match: re.Match[str], today: date, _: bool) -> list[Days]:
    return one_range(match, _later(today, _count(match.group("n")), match.group("unit")))


def _month_meant(said: str, today: date) -> tuple[int, int]:
    """Year and month of a period that was said."""
    if said.endswith("month"):
        moved = _later(today.replace(day=1), 1 if said.startswith("next") else 0, "month")
        return moved.year, moved.month
    found = future(today, month_of(said), 28, None) or today
    return found.year, found.month


def _nth_weekday(match: re.Match[str], today: date, _: bool) -> list[Days]:
    year, month = _month_meant(match.group("period"), today)
    weekday, nth = weekday_of(match.group("day")), match.group("nth")
    length = calendar.monthrange(year, month)[1]
    days = [day for day in (date(year, month, n) for n in range(1, length + 1)) if day.weekday() == weekday]
    index = -1 if nth == "last" else _NTHS[nth] - 1
    return one_range(match, days[index]) if index < len(days) else []


def _last_day(match: re.Match[str], today: date, _: bool) -> list[Days]:
    year, month = _month_meant(match.group("period"), today)
    return one_range(match, date(year, month, calendar.monthrange(year, month)[1]))


def _day_of_period(match: re.Match[str], today: date, _: bool) -> list[Days]:
    year, month = _month_meant(match.group("period"), today)
    day = ordinal(match.group("d"))
    return one_range(match, date(year, month, day)) if day <= calendar.monthrange(year, month)[1] else []


def _half_month(match: re.Match[str], today: date, _: bool) -> list[Days]:
    year, month = _month_meant(match.group("period"), today)
    length = calendar.monthrange(year, month)[1]
    first, after = (1, 15) if match.group("half") == "first" else (16, length)
    return [Days(date(year, month, first), date(year, month, after) + timedelta(days=1), Span(*match.span()),
                 anchored=True, relation="within")]


def _week_of_month(match: re.Match[str], today: date, _: bool) -> list[Days]:
    """Seven days: the first week from the first of the month on, the last one up to its end."""
    year, month = _month_meant(match.group("period"), today)
    length = calendar.monthrange(year, month)[1]
    said = match.group("nth")
    first = length - 6 if said == "last" else 7 * _NTHS[said] - 6
    return [Days(date(year, month, first), date(year, month, first) + timedelta(days=7), Span(*match.span()),
                 anchored=True, relation="within")]


def _whole_month(match: re.Match[str], today: date, _: bool) -> list[Days]:
    year, month = _month_meant(match.group("period"), today)
    return one_range(match, date(year, month, 1), calendar.monthrange(year, month)[1])


def _after_next(match: re.Match[str], today: date, _: bool) -> list[Days]:
    return one_range(match, coming(today, weekday_of(match.group("day")), "next") + timedelta(days=7))


def _here(match: re.Match[str], today: date, _: bool) -> list[Days]:
    return one_range(match, today + timedelta(days=1 if "next" in match.group() else 0))


def _rest_of_day(match: re.Match[str], today: date, _: bool) -> list[Days]:
    return one_range(match, today)


def _year_first(match: re.Match[str], today: date, _: bool) -> list[Days]:
    try:
        return one_range(match, date(*(int(match.group(part)) for part in ("y", "m", "d"))))
    except ValueError:
        return []


def _from_to(match: re.Match[str], today: date, _: bool) -> list[Days]:
    first = future(today, month_of(match.group("mon")), _digits(match.group("a")), None)
    last = future(today, month_of(match.group("mon2") or match.group("mon")), _digits(match.group("b")), None)
    if not first or not last or last < first:
        return []
    return [Days(first, last + timedelta(days=1), Span(*match.span()), anchored=True, relation="within")]


def _digits(said: str) -> int:
    return int(re.sub(r"\D", "", said))


_Build = Callable[[re.Match[str], date, bool], list[Days]]
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
ANCHORED: tuple[tuple[re.Pattern[str], _Build], ...] = tuple(
    (re.compile(rf"(?<![\w'’])(?:{pattern})"), build)
    for pattern, build in (
        (rf"{_COUNT}\s+{_UNIT}\s+(?:from|after|on)\s+(?P<from>(?:(?:next|this|coming)\s+)?{WEEKDAY}|tomorrow|tmrw|today)"
         r"(?!\w)", _counted),
        (r"(?P<n>an?|one)\s+(?P<unit>week|fortnight)\s+(?P<from>tomorrow|today)\b", _counted),
        (rf"(?:in\s+)?{_COUNT}\s+(?P<unit>months?|years?)(?:\s+from\s+(?:now|today)|['’]?s?\s+time)\b", _in_months),
        (rf"in\s+(?P<n>{NUMBER}|an?)\s+(?P<unit>months?|years?)\b", _in_months),
        (rf"(?:on\s+)?(?:the\s+)?{_NTH}\s+(?P<day>{WEEKDAY})\s+(?:in|of)\s+{_PERIOD}(?!\w)", _nth_weekday),
        (rf"(?:on\s+)?the\s+last\s+day\s+of\s+{_PERIOD}(?!\w)", _last_day),
        (rf"(?:on\s+)?the\s+(?P<d>{ORDINAL})\s+of\s+(?P<period>(?:this|next)\s+month)\b", _day_of_period),
        (rf"(?:in\s+|during\s+)?the\s+(?P<half>first|second)\s+half\s+of\s+{_PERIOD}(?!\w)", _half_month),
        (rf"(?:in\s+|during\s+)?(?:the\s+)?{_NTH}\s+week\s+(?:of|in)\s+{_PERIOD}(?!\w)", _week_of_month),
        (rf"(?:in\s+)?the\s+month\s+of\s+(?P<period>{MONTH})(?!\w)", _whole_month),
        (rf"(?:the\s+)?(?P<day>{WEEKDAY})\s+after\s+next\b", _after_next),
        (r"the\s+(?:next|following)\s+day\b|this\s+day\b", _here),
        (r"(?:the\s+)?rest\s+of\s+(?:the|this)\s+day\b", _rest_of_day),
        (r"(?P<y>20\d\d)/(?P<m>\d{1,2})/(?P<d>\d{1,2})(?!\d)", _year_first),
        (rf"(?:between\s+|from\s+)?(?P<mon>{MONTH})\s+(?P<a>{_DAY})\s*(?:-|–|to|until|till|through|and)\s*"
         rf"(?:(?P<mon2>{MONTH})\s+)?(?P<b>{_DAY})(?![\d:]|\s*(?:am|pm)\b)", _from_to),
    )
)
