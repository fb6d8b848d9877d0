"""Lengths of time in the owner's words, in minutes, and the moments that "in <length>" means.

"put in an hour" is a length, "in an hour" is a moment: the word before decides. Must not know dates or zones.
"""

import re
from dataclasses import dataclass

from node.agent.ports import Span
from node.agent.readers.numbers import NUMBER, fold, number

__all__ = ["Length", "lengths"]


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time that was said."""

    minutes: int
    span: Span
    from_now: bool = False
    """True for "in 20 minutes": a moment that far from now, not a length of something."""
    days: int = 0
    """Whole days, for "in three days"; minutes is 0 then."""


_HOUR = r"(?:hours?|hrs?|h)\b"
_MINUTE = r"(?:minutes?|mins?|min|m)\b"
_N = rf"(?P<n>{NUMBER}|an?|a\s+couple\s+of|a\s+few)"
_M = rf"(?P<m>{NUMBER})"

_PATTERNS: tuple[re.Pattern[str], ...] = tuple(re.compile(rf"(?<![\w.:]){pattern}") for pattern in (
    r"(?P<fix45>three[\s-]+quarters?\s+of\s+an\s+hour)\b",
    r"(?P<fix15>(?:a\s+)?quarter\s+(?:of\s+)?(?:an\s+)?hour|a\s+quarter\s+of\s+an\s+hour)\b",
    r"(?P<fix60>(?:an?|one)\s+(?:free|spare|whole|full|solid)\s+hour)\b",
    r"(?P<fix30>(?:an?\s+)?(?:free|spare)\s+half[\s-]+hour)\b",
    r"(?:an?|one)\s+hour\s+and\s+(?:a\s+)?(?P<frac>half|quarter)\b",
    rf"{_N}\s+and\s+(?:a\s+)?(?P<frac>half|quarter)[\s-]+{_HOUR}",
    rf"{_N}[\s-]*{_HOUR}\s*(?:and\s+|,\s*)?{_M}[\s-]*{_MINUTE}",
    r"(?P<hh>\d{1,2})h(?P<mm>\d{2})\b",
    r"(?P<fix30>(?:a\s+)?half[\s-]+(?:an?[\s-]+)?hour|1/2\s*hour|½\s*h(?:our)?)\b",
    rf"{_N}[\s-]*{_HOUR}",
    rf"{_M}[\s-]*{_MINUTE}",
    r"(?P<fix1>a\s+minute)\b",
    rf"{_N}[\s-]+(?P<unit>days?|weeks?|fortnights?)\b",
))
_PHRASAL = re.compile(r"\b(?:put|fit|squeeze|get|work|slot|pencil|book|block|build|fill|sneak|slip|add)\s+in\s+$")
_FROM_NOW = re.compile(r"\b(?:in|within)\s+(?:about\s+|around\s+|the\s+next\s+)?$")
_FROM_NOW_AFTER = re.compile(r"\s+(?:from\s+now|from\s+today|hence)\b")


def lengths(text: str) -> list[Length]:
    """Every length in text, left to right, none overlapping. The span of a moment covers its "in" too."""
    low = fold(text)
    found: list[Length] = []
    taken: list[Span] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(low):
            span = Span(*match.span())
            if any(span.overlaps(other) for other in taken):
                continue
            taken.append(span)
            found.append(_length(match, low, span))
    return sorted(found, key=lambda length: length.span)


def _length(match: re.Match[str], low: str, span: Span) -> Length:
    before, after = low[: span.start], low[span.end :]
    from_now = False
    if (lead := _FROM_NOW.search(before)) and not _PHRASAL.search(before):
        from_now, span = True, Span(lead.start(), span.end)
    elif tail := _FROM_NOW_AFTER.match(after):
        from_now, span = True, Span(span.start, span.end + tail.end())
    unit = match.groupdict().get("unit")
    if unit:
        per = 1 if unit.startswith("day") else 7 if unit.startswith("week") else 14
        days = round(_count(match.group("n")) * per)
        return Length(0, span, from_now, days) if from_now else Length(days * 1440, span, days=days)
    return Length(_minutes(match), span, from_now)


def _minutes(match: re.Match[str]) -> int:
    groups = match.groupdict()
    for name, value in (("fix60", 60), ("fix45", 45), ("fix30", 30), ("fix15", 15), ("fix1", 1)):
        if groups.get(name):
            return value
    if groups.get("hh"):
        return int(groups["hh"]) * 60 + int(groups["mm"])
    extra = {"half": 30, "quarter": 15}.get(groups.get("frac") or "", 0)
    if groups.get("n") is None and groups.get("m") is None:
        return 60 + extra
    minutes = round(number(groups["m"])) if groups.get("m") else 0
    hours = _count(groups["n"]) if groups.get("n") else 0.0
    return round(hours * 60) + minutes + extra


def _count(said: str) -> float:
    if said in {"a", "an"}:
        return 1.0
    if said.startswith("a "):
        return 2.0 if "couple" in said else 3.0
    return number(said)
