"""Days in the owner's words: weekdays, dates, weeks, weekends, each with its span and how it is meant.

Resolves against a local "today" that is passed in; knows no clock times and no zone. English, with the order of day and
month in 3/5 as the locale says.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

from node.agent.ports import Span
from node.agent.readers.anchored import ANCHORED
from node.agent.readers.day_words import (
    MONTH,
    MONTHS,
    NAMED_DAY,
    WEEKDAY,
    YEAR,
    Days,
    Relation,
    coming,
    future,
    month_of,
    one_range,
    weekday_of,
)
from node.agent.readers.numbers import NUMBER, ORDINAL, fold, number, ordinal

__all__ = ["Days", "Relation", "days"]

_LIST = r"(?:\s*,\s*(?:or\s+|and\s+)?|\s+or\s+(?:on\s+)?|\s+and\s+(?:on\s+)?|\s*/\s*)"
_LEAD_DAY = rf"(?:(?:{WEEKDAY}),?\s+(?:the\s+)?)?"

_BEFORE = re.compile(
    r"\b(?P<word>no\s+later\s+than|not\s+later\s+than|not\s+after|not\s+before|no\s+earlier\s+than|before|by|until|"
    r"till|"
    r"up\s+to|after|from|starting(?:\s+on|\s+from)?|since|on|for|in|during|over|within|sometime|some\s+time|"
    r"at)\s+(?:the\s+)?$",
)
_NOT = re.compile(
    r"(?:\bbut\s+not|\bnot|\bexcept(?:\s+for)?|\bexcluding|\bwithout|\bother\s+than|\bany\s+day\s+but|"
    r"\ball\s+days\s+but|"
    r"\bevery\s+day\s+but|\banything\s+but|\bavoid(?:ing)?|\bno)\s+(?:on\s+)?(?:a\s+)?$",
)
_SOFT_BEFORE = re.compile(r"\b(?:ideally|preferably|best|prefer(?:red)?|rather)\s*,?\s*(?:on\s+|in\s+)?(?:the\s+)?$")
_SOFT_AFTER = re.compile(
    r"\s*(?:,\s*)?(?:(?:is|are|would\s+be)\s+(?:best|better|ideal|preferred|perfect)|"
    r"if\s+possible|preferably|ideally)\b"
)
_JOIN = re.compile(r"^\s*(?:,|,?\s*or|,?\s*and|nor)\s*(?:on\s+)?$")

_RELATIONS = {
    "before": "before",
    "not after": "by",
    "by": "by",
    "until": "by",
    "till": "by",
    "up to": "by",
    "after": "after",
    "from": "from",
    "since": "from",
    "starting": "from",
    "not before": "from",
    "no earlier than": "from",
    "no later than": "by",
    "not later than": "by",
    "starting on": "from",
    "starting from": "from",
}


def days(text: str, today: date, *, day_first: bool = True) -> list[Days]:
    """Every day or range of days in text, left to right, none overlapping; spans cover the preposition before them."""
    low = fold(text)
    found: list[Days] = []
    taken: list[Span] = []
    for pattern, build in _BUILDERS:
        for match in pattern.finditer(low):
            span = Span(*match.span())
            if any(span.overlaps(other) for other in taken):
                continue
            built = build(match, today, day_first)
            if not built:
                continue
            taken.append(span)
            found.extend(built)
    found.sort(key=lambda item: item.span)
    return _related(found, low)


def _related(found: list[Days], low: str) -> list[Days]:
    related: list[Days] = []
    for item in found:
        before, after = low[: item.span.start], low[item.span.end :]
        if item.relation == "on":
            previous = related[-1] if related else None
            if previous and previous.relation == "not" and _JOIN.match(low[previous.span.end : item.span.start]):
                item = replace(item, relation="not")
            elif match := _NOT.search(before):
                item = replace(item, relation="not", span=Span(match.start(), item.span.end))
            elif match := _BEFORE.search(before):
                word = re.sub(r"\s+", " ", match.group("word"))
                item = replace(item, relation=_RELATIONS.get(word, "on"), span=Span(match.start(), item.span.end))
        soft = _SOFT_AFTER.match(after)
        if item.relation != "not" and (soft or _SOFT_BEFORE.search(low[: item.span.start])):
            item = replace(item, soft=True, span=Span(item.span.start, item.span.end + (soft.end() if soft else 0)))
        related.append(item)
    return related


# ---------------------------------------------------------------- builders


def _relative_day(match: re.Match[str], today: date, _: bool) -> list[Days]:
    word = match.group()
    offset = 2 if "after" in word else 1 if word.startswith(("tom", "tmrw")) else -1 if word == "yesterday" else 0
    return one_range(match, today + timedelta(days=offset))


def _weekdays(match: re.Match[str], today: date, _: bool) -> list[Days]:
    modifier = (match.group("mod") or "").strip()
    week_later = bool(match.group("week"))
    items: list[Days] = []
    for part in re.finditer(NAMED_DAY, match.group("list")):
        weekday = weekday_of(part.group())
        day = coming(today, weekday, modifier)
        if week_later:
            day += timedelta(days=7)
        start = match.start() if not items else match.start("list") + part.start()
        end = match.start("list") + part.end()
        items.append(
            Days(
                day,
                day + timedelta(days=1),
                Span(start, end),
                weekday=weekday,
                anchored=week_later or modifier in {"next", "last"},
            )
        )
    if items and week_later:
        items[-1] = replace(items[-1], span=Span(items[-1].span.start, match.end()))
    return items


def _weekday_range(match: re.Match[str], today: date, _: bool) -> list[Days]:
    modifier = (match.group("mod") or "").strip()
    first = coming(today, weekday_of(match.group("a")), modifier)
    last = first + timedelta(days=(weekday_of(match.group("b")) - first.weekday()) % 7)
    return [Days(first, last + timedelta(days=1), Span(*match.span()), anchored=modifier == "next", relation="within")]


def _dated(match: re.Match[str], today: date, _: bool) -> list[Days]:
    groups = match.groupdict()
    day = ordinal(groups["d"]) if groups["d"][0].isalpha() else int(re.sub(r"\D", "", groups["d"]))
    first = future(today, month_of(groups["mon"]), day, groups.get("year"))
    return one_range(match, first) if first else []


def _date_range(match: re.Match[str], today: date, _: bool) -> list[Days]:
    month = month_of(match.group("mon"))
    first = future(today, month, int(re.sub(r"\D", "", match.group("a"))), None)
    last = future(today, month, int(re.sub(r"\D", "", match.group("b"))), None)
    if not first or not last or last < first:
        return []
    return [Days(first, last + timedelta(days=1), Span(*match.span()), anchored=True, relation="within")]


def _day_of_month(match: re.Match[str], today: date, _: bool) -> list[Days]:
    day = ordinal(match.group("d"))
    month, year = today.month, today.year
    for _attempt in range(13):
        try:
            found = date(year, month, day)
        except ValueError:
            found = None
        if found and found >= today:
            return one_range(match, found)
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    return []


def _iso(match: re.Match[str], today: date, _: bool) -> list[Days]:
    found = future(today, int(match.group("m")), int(match.group("d")), match.group("year"))
    return one_range(match, found) if found else []


def _slashed(match: re.Match[str], today: date, day_first: bool) -> list[Days]:
    a, b = int(match.group("a")), int(match.group("b"))
    day, month = (a, b) if day_first else (b, a)
    year = match.group("year")
    found = future(today, month, day, f"20{year[-2:]}" if year else None)
    return one_range(match, found) if found else []


def _week(match: re.Match[str], today: date, _: bool) -> list[Days]:
    word = match.group()
    monday = today - timedelta(days=today.weekday())
    if "after next" in word:
        return one_range(match, monday + timedelta(days=14), 7)
    if re.search(r"next|following|coming", word):
        return one_range(match, monday + timedelta(days=7), 7)
    if "last" in word:
        return one_range(match, monday - timedelta(days=7), 7)
    return one_range(match, today, (monday + timedelta(days=7) - today).days)


def _week_of(match: re.Match[str], today: date, day_first: bool) -> list[Days]:
    inner = days(match.group("day"), today, day_first=day_first)
    if not inner:
        return []
    monday = inner[0].first - timedelta(days=inner[0].first.weekday())
    return one_range(match, monday, 7)


def _weekend(match: re.Match[str], today: date, _: bool) -> list[Days]:
    saturday = today - timedelta(days=today.weekday()) + timedelta(days=5)
    if "next" in match.group():
        saturday += timedelta(days=7)
    return one_range(match, saturday, 2)


def _month_range(match: re.Match[str], today: date, _: bool) -> list[Days]:
    first = today.replace(day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    if "next" in match.group():
        return one_range(match, following, ((following + timedelta(days=32)).replace(day=1) - following).days)
    return one_range(match, today, (following - today).days)


def _named_month(match: re.Match[str], today: date, _: bool) -> list[Days]:
    first = future(today, month_of(match.group("mon")), 28, None)
    if not first:
        return []
    first = first.replace(day=1)
    return one_range(match, first, ((first + timedelta(days=32)).replace(day=1) - first).days)


def _next_days(match: re.Match[str], today: date, _: bool) -> list[Days]:
    said = match.group("n")
    count = 3 if said in {None, "few"} else 2 if said.startswith("couple") else round(number(said))
    return one_range(match, today, max(1, count * (7 if "week" in match.group() else 1)))


_Build = Callable[[re.Match[str], date, bool], list[Days]]
_BUILDERS: tuple[tuple[re.Pattern[str], _Build], ...] = ANCHORED + tuple(
    (re.compile(rf"(?<![\w'’])(?:{p})"), b)
    for p, b in (
        (
            rf"(?:in\s+|during\s+)?(?:the\s+)?week\s+(?:of|starting(?:\s+on)?|beginning)\s+(?P<day>(?:the\s+)?(?:{MONTH}\s"
            rf"+\d{{1,2}}(?:st|nd|rd|th)?|{ORDINAL}(?:\s+of\s+{MONTH})?|\d{{1,2}}\.?\s+{MONTH}|{WEEKDAY}))(?!\w)",
            _week_of,
        ),
        (r"(?:the\s+)?day\s+after\s+tomorrow\b|tom+or+ow\b|tmrw\b|today\b|yesterday\b", _relative_day),
        (rf"{_LEAD_DAY}(?:the\s+)?(?P<year>20\d\d)-(?P<m>\d{{1,2}})-(?P<d>\d{{1,2}})\b", _iso),
        (
            rf"(?:from\s+|between\s+)?(?:the\s+)?(?P<a>\d{{1,2}}(?:st|nd|rd|th)?)\s*(?:-|–|to|and|until|till|"
            rf"through)\s*(?:the\s+)?(?P<b>\d{{1,2}}(?:st|nd|rd|th)?)\s+(?:of\s+)?(?P<mon>{MONTH})",
            _date_range,
        ),
        (rf"{_LEAD_DAY}(?:the\s+)?(?P<d>{ORDINAL}|\d{{1,2}}\.?)\s+(?:of\s+)?(?P<mon>{MONTH}){YEAR}(?!\w)", _dated),
        (
            rf"{_LEAD_DAY}(?P<mon>{MONTH})\s+(?:the\s+)?(?P<d>{ORDINAL}|\d{{1,2}}(?![\d:]|\s*(?:am|"
            rf"pm)\b)){YEAR}(?!\w)",
            _dated,
        ),
        (r"(?P<a>\d{1,2})[/](?P<b>\d{1,2})(?:[/](?P<year>(?:20)?\d\d))?(?![\d/])", _slashed),
        (
            r"(?P<a>\d{1,2})[.](?P<b>\d{1,2})[.](?P<year>(?:20)?\d\d)?(?![\d]"
            r")",
            lambda match, today, _: _slashed(match, today, True),
        ),
        (
            rf"(?:between\s+|from\s+)(?:(?P<mod>next|this)\s+)?(?P<a>{WEEKDAY})\s+(?:and|to|till|until|through|"
            rf"-)\s+(?P<b>{WEEKDAY})(?!\w)",
            _weekday_range,
        ),
        (
            rf"(?:(?P<mod>next|this)\s+)?(?P<a>{WEEKDAY})\s*(?:to|till|through|-|–)\s*(?P<b>{WEEKDAY})(?!\w)",
            _weekday_range,
        ),
        (rf"{WEEKDAY},?\s+(?:the\s+)?(?P<d>\d{{1,2}}(?:st|nd|rd|th))(?!\w)", _day_of_month),
        (
            rf"(?:(?P<mod>next|this|coming|last|every)\s+)?(?P<list>{WEEKDAY}(?:{_LIST}{WEEKDAY})*)(?P<week>\s+week)?"
            r"(?!\w)",
            _weekdays,
        ),
        (
            rf"{_LEAD_DAY}(?:on\s+)?the\s+(?P<d>{ORDINAL})(?!\s+(?:one|time|floor|note|half|quarter|of\b|[a-z]+\s+of)|"
            rf"\w)",
            _day_of_month,
        ),
        (
            r"(?:the\s+)?week\s+after\s+next\b|(?:the\s+)?(?:rest\s+of\s+(?:the|this)|this|next|following|coming|"
            r"last)\s+(?:work(?:ing)?\s+)?week\b(?!\s*end)|(?:later\s+)?this\s+week\b",
            _week,
        ),
        (r"(?:(?:this|next|the|coming)\s+)+weekend\b|weekend\b", _weekend),
        (r"(?:the\s+)?(?:rest\s+of\s+the|this|next)\s+month\b", _month_range),
        (rf"(?:in|during|this|next)\s+(?P<mon>{'|'.join(MONTHS)})\b(?!\s+\d)", _named_month),
        (rf"(?:the\s+)?(?:next|coming)\s+(?:(?P<n>{NUMBER}|few|couple\s+of)\s+)?(?:days|weeks)\b", _next_days),
    )
)
