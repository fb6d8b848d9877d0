"""When: days, times of day, exclusions and wishes of one request brought together and resolved in the owner's zone.

The answer is a `When`: windows to search, a moment to act at, or nothing said. Everything the agent knows about time
passes here; today's date never reaches a model. Wall-clock times are turned into UTC one by one, so a window over a
night when clocks change is right. Must not know tools or calendars.
"""

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from node.agent.ports import Interval, Span
from node.agent.readers.clocktimes import DayTime, day_times
from node.agent.readers.dates import Days, days
from node.agent.readers.durations import Length, lengths
from node.agent.readers.impossible import impossible
from node.agent.readers.meal_hours import Half, half_of_request, in_half
from node.agent.readers.numbers import fold
from node.agent.readers.self_corrections import correcting, meant

__all__ = ["Locale", "When", "read_when", "wall_time"]

_SOON = re.compile(
    r"\b(?:as\s+soon\s+as\s+possible|asap|at\s+the\s+earliest|(?:the\s+)?(?:next|first)\s+(?:free|"
    r"possible|available)\s+\w+|soon)\b"
)
_PREPOSITION = re.compile(r"(?:for|on|at)\b")
_TODAY = re.compile(r"this\b|tonight\b")
_OPEN_DAYS = 14
"""How far a search goes when only one side was said."""
_AT_MIN = 60
"""How much "am I free at 3" looks at when no length is said."""
_DAYS_LIMIT = 62
_USUAL_MIN = 540
_PART_MOMENT = {
    "morning": 540,
    "mornings": 540,
    "early morning": 420,
    "afternoon": 840,
    "lunchtime": 720,
    "after lunch": 780,
    "evening": 1140,
    "tonight": 1200,
    "night": 1260,
}


@dataclass(frozen=True, slots=True)
class Locale:
    """How the owner writes and where the owner is."""

    zone: ZoneInfo
    day_first: bool = True
    """3/5 is 3 May; False: 5 March."""
    hour24: bool = False
    """6:30 is the morning; False: hours from 1 to 6 without am or pm mean the afternoon."""


@dataclass(frozen=True, slots=True)
class When:
    """What a request says about time."""

    windows: tuple[tuple[date, date], ...] = ()
    """Ranges of local days [first, after)."""
    not_before: datetime | None = None
    """Never earlier than this, UTC."""
    day_from_min: int | None = None
    day_to_min: int | None = None
    fixed_min: int | None = None
    """A clock time that was said as the start."""
    end_min: int | None = None
    """The end of a stated range that is meant as the event itself ("from 9 to 10:30")."""
    excluded_weekdays: frozenset[int] = frozenset()
    excluded_days: frozenset[date] = frozenset()
    preferred: tuple[tuple[int, int], ...] = ()
    """Wished times of day: an order, not a bound."""
    preferred_weekdays: frozenset[int] = frozenset()
    moment: datetime | None = None
    """From "in 20 minutes": exact, UTC."""
    length: Length | None = None
    soon: bool = False
    names_weekend: bool = False
    spans: tuple[Span, ...] = field(default=())
    zone: ZoneInfo = field(default=ZoneInfo("UTC"))
    half: Half = ""
    """The half of the day that the request's words put a bare hour in, dinner in the evening."""
    either_half: bool = False
    """The clock time was said without am or pm."""
    doubt: str = ""
    """What is wrong with the time that was said, for the owner: nothing is made of it then, and it is asked for."""

    @property
    def said(self) -> bool:
        """True when the request says anything about when (a length alone is not a when) that is to be made sense of."""
        if self.doubt:
            return False
        time = self.fixed_min is not None or self.day_from_min is not None
        return bool(self.windows or self.moment or self.soon or time)

    def over(self, earlier: "When") -> "When":
        """This, the answer to a question, with what only the earlier request said: "at 8" over "on Monday"."""
        mine_days = bool(self.windows or self.moment or self.soon)
        mine_time = self.moment is not None or self.fixed_min is not None or self.day_from_min is not None
        days, times = (self if mine_days else earlier), (self if mine_time else earlier)
        half = earlier.half if mine_time and self.either_half and not self.half else ""     # dinner, then "at 7"
        return replace(
            self,
            windows=days.windows,
            not_before=days.not_before,
            excluded_weekdays=days.excluded_weekdays,
            excluded_days=days.excluded_days,
            preferred_weekdays=days.preferred_weekdays,
            soon=days.soon,
            names_weekend=days.names_weekend,
            day_from_min=times.day_from_min,
            day_to_min=times.day_to_min,
            fixed_min=times.fixed_min if times.fixed_min is None else in_half(times.fixed_min, half),
            end_min=times.end_min if times.end_min is None else in_half(times.end_min, half),
            preferred=times.preferred,
            half=self.half or earlier.half,
            either_half=times.either_half and not half,
            length=self.length or earlier.length,
        )

    def start(self, now: datetime) -> datetime | None:
        """The one moment meant, UTC; None when a day is said without a time or nothing at all."""
        if self.doubt:
            return None
        if self.moment:
            return self.moment
        minute = self.fixed_min
        if minute is None and self.end_min is None and self.windows:
            return None
        if minute is None:
            return None
        if self.windows:
            day = self.windows[0][0]
            if minute == 0 and wall_time(day, 0, self.zone) <= now:
                day += timedelta(days=1)  # tonight's midnight is the end of today
            return wall_time(day, minute, self.zone)
        today = now.astimezone(self.zone).date()
        found = wall_time(today, minute, self.zone)
        return found if found > now else wall_time(today + timedelta(days=1), minute, self.zone)

    def rough_start(self, now: datetime) -> datetime | None:
        """start(), or a usual hour for a part of day ("tomorrow morning" is 9:00) or for one day alone; None when
        several days, or none, are said."""
        if self.doubt or (exact := self.start(now)) is not None:
            return None if self.doubt else exact
        if self.day_from_min is None:
            return self._usual_start(now)
        day = self.windows[0][0] if self.windows else now.astimezone(self.zone).date()
        low, high = self.day_from_min, self.day_to_min or 1440
        usual = next((minute for minute in _PART_MOMENT.values() if low <= minute < high), low)
        return wall_time(day, usual, self.zone)

    def _usual_start(self, now: datetime) -> datetime | None:
        """Nine o'clock of the one day that was said, while it is still to come."""
        if len(self.windows) != 1 or (self.windows[0][1] - self.windows[0][0]).days != 1:
            return None
        found = wall_time(self.windows[0][0], _USUAL_MIN, self.zone)
        return found if found > now else None

    def periods(self, now: datetime) -> tuple[Interval, ...]:
        """The times to look at, UTC, in order: for listing and searching. Empty when nothing is said about when. A past
        day stays past; a part of day said with several days gives one interval a day, excluded days left out."""
        if not self.said:
            return ()
        if self.moment:
            return ((now.astimezone(UTC), self.moment),)
        today = now.astimezone(self.zone).date()
        ranges = self.windows or ((today, today + timedelta(days=_OPEN_DAYS if self.soon else 1)),)
        single = all((after - first).days == 1 for first, after in ranges)
        if self.fixed_min is not None and self.end_min is None and single:
            minutes = self.length.minutes if self.length and self.length.minutes else _AT_MIN
            starts = [wall_time(first, self.fixed_min, self.zone) for first, _ in ranges]
            return tuple((start, start + timedelta(minutes=minutes)) for start in starts)
        if (
            not self.excluded_weekdays
            and not self.excluded_days
            and (self.day_from_min is None or any((after - first).days > _DAYS_LIMIT for first, after in ranges))
        ):
            return tuple((wall_time(first, 0, self.zone), wall_time(after, 0, self.zone)) for first, after in ranges)
        daily = (
            (wall_time(day, self.day_from_min or 0, self.zone), wall_time(day, self.day_to_min or 1440, self.zone))
            for first, after in ranges
            for day in (first + timedelta(days=n) for n in range((after - first).days))
            if day.weekday() not in self.excluded_weekdays and day not in self.excluded_days
        )
        return tuple((start, end) for start, end in islice(daily, _DAYS_LIMIT) if start < end)


def wall_time(day: date, minute: int, zone: ZoneInfo) -> datetime:
    """The UTC moment of a local wall-clock minute; 1440 is the next midnight. A time that a DST change skips moves
    on."""
    day, minute = day + timedelta(days=minute // 1440), minute % 1440
    return datetime.combine(day, time(minute // 60, minute % 60), tzinfo=zone).astimezone(UTC)


def read_when(text: str, now: datetime, locale: Locale) -> When:
    """What text says about time, seen from now (aware). Nothing said gives a When whose `said` is False."""
    if never := impossible(fold(text)):     # nothing is made of the rest: it is asked for
        return When(spans=tuple(never), zone=locale.zone)
    today = now.astimezone(locale.zone).date()
    said_lengths = lengths(text)
    said_days = days(text, today, day_first=locale.day_first)
    # "a week from Friday" names a day; its week is no length
    said_lengths = [
        one for one in said_lengths if one.from_now or not any(d.span.overlaps(one.span) for d in said_days)
    ]
    before = [item.span for item in said_days]
    said_days = meant(said_days, fold(text))
    said_days = [d for d in said_days if not any(d.span.overlaps(n.span) and n.from_now for n in said_lengths)]
    taken = [item.span for item in said_days] + [item.span for item in said_lengths]
    all_times = _named_apart(day_times(text, taken, hour24=locale.hour24), taken, fold(text))
    said_times = meant(all_times, fold(text))
    back = [*(span for span in before if span not in taken), *(one.span for one in all_times if one not in said_times)]
    soon = [Span(*match.span()) for match in _SOON.finditer(fold(text))]
    kept = [*taken, *(item.span for item in said_times), *soon]
    spans = sorted({*kept, *back, *correcting(back, kept, fold(text))})
    length = next((item for item in said_lengths if not item.from_now), None)
    moment, offset_day = _from_now(said_lengths, now, today)
    windows, lower = _windows(said_days, today)
    if offset_day and not windows:
        windows = [(offset_day, offset_day + timedelta(days=1))]
    if not windows and any(item.part and _TODAY.match(item.span.of(fold(text))) for item in said_times):
        windows = [(today, today + timedelta(days=1))]
    bounds = _times(said_times)
    if bounds.end is not None and length and bounds.fixed is not None and length.minutes != bounds.end - bounds.fixed:
        bounds = replace(bounds, fixed=None, end=None)      # "half an hour from 1 to 5" is to be found between them
    return When(
        windows=tuple(windows),
        not_before=now.astimezone(UTC) if lower is None else max(now, wall_time(lower, 0, locale.zone)),
        day_from_min=bounds.day_from,
        day_to_min=bounds.day_to,
        fixed_min=bounds.fixed,
        end_min=bounds.end,
        excluded_weekdays=frozenset(d.weekday for d in said_days if d.relation == "not" and d.weekday is not None),
        excluded_days=frozenset(
            d.first + timedelta(days=n)
            for d in said_days
            if d.relation == "not" and d.weekday is None
            for n in range((d.after - d.first).days)
        ),
        preferred=bounds.preferred,
        preferred_weekdays=frozenset(d.weekday for d in said_days if d.soft and d.weekday is not None),
        moment=moment,
        length=length,
        soon=bool(soon),
        names_weekend=any(
            d.weekday in {5, 6} or "weekend" in d.span.of(fold(text)) for d in said_days if d.relation != "not"
        )
        or any((after - first).days <= 2 and first.weekday() >= 5 for first, after in windows),
        spans=tuple(spans),
        zone=locale.zone,
        half=half_of_request(fold(text)),
        either_half=any(not item.literal and item.relation in {"at", "from"} for item in said_times),
        doubt=_doubt(said_times, text),
    )


def _doubt(said: list[DayTime], text: str) -> str:
    """About "8pm to 6pm", where no other time was said: a slip, or meant over midnight."""
    clocks = [item for item in said if not item.part]
    if not clocks or any(item.relation != "backwards" for item in clocks):
        return ""
    item = clocks[0]
    minutes = (item.to_min - item.from_min) % 1440 or 1440
    lasts = " ".join(f"{count} {unit}{'s' * (count > 1)}" for count, unit in (
        (minutes // 60, "hour"), (minutes % 60, "minute")) if count)
    words = item.span.of(text).strip()
    return (f'"{words}" ends before it begins. If it goes over midnight, say when it starts and how long it lasts: '
            f'"at {item.from_min // 60}:{item.from_min % 60:02} for {lasts}".')


def _named_apart(said: list[DayTime], days: list[Span], low: str) -> list[DayTime]:
    """Without a part of day that only names a thing ("parents' evening at seven", "taco night on the 6th"): a day or a
    clock time was said, and neither it nor a preposition stands beside the part."""
    beside = [*days, *(item.span for item in said if item.is_point or item.relation == "from")]

    def names(item: DayTime) -> bool:
        if not item.part or item.part == "tonight" or item.span.of(low) != item.part or not beside:
            return False
        near = any(
            span.end <= item.span.start <= span.end + 2
            or (item.span.end <= span.start <= item.span.end + 2 and not _PREPOSITION.match(low, span.start))
            for span in beside
        )
        if low[item.span.end :].startswith(" of "):
            return False
        return not near and re.search(r"[a-z’'][a-z’']\s+$", low[: item.span.start]) is not None

    return [item for item in said if not names(item)]


def _from_now(said: list[Length], now: datetime, today: date) -> tuple[datetime | None, date | None]:
    for item in said:
        if item.from_now and item.days:
            return None, today + timedelta(days=item.days)
        if item.from_now:
            return now.astimezone(UTC) + timedelta(minutes=item.minutes), None
    return None, None


def _windows(said: list[Days], today: date) -> tuple[list[tuple[date, date]], date | None]:
    """The ranges of days, weekdays moved into a week that is named beside them, and the lower bound if one was said."""
    hard = [item for item in said if item.relation != "not" and not item.soft]
    weeks = [item for item in hard if (item.after - item.first).days >= 5 and item.relation == "on"]
    singles = [item for item in hard if item not in weeks]
    if weeks and singles:
        singles = [_moved(item, weeks[0]) for item in singles]
    positive = [(i.first, i.after) for i in singles if i.relation in {"on", "within"}]
    if not positive:
        positive = [(item.first, item.after) for item in weeks]
    lower = [i.after if i.relation == "after" else i.first for i in singles if i.relation in {"after", "from"}]
    upper = [i.first if i.relation == "before" else i.after for i in singles if i.relation in {"before", "by"}]
    if not positive and (lower or upper):
        first = max(lower) if lower else today
        after = min(upper) if upper else first + timedelta(days=_OPEN_DAYS)
        return ([(first, after)] if first < after else [(first, first + timedelta(days=1))]), first if lower else None
    if lower:
        positive = [(max(first, max(lower)), after) for first, after in positive if after > max(lower)]
    if upper:
        positive = [(first, min(after, min(upper))) for first, after in positive if first < min(upper)]
    return positive, max(lower) if lower else None


def _moved(item: Days, week: Days) -> Days:
    if item.weekday is None or item.anchored:
        return item
    monday = week.first - timedelta(days=week.first.weekday())
    day = monday + timedelta(days=item.weekday)
    return Days(day, day + timedelta(days=1), item.span, item.relation, item.weekday, item.soft)


@dataclass(frozen=True, slots=True)
class _Bounds:
    day_from: int | None = None
    day_to: int | None = None
    fixed: int | None = None
    end: int | None = None
    preferred: tuple[tuple[int, int], ...] = ()


def _times(said: list[DayTime]) -> _Bounds:
    preferred = tuple((item.from_min, item.to_min) for item in said if item.soft)
    hard = [item for item in said if not item.soft and item.relation not in {"not", "backwards"}]
    points = [item for item in hard if item.is_point]
    ranges = [item for item in hard if not item.is_point]
    start, end = 0, 1440
    for item in ranges:
        low, high = max(start, item.from_min), min(end, item.to_min)
        if low < high:
            start, end = low, high
    for item in said:
        if item.relation == "not" and item.from_min <= start < item.to_min:
            start = item.to_min
        elif item.relation == "not" and item.from_min < end <= item.to_min:
            end = item.from_min
        elif item.relation == "not" and (start, end) == (0, 1440):
            start = item.to_min if item.from_min < 720 else 0
            end = 1440 if item.from_min < 720 else item.from_min
    exact = next((item for item in ranges if item.relation == "from" and not item.open), None)
    fixed = points[0].from_min if points else None
    bounded = (start, end) != (0, 1440) and not points
    return _Bounds(
        day_from=start if bounded else None,
        day_to=end if bounded else None,
        fixed=exact.from_min if exact and fixed is None else fixed,
        end=exact.to_min if exact else None,
        preferred=preferred,
    )
