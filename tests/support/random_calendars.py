"""Owners with calendars, contacts and a booking to make, drawn from a seed: both changes of clocks, several zones,
whole days, floating times, rules with exceptions, names that overlap. Must not know the node's code: what is right is
worked out by calendar_oracle from these plain facts alone.
"""

import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

__all__ = ["Booking", "Household", "Series", "changes_of", "household", "ics_text", "vcf_text"]

ZONES = (
    "Europe/Berlin", "Europe/London", "America/New_York", "America/St_Johns", "Australia/Lord_Howe",
    "Pacific/Auckland", "America/Santiago", "Asia/Kolkata", "Africa/Casablanca",
)
"""Two changes a year on either half of the earth, one by half an hour, half-hour offsets, none at all, Ramadan's."""
PEOPLE = (
    "Dana Whitfield", "Dana Okafor", "Ravi Menon", "Ana Kovac", "Anna Lindqvist", "Tomas Berg", "Thomas Berger",
    "Priya Nair", "Marcus Oduya", "Li Wei", "Wei Chen", "Sofia Ricci", "Sofie Riccardi", "Jonas Keller",
    "Kellan Jonas", "Mum (Helen Marsh)", "Helen Marsden", "Dr. Patel", "Nina Patel", "Yusuf Demir",
)
STRANGERS = ("Zoe", "Bjorn", "Xanthe", "Quentin")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PARTS = {"morning": (360, 720), "afternoon": (720, 1080), "evening": (1080, 1320)}
LENGTHS = {15: "a quarter of an hour", 30: "half an hour", 45: "45 minutes", 60: "an hour", 90: "90 minutes",
           120: "two hours", 180: "3 hours"}
WORKING = (540, 1080)


@dataclass(frozen=True)
class Series:
    """One event or rule, as a person thinks of it. zone None: floating, the owner's; all_days > 0: whole days."""

    uid: str
    zone: str | None
    first: datetime
    """Wall clock, naive."""
    minutes: int
    all_days: int = 0
    every_days: int = 0
    weekdays: tuple[int, ...] = ()
    """Every week on these, the first occurrence being on one of them; instead of every_days."""
    count: int = 1
    skipped: tuple[int, ...] = ()
    moved: tuple[int, datetime] | None = None
    opaque: bool = True
    cancelled: bool = False
    by_until: bool = False
    """The rule is written with its end, not with a count; and the length as DURATION, not as an end."""

    def planned(self) -> list[datetime]:
        """The wall-clock starts as the rule alone gives them."""
        if not self.weekdays:
            return [self.first + timedelta(days=self.every_days * number) for number in range(self.count)]
        days = (self.first + timedelta(days=number) for number in range(7 * self.count))
        return [day for day in days if day.weekday() in self.weekdays][: self.count]

    def starts(self) -> list[datetime]:
        """The wall-clock starts of all occurrences that take place."""
        which, to = self.moved or (-1, self.first)
        return [to if number == which else start for number, start in enumerate(self.planned())
                if number not in self.skipped]


@dataclass(frozen=True)
class Booking:
    """What is asked, and what it means."""

    text: str
    people: tuple[str, ...]
    asks: bool
    """A name in it is nobody's or more than one person's: the only right answer is a question."""
    minutes: int
    days: tuple[date, ...]
    bounds: tuple[int, int]
    """The start not before and the end not after, by the owner's wall clock."""
    fixed_min: int | None
    weekends: bool


@dataclass(frozen=True)
class Household:
    """One owner: where and when, who is known, what is in which calendar file, and the booking."""

    seed: int
    zone: str
    now: datetime
    names: tuple[str, ...]
    files: dict[str, tuple[Series, ...]]
    whose: dict[str, str | None]
    """The person whose calendar a file is; None: the owner's."""
    booking: Booking
    free_window: tuple[datetime, datetime]
    """A stretch of less than a day, in UTC, to list the free time of."""


@lru_cache
def changes_of(zone: str, year: int) -> tuple[datetime, ...]:
    """The instants of that year, to the hour, at which the zone's offset changes; looked for hour by hour."""
    where, at, found = ZoneInfo(zone), datetime(year, 1, 1, tzinfo=UTC), []
    while at.year == year:
        after = at + timedelta(hours=1)
        if at.astimezone(where).utcoffset() != after.astimezone(where).utcoffset():
            found.append(after)
        at = after
    return tuple(found)


def household(seed: int) -> Household:
    """The owner of this seed, always the same."""
    draw = random.Random(f"calendar {seed}")
    zone = draw.choice(ZONES)
    where = ZoneInfo(zone)
    changes = changes_of(zone, draw.randrange(2026, 2030))
    near = draw.choice(changes) if changes and draw.random() < 0.8 else datetime(2026, 5, 13, 8, tzinfo=UTC)
    # mostly the change is still to come, within a week
    now = (near - timedelta(hours=draw.randrange(-20, 150))).replace(minute=draw.choice((0, 7, 30, 59)))
    names = tuple(draw.sample(PEOPLE, draw.randrange(5, 12)))
    today = now.astimezone(where).date()
    booking = _booking(draw, names, today, near.astimezone(where).date())
    files, whose = _files(draw, names, booking, zone, now.astimezone(where).replace(tzinfo=None))
    opens = near - timedelta(hours=draw.randrange(1, 16))
    window = (opens, opens + timedelta(minutes=15 * draw.randrange(4, 72)))
    return Household(seed, zone, now, names, files, whose, booking, window)


# ---------------------------------------------------------------- the booking


def _booking(draw: random.Random, names: tuple[str, ...], today: date, change: date) -> Booking:
    minutes = draw.choice(tuple(LENGTHS))
    said, people, asks = _who(draw, names)
    when, days, bounds, fixed, weekends = _when(draw, today, change, minutes)
    length = LENGTHS[minutes]
    if said:
        text = draw.choice((
            f"book {length} with {said} {when}", f"Schedule a meeting with {said} {when} for {length}",
            f"I need to meet {said} for {length} {when}", f"set up {length} with {said} {when}",
        ))
    else:
        text = f"set aside {length} {when} for the papers"
    return Booking(text, people, asks, minutes, days, bounds, fixed, weekends)


def _who(draw: random.Random, names: tuple[str, ...]) -> tuple[str, tuple[str, ...], bool]:
    """The words for the people, whom they mean, and whether that can't be known."""
    if draw.random() < 0.15:
        return "", (), False
    if draw.random() < 0.08:
        return draw.choice(STRANGERS), (), True
    said, people, asks = [], [], False
    for name in draw.sample(names, 2 if draw.random() < 0.3 else 1):
        words = draw.choice(([name], _parts(name)))[0] if "(" not in name else draw.choice(("Mum", "mum", "Helen"))
        meant = [one for one in names if words == one or words.casefold() in (part.casefold() for part in _parts(one))]
        asks = asks or len(meant) != 1
        said.append(words)
        people.append(name)
    return " and ".join(said), tuple(people), asks


def _parts(name: str) -> list[str]:
    """The words that a person goes by, the first name first; "Dr. Patel" goes by Patel."""
    return [part.strip("()") for part in name.split() if part != "Dr."]


def _when(
    draw: random.Random, today: date, change: date, minutes: int,
) -> tuple[str, tuple[date, ...], tuple[int, int], int | None, bool]:
    """The words, the local days, the bounds of the day, a stated start, and whether weekends count."""
    day = change if change > today and draw.random() < 0.6 else today + timedelta(days=draw.randrange(1, 20))
    kind = draw.choice(("date", "date", "part", "part", "clock", "clock", "week", "tomorrow"))
    if kind == "tomorrow":
        day = today + timedelta(days=1)
        return "tomorrow", (day,), WORKING, None, True
    words = f"on {draw.choice((f'{day.day} {MONTHS[day.month - 1]}', f'{MONTHS[day.month - 1]} {day.day}'))}"
    if kind == "week":
        monday = today + timedelta(days=7 - today.weekday())
        return "next week", tuple(monday + timedelta(days=n) for n in range(7)), WORKING, None, False
    if 1 <= (day - today).days <= 6 and draw.random() < 0.5:
        words = f"on {WEEKDAYS[day.weekday()]}"
    if kind == "part":
        part = draw.choice(tuple(PARTS))
        return f"{words} in the {part}", (day,), PARTS[part], None, True
    if kind == "clock":
        at = draw.choice((30, 60, 75, 90, 120, 135, 150, 180, 195, 210, 540, 645, 780, 1020, 1125))
        hour, minute = divmod(at, 60)
        clock = f"{hour % 12 or 12}:{minute:02d} {'am' if hour < 12 else 'pm'}"
        return f"{words} at {clock}", (day,), (at, at + minutes), at, True
    return words, (day,), WORKING, None, True


# ---------------------------------------------------------------- the calendars


def _files(
    draw: random.Random, names: tuple[str, ...], booking: Booking, zone: str, now: datetime,
) -> tuple[dict[str, tuple[Series, ...]], dict[str, str | None]]:
    files, whose = {"owner.ics": _events(draw, zone, now, "o", booking)}, {"owner.ics": None}
    if draw.random() < 0.3:
        files["owner-work.ics"], whose["owner-work.ics"] = _events(draw, zone, now, "w", booking), None
    first_names = [_parts(name)[0].lower() for name in names]
    keepers = [name for name in dict.fromkeys((*booking.people, draw.choice(names))) if draw.random() < 0.7]
    for number, name in enumerate(keepers):
        words = [part.lower().strip(".()") for part in name.split()]
        only_first = first_names.count(_parts(name)[0].lower()) == 1 and not name.startswith("Dr.") and "(" not in name
        stem = words[0] if only_first and draw.random() < 0.5 else "-".join(words)
        files[f"{stem}.ics"], whose[f"{stem}.ics"] = _events(draw, zone, now, f"p{number}", booking), name
    return files, whose


def _events(draw: random.Random, zone: str, now: datetime, mark: str, booking: Booking) -> tuple[Series, ...]:
    found = []
    for number in range(draw.randrange(4, 14)):
        uid = f"{mark}{number}@random.example"
        # half of them on the days that the booking is about, so that there is something to run into
        day = draw.choice(booking.days) if draw.random() < 0.5 else now.date() + timedelta(days=draw.randrange(-3, 20))
        at = datetime(day.year, day.month, day.day) + timedelta(minutes=15 * draw.randrange(0, 96))
        if draw.random() < 0.5:
            at = at.replace(hour=draw.randrange(8, 18))
        their = draw.choice((zone, zone, zone, "UTC", None, draw.choice(ZONES)))
        minutes = draw.choice((15, 30, 45, 60, 60, 90, 120, 240, 600))
        if draw.random() < 0.12:
            found.append(Series(uid, None, at.replace(hour=0, minute=0), 0, all_days=draw.choice((1, 1, 2)),
                                opaque=draw.random() < 0.4, cancelled=draw.random() < 0.2))
        elif draw.random() < 0.35:
            every, count = draw.choice(((1, 9), (7, 6), (14, 4), (0, 8)))
            begun = at - timedelta(days=(every or 3) * draw.randrange(count))
            weekdays = () if every else tuple(sorted({begun.weekday(), *draw.sample(range(7), 2)}))
            skipped = tuple(sorted(draw.sample(range(count), draw.randrange(0, 2))))
            left = [n for n in range(1, count) if n not in skipped]
            moved = None
            if draw.random() < 0.3:
                which = draw.choice(left)
                planned = Series(uid, their, begun, minutes, every_days=every, weekdays=weekdays, count=count).planned()
                moved = which, planned[which] + timedelta(hours=draw.choice((-2, 1, 3)))
            found.append(Series(uid, their, begun, minutes, every_days=every, weekdays=weekdays, count=count,
                                skipped=skipped, moved=moved, opaque=draw.random() < 0.9, by_until=draw.random() < 0.4))
        else:
            found.append(Series(uid, their, at, minutes, opaque=draw.random() < 0.9, cancelled=draw.random() < 0.08))
    return tuple(found)


# ---------------------------------------------------------------- as files


def ics_text(series: tuple[Series, ...]) -> str:
    """The file (RFC 5545), ended by CRLF."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Random//EN"]
    for one in series:
        rule = [_rule(one)] if one.count > 1 else []
        rule += [_time("EXDATE", one, one.planned()[number]) for number in one.skipped]
        lines += _vevent(one, one.first, rule)
        if one.moved:
            number, to = one.moved
            lines += _vevent(one, to, [_time("RECURRENCE-ID", one, one.planned()[number])])
    return "\r\n".join([*lines, "END:VCALENDAR", ""])


def _rule(one: Series) -> str:
    names = ",".join(("MO", "TU", "WE", "TH", "FR", "SA", "SU")[day] for day in one.weekdays)
    every = f"FREQ=WEEKLY;BYDAY={names}" if names else f"FREQ=DAILY;INTERVAL={one.every_days}"
    if not one.by_until:
        return f"RRULE:{every};COUNT={one.count}"
    last = one.planned()[-1]
    if one.zone is not None:        # in UTC, unless the start floats (RFC 5545, 3.3.10)
        last = last.replace(tzinfo=ZoneInfo(one.zone)).astimezone(UTC)
    return f"RRULE:{every};UNTIL={last:%Y%m%dT%H%M%S}{'Z' if one.zone else ''}"


def _vevent(one: Series, start: datetime, more: list[str]) -> list[str]:
    end = start + (timedelta(days=one.all_days) if one.all_days else timedelta(minutes=one.minutes))
    return [
        "BEGIN:VEVENT", f"UID:{one.uid}", "DTSTAMP:20260101T000000Z", _time("DTSTART", one, start),
        f"DURATION:PT{one.minutes}M" if one.by_until else _time("DTEND", one, end), *more, f"SUMMARY:Event {one.uid}",
        f"TRANSP:{'OPAQUE' if one.opaque else 'TRANSPARENT'}",
        f"STATUS:{'CANCELLED' if one.cancelled else 'CONFIRMED'}", "END:VEVENT",
    ]


def _time(name: str, one: Series, at: datetime) -> str:
    if one.all_days:
        return f"{name};VALUE=DATE:{at:%Y%m%d}"
    if one.zone == "UTC":
        return f"{name}:{at:%Y%m%dT%H%M%S}Z"
    return f"{name}{f';TZID={one.zone}' if one.zone else ''}:{at:%Y%m%dT%H%M%S}"


def vcf_text(names: tuple[str, ...]) -> str:
    """The contacts, each with an address of its own."""
    return "".join(
        f"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:{name}\r\nN:;{name};;;\r\nEMAIL:{address_of(name)}\r\nEND:VCARD\r\n"
        for name in names
    )


def address_of(name: str) -> str:
    """The one address of this person."""
    return f"{'.'.join(part.strip('.()').lower() for part in name.split())}@example.org"
