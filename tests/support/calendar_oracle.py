"""What is right about a booking, worked out minute by minute in UTC from the plain facts of random_calendars.

Nothing of the node is used: zoneinfo's offset before a gap and first pass of a repeated hour are what RFC 5545 (3.3.5)
asks for. Where the standard and calendar programs differ about a repeated event that runs over a change of clocks (the
same length, or the same wall-clock end: 3.8.5.3), the minutes in dispute count neither way.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from random_calendars import Booking, Household, Series

__all__ = ["Minutes", "Oracle", "minute_of", "wall"]


@dataclass(frozen=True)
class Minutes:
    """Minutes since 1970, UTC: taken by every reading of the standard, and by at least one."""

    surely: frozenset[int]
    perhaps: frozenset[int]


def minute_of(moment: datetime) -> int:
    """Whole minutes since 1970."""
    return int(moment.timestamp() // 60)


def wall(minute: int, zone: ZoneInfo) -> datetime:
    """The wall clock at that minute."""
    return datetime.fromtimestamp(minute * 60, UTC).astimezone(zone)


class Oracle:
    """One household's truth."""

    def __init__(self, house: Household) -> None:
        self.house = house
        self.zone = ZoneInfo(house.zone)
        self._taken: dict[str | None, Minutes] = {}
        for person in {None, *house.whose.values()}:
            every = [one for name, series in house.files.items() if house.whose[name] == person for one in series]
            surely, perhaps = set[int](), set[int]()
            for one in every:
                for exact, nominal in self._occurrences(one):
                    surely |= exact & nominal
                    perhaps |= exact | nominal
            self._taken[person] = Minutes(frozenset(surely), frozenset(perhaps))

    def taken(self, person: str | None) -> Minutes:
        """By this person's calendar; None: the owner's. Nothing where no calendar is known."""
        return self._taken.get(person, Minutes(frozenset(), frozenset()))

    def _occurrences(self, one: Series) -> Iterator[tuple[set[int], set[int]]]:
        if not one.opaque or one.cancelled:
            return
        if one.all_days:
            last = one.first + timedelta(days=one.all_days)
            span = set(range(self._utc(one.first, None), self._utc(last, None)))
            yield span, span
            return
        length = self._utc(one.first + timedelta(minutes=one.minutes), one.zone) - self._utc(one.first, one.zone)
        for start in one.starts():
            begin = self._utc(start, one.zone)
            end = self._utc(start + timedelta(minutes=one.minutes), one.zone)
            moved = one.moved is not None and start == one.moved[1]
            exact = one.minutes if one.by_until else end - begin if moved or one.count == 1 else length
            yield set(range(begin, begin + exact)), set(range(begin, end))

    def _utc(self, local: datetime, zone: str | None) -> int:
        return minute_of(local.replace(tzinfo=ZoneInfo(zone) if zone else self.zone))

    # ------------------------------------------------------------ the booking

    def clashes(self, start: datetime, end: datetime) -> bool:
        """Whether a minute of it is surely taken by the owner or by somebody asked along."""
        span = range(minute_of(start), minute_of(end))
        return any(self.taken(person).surely & set(span) for person in (None, *self.house.booking.people))

    def misplaced(self, start: datetime, end: datetime) -> str:
        """How it breaks what was asked about day, time and length; empty when it doesn't."""
        asked = self.house.booking
        begin = minute_of(start)
        if minute_of(end) - begin != asked.minutes:
            return f"{minute_of(end) - begin} minutes"
        if begin < minute_of(self.house.now):
            return "in the past"
        return "" if any(self._fits(begin, asked)) else f"at {wall(begin, self.zone):%a %d %b %H:%M %z}"

    def _fits(self, begin: int, asked: Booking) -> Iterator[bool]:
        first = wall(begin, self.zone)
        if asked.fixed_min is not None:
            # exactly the stated wall clock, either pass of it; a skipped one as if clocks had not yet changed
            for stated in (self._at(day, asked.fixed_min) for day in asked.days):
                again = stated.replace(fold=1)
                both = minute_of(again) > minute_of(stated)
                yield begin == minute_of(stated) or (both and begin == minute_of(again))
            return
        for day in asked.days:
            low, high = (minute_of(self._at(day, bound)) for bound in asked.bounds)
            yield low <= begin and begin + asked.minutes <= high and (asked.weekends or day.weekday() < 5) \
                and first.date() == day

    def free_start(self) -> int | None:
        """A minute at which the meeting could surely begin, on the quarter hour; None when there is none. Of a stated
        hour that comes twice only the first pass counts: nobody has to look in the second."""
        asked, step = self.house.booking, 15
        taken = frozenset[int]().union(*(self.taken(person).perhaps for person in (None, *asked.people)))
        for day in asked.days:
            low = minute_of(self._at(day, 0)) // step * step
            for begin in range(low, low + 26 * 60, step):
                span = range(begin, begin + asked.minutes)
                fits = begin >= minute_of(self.house.now) and any(self._fits(begin, asked))
                first = asked.fixed_min is None or wall(begin, self.zone).fold == 0
                if fits and first and begin % step == 0 and not taken.intersection(span):
                    return begin
        return None

    def free_minutes(self, window: tuple[datetime, datetime], minutes: int) -> tuple[set[int], set[int]]:
        """The owner's free stretches of at least so many minutes in the window, none over midnight: surely free, and
        perhaps."""
        inside = range(minute_of(window[0]), minute_of(window[1]))
        midnights = [at for at in inside[1:] if wall(at, self.zone).date() != wall(at - 1, self.zone).date()]
        edges = [inside.start, *midnights, inside.stop]
        surely, perhaps = set[int](), set[int]()
        for first, last in pairwise(edges):
            day = range(first, last)
            surely |= _long_runs(day, self.taken(None).perhaps, minutes)
            perhaps |= _long_runs(day, self.taken(None).surely, minutes)
        return surely, perhaps

    def _at(self, day: date, minute: int) -> datetime:
        days, minute = divmod(minute, 1440)
        day += timedelta(days=days)
        return datetime(day.year, day.month, day.day, minute // 60, minute % 60, tzinfo=self.zone)


def _long_runs(inside: range, taken: frozenset[int], minutes: int) -> set[int]:
    found, run = set[int](), list[int]()
    for at in [*inside, inside.stop]:
        if at < inside.stop and at not in taken:
            run.append(at)
            continue
        if len(run) >= minutes:
            found.update(run)
        run = []
    return found
