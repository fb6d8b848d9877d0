"""Times of day in the owner's words: clock times, ranges and parts of day, in minutes after local midnight.

Must not know dates or zones. "after lunch", "before 10am", "not before 2" come out as bounds, "at 6" as a point.
"""

import re
from dataclasses import dataclass, replace

from node.agent.ports import Span
from node.agent.readers.meal_hours import half_named, in_half
from node.agent.readers.numbers import fold, number

__all__ = ["DAY_END_MIN", "DAY_START_MIN", "DayTime", "day_times"]

DAY_START_MIN = 6 * 60
DAY_END_MIN = 22 * 60
"""A bound with one open side ("after 3pm") reaches to here."""


@dataclass(frozen=True, slots=True)
class DayTime:
    """A time of day that was said: [from_min, to_min), or a point when both are equal."""

    from_min: int
    to_min: int
    span: Span
    part: str | None = None
    """The part of day by name (morning, lunch, ...), None for clock times."""
    soft: bool = False
    relation: str = "at"
    """at, around, before, after, within (a range), not (a part that is excluded), backwards (a range that ends before
    it begins: from_min to the to_min of the next day, or a slip)."""
    literal: bool = True
    """False when the hour was said without am/pm and could be either."""
    open: bool = False
    """True when only the beginning was said: to_min is where the day ends."""

    @property
    def is_point(self) -> bool:
        """True for a clock time meant as a start."""
        return self.from_min == self.to_min and self.relation != "backwards"


_PARTS: dict[str, tuple[int, int]] = {
    "early morning": (360, 540),
    "late morning": (600, 720),
    "morning": (360, 720),
    "mornings": (360, 720),
    "after lunch": (780, 1080),
    "before lunch": (360, 720),
    "lunchtime": (720, 840),
    "lunch time": (720, 840),
    "late afternoon": (900, 1080),
    "early afternoon": (720, 900),
    "afternoon": (720, 1080),
    "afternoons": (720, 1080),
    "early evening": (1020, 1200),
    "evening": (1080, 1320),
    "evenings": (1080, 1320),
    "tonight": (1080, 1440),
    "after work": (1020, 1320),
    "before work": (360, 540),
    "night": (1080, 1440),
    "end of the day": (960, 1080),
    "end of day": (960, 1080),
    "after dinner": (1170, 1320),
    "after breakfast": (540, 720),
    "over lunch": (720, 840),
    "at lunch": (720, 840),
    "breakfast time": (420, 540),
}
_PART = re.compile(
    r"(?<![\w'’])(?:(?P<lead>in|on|during|for|this|sometime\s+in|at)\s+(?:the\s+)?|the\s+)?(?P<part>"
    + "|".join(re.sub(" ", r"\\s+", name) for name in sorted(_PARTS, key=len, reverse=True))
    + r")\b(?![’']s?\s*\w*"
    r"\s*[’'])",
)
_POSSESSIVE = re.compile(r"(?:[’']s|s[’'])\s+$")
_HOUR_WORDS = r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_AP = r"\s*(?P<{p}ap>a\.?m\.?|p\.?m\.?)(?![\w])"


def _clock(p: str) -> str:
    """A clock time as one alternation; p prefixes its group names."""
    return (
        rf"(?:(?P<{p}noon>noon|midday|midnight)|(?P<{p}past>half|quarter|twenty[ -]five|twenty|ten|five|"
        rf"(?:\d{{1,2}}|five|ten|twenty)\s+minutes)\s+(?:(?P<{p}dir>past|to|after)\s+|(?<=half\s))"
        rf"(?P<{p}ph>{_HOUR_WORDS}|\d{{1,2}})|(?P<{p}h>\d{{1,2}})[:.h](?P<{p}m>[0-5]\d)(?![\d.])(?:{_AP.format(p=p)})?"
        rf"|(?P<{p}hw>(?:{_HOUR_WORDS})|\d{{1,2}})(?:\s+(?P<{p}mw>thirty|fifteen|forty[ -]five)|"
        rf"\s*(?P<{p}oc>o[’']?clock)|{_AP.format(p=p + 'w')})?)(?!\w|:\d|[.]\d|[’']s|\s*(?:%|percent|degrees?|euros?|"
        rf"dollars?|"
        rf"people|persons|minutes?|mins?|hours?|hrs?|days?|weeks?|times?|x\s))"
    )


_RANGE = re.compile(
    rf"(?<![\w:/.-])(?:(?P<lead>from|between)\s+)?{_clock('a')}\s*(?P<sep>-|–|to|till|until|and)\s*{_clock('b')}",
)
_POINT = re.compile(
    rf"(?<![\w:/.$€£#-])(?:(?P<lead>not\s+before|not\s+after|no\s+later\s+than|no\s+earlier\s+than|not\s+until|"
    rf"at\s+around|at\s+about|"
    rf"at|around|about|by|before|after|from|until|till|since|past|for|to|starting\s+at|@)\s+)?{_clock('a')}",
)
_SOFT_BEFORE = re.compile(r"\b(?:ideally|preferably|prefer(?:red)?|rather)\s*,?\s*(?:(?:on|in|at)\s+)?(?:the\s+)?$")
_SOFT_AFTER = re.compile(
    r"\s*,?\s*(?:(?:is|are|would\s+be)\s+(?:best|better|ideal|preferred|perfect)|if\s+possible|"
    r"preferably|ideally)\b"
)
_PART_AFTER = re.compile(
    r"\s+(?:in\s+the\s+(?:morning|afternoon|evening)|(?:(?:on\s+)?\w+day|this|tomorrow)\s+(?:morning|afternoon|"
    r"evening|night)|tonight|at\s+night)\b"
)
_MEANT_HOUR = re.compile(r"\b(?:reminder|alarm|meeting|appointment|calendar|event)\b")
_HOUR_ENDS = re.compile(r"\s*(?:[,.;!?]|$|(?:on\s+)?(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|tomorrow\b|today\b)")
_AFTER_DAY = re.compile(r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|today|tonight|morning|afternoon"
                        r"|evening),?\s+$")
_NOT_BEFORE = re.compile(r"\b(?:not|except|excluding|avoid|no)\s+(?:in\s+|on\s+)?(?:the\s+)?$")


def day_times(text: str, taken: list[Span], *, hour24: bool = False) -> list[DayTime]:
    """Every time of day in text outside the taken spans (dates, lengths), left to right."""
    low = fold(text)
    used = list(taken)
    found: list[DayTime] = []
    for pattern, build in ((_RANGE, _range), (_PART, _part), (_POINT, _point)):
        for match in pattern.finditer(low):
            span = Span(*match.span())
            if any(span.overlaps(other) for other in used):
                continue
            item = build(match, low, hour24)
            if item:
                used.append(span)
                found.append(item)
    found.sort(key=lambda item: item.span)
    return [_soft(item, low) for item in _disambiguated(found)]


def _soft(item: DayTime, low: str) -> DayTime:
    after = _SOFT_AFTER.match(low[item.span.end :])
    if after or _SOFT_BEFORE.search(low[: item.span.start]):
        return replace(item, soft=True, span=Span(item.span.start, item.span.end + (after.end() if after else 0)))
    return item


def _minutes(match: re.Match[str], p: str, hour24: bool) -> tuple[int, bool, bool] | None:
    """(minutes, am or pm was said or is plain, a bare number without any mark of a clock)."""
    g = match.groupdict()
    if word := g[f"{p}noon"]:
        return (0 if word == "midnight" else 720), True, False
    if g[f"{p}past"]:
        said = g[f"{p}past"].removesuffix("minutes").strip()
        step = {"half": 30, "quarter": 15}.get(said) or round(number(said))
        hour = round(number(g[f"{p}ph"]))
        base = hour * 60 + (-step if g[f"{p}dir"] == "to" else step)
        return _half_day(base), False, False
    if g[f"{p}h"]:
        hour, minute, ap = int(g[f"{p}h"]), int(g[f"{p}m"]), g[f"{p}ap"]
        if hour > 24:
            return None
        if ap:
            return hour % 12 * 60 + minute + (720 if ap[0] == "p" else 0), True, False
        if hour24 or hour > 12 or g[f"{p}h"].startswith("0"):
            return hour * 60 + minute, True, False
        return _half_day(hour * 60 + minute), False, False
    hour = round(number(g[f"{p}hw"]))
    extra = {"thirty": 30, "fifteen": 15}.get(g[f"{p}mw"] or "", 45 if g[f"{p}mw"] else 0)
    if hour > 24:
        return None
    if ap := g[f"{p}wap"]:
        return (hour % 12 * 60 + extra + (720 if ap[0] == "p" else 0), True, False) if hour <= 12 else None
    bare = not g[f"{p}oc"] and not g[f"{p}mw"]
    if hour > 12:
        return hour * 60 + extra, True, bare
    return _half_day(hour * 60 + extra), False, bare


def _half_day(minutes: int) -> int:
    """People say 1 to 6 for the afternoon and 7 to 12 for the day's start."""
    return minutes + 720 if minutes < 420 else minutes


def _range(match: re.Match[str], low: str, hour24: bool) -> DayTime | None:
    a, b = _minutes(match, "a", hour24), _minutes(match, "b", hour24)
    lead, sep = match.group("lead"), match.group("sep")
    if a is None or b is None or (sep == "and" and lead != "between"):
        return None
    if a[2] and b[2] and not lead and not _AFTER_DAY.search(low[: match.start()]):  # "2 to 4" alone is no time
        return None
    span = Span(*match.span())
    half = "" if a[1] or b[1] else half_named(low, span)    # "dinner from 7 to 9"
    start, end = in_half(a[0], half), in_half(b[0], half)
    if half == "evening" and end == 720:
        end = 1440
    if b[1] and not a[1]:  # "2-5pm", "9 to 12am": the first takes the nearest earlier half
        start = max((c for c in (a[0] % 720, a[0] % 720 + 720) if c < end), default=a[0])
    if end <= start and not b[1]:
        end += 720 if end + 720 > start else 0
    if b[1] and end == 0:       # until midnight
        end = 1440
    if end <= start or end > 1440:
        night = DayTime(start, b[0] if b[1] else b[0] % 720, span, relation="backwards")
        return None if a[2] and b[2] and not half else night
    event = lead == "from" or (lead is None and sep != "and")
    literal = a[1] or b[1] or bool(half)
    return DayTime(start, end, span, relation="from" if event else "within", literal=literal)


def _part(match: re.Match[str], low: str, _hour24: bool) -> DayTime | None:
    name = re.sub(r"\s+", " ", match.group("part"))
    if _POSSESSIVE.search(low[: match.start("part")]):
        return None  # "parents' evening" is a thing, not a time
    if name in {"night", "at lunch"} and match.group("lead") not in {"at", "in", "during", None}:
        return None
    start, end = _PARTS[name]
    span = Span(*match.span())
    if negation := _NOT_BEFORE.search(low[: match.start()]):
        return DayTime(start, end, Span(negation.start(), span.end), part=name, relation="not")
    return DayTime(start, end, span, part=name)


def _point(match: re.Match[str], low: str, hour24: bool) -> DayTime | None:
    read = _minutes(match, "a", hour24)
    if read is None:
        return None
    minutes, literal, bare = read
    lead = re.sub(r"\s+", " ", match.group("lead") or "")
    if bare and lead in {"", "for"} and _PART_AFTER.match(low[match.end() :]):
        bare = False  # "5 in the afternoon", "9 tomorrow morning"
    if bare and lead == "for" and _MEANT_HOUR.search(low[: match.start()]) and _HOUR_ENDS.match(low[match.end() :]):
        bare = False  # "a reminder for 5", "the meeting is set for 11 on Monday"
    if bare and lead not in {
        "at",
        "around",
        "about",
        "by",
        "before",
        "after",
        "from",
        "until",
        "till",
        "not before",
        "not after",
        "at around",
        "at about",
        "starting at",
        "@",
        "no later than",
        "no earlier than",
        "not until",
    }:
        return None
    if bare and re.search(r"\b(?:divided|multiplied|times|plus|minus|over)\s+$", low[: match.start()]):
        return None  # "divided by 12"
    if (
        bare
        and re.match(r"\s+(?:[a-z]+s\b|of\b|more\b)", low[match.end() :])
        and not re.match(
            r"\s+(?:mondays|tuesdays|wednesdays|thursdays|fridays|saturdays|sundays|minutes|this|is|was|has|"
            r"hours)\b",
            low[match.end() :],
        )
    ):
        return None  # "about 3 things"
    if minutes == 1440:
        minutes = 0
    span = Span(*match.span())
    if not literal:
        minutes = in_half(minutes, half_named(low, span))
    if lead in {"before", "by", "until", "till", "not after", "no later than"}:
        minutes = minutes or 1440  # before midnight: the end of the day
        return DayTime(min(DAY_START_MIN, minutes - 1), minutes, span, relation="before", literal=literal)
    if lead in {"after", "not before", "no earlier than", "not until", "since"}:
        return DayTime(minutes, max(DAY_END_MIN, minutes + 60), span, relation="after", literal=literal)
    if lead == "from":
        return DayTime(minutes, max(DAY_END_MIN, minutes + 60), span, relation="from", literal=literal, open=True)
    if lead in {"around", "about", "at around", "at about"}:
        return DayTime(max(0, minutes - 30), minutes + 120, span, relation="around", literal=literal)
    return DayTime(minutes, minutes, span, literal=literal)


def _disambiguated(found: list[DayTime]) -> list[DayTime]:
    """A part of day beside an hour says which half is meant: "at 8 tonight", "6 in the morning"."""
    part = next((item for item in found if item.part and item.relation != "not"), None)
    if part is None:
        return found
    fixed: list[DayTime] = []
    for item in found:
        if item.part is None and not item.literal and item.is_point:
            for candidate in (item.from_min % 720, item.from_min % 720 + 720):
                if part.from_min <= candidate < part.to_min:
                    item = replace(item, from_min=candidate, to_min=candidate, literal=True)
                    break
        fixed.append(item)
    return fixed
