"""Book a meeting: who, how long, when, what about; the free slots of all whose calendar is here; one event after
approval.

Steps, all in code: read -> ask back -> busy times -> slots on the quarter hour, in UTC -> the best three -> the
write that the owner approves. Nothing is guessed: an unknown name is asked for, a default is said aloud, no slot
is said so. Must not know models, approvals, files or how a calendar is stored.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

import trio

from node.agent.events import Status
from node.agent.ports import Calendar, Interval, Origin
from node.agent.readers.phrases import phrase, quoted, repeats
from node.agent.readers.windows import Locale, When, wall_time
from node.agent.saying import who
from node.agent.skills.booking_words import BOOKING, DICTATED, names_all_of_a_meeting
from node.agent.skills.registry import SkillAsk, SkillCall, SkillOutcome, SkillSay, SkillWrite
from node.agent.slots import Reading, show_interval, show_moment
from node.agent.tools.registry import Provenance
from node.agent.tools.wording import unread_note
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value
from node.sources.slots import WORKING_HOURS, SlotRules, free_slots, without

__all__ = ["BookMeeting", "Plan", "read_plan"]

DEFAULT_MIN = 30
SHOWN = 3
_CANDIDATES = 600
_NO_TITLE = re.compile(
    r"(?i)(?:put|book|schedule|set\s+up|arrange|need|meet\w*|invite|find|slot|time|hours?|session|some\s*time|"
    r"in)(?:\s+in)?",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """A booking as understood, complete enough to look for slots."""

    people: tuple[str, ...]
    duration_min: int
    duration_source: str
    when: When
    title: str
    title_origin: Origin
    title_source: str


class BookMeeting:
    """The skill over one set of calendars."""

    name = "book_meeting"
    description = "Book a meeting: find a time that suits all whose calendar is here, and enter it after you agree"
    claims = ("calendar_create", "calendar_free")
    examples = (
        "book an hour with Sam next week",
        "find an hour for Lee and me next month",
        "set up a meeting with the architects on Thursday afternoon",
        "find a slot for Kim and me tomorrow, half an hour",
        "I need to meet Alex before the weekend",
        "arrange a call with Robin, 20 minutes, some time this week",
        "schedule a review with Jo and Max for Monday",
        "invite Toni to a planning session on Wednesday morning",
        "set aside two hours for the tax papers on Sunday",
        "lunch with Chris one day next week",
        "need Pat for 45 minutes as soon as possible",
        "I have to talk to Noor for half an hour on Friday",
        "I want to see Mika for an hour this week",
    )
    cues = (
        "book",
        "schedule",
        "set up",
        "arrange",
        "invite",
        "meeting with",
        "set aside",
        "find a slot",
        "find an hour",
        "find time",
        "event",
        "need to see",
        "need to meet",
        "have to talk to",
    )

    def __init__(self, calendar: Calendar) -> None:
        self._calendar = calendar

    def takes(self, tool: str, reading: Reading) -> bool:
        """Requests for an event without an exact start, or with people; searches for a slot with people."""
        people = bool(reading.people.found or reading.people.unclear)
        booking = BOOKING.search(reading.text) is not None
        if tool == "calendar_create":
            open_start = booking and reading.when.start(reading.now) is None
            return people or open_start or repeats(reading.text)
        return people and booking

    def sure(self, reading: Reading) -> bool:
        """Who, how long and when are all said in the way of a meeting."""
        return names_all_of_a_meeting(reading)

    def evidence(self, reading: Reading) -> float:
        """A verb of booking, people or a length, and a when."""
        if not BOOKING.search(reading.text) or DICTATED.match(reading.text):
            return 0.0
        who_or_long = bool(reading.people.found or reading.people.unclear or reading.when.length)
        return (1.0 + who_or_long + reading.when.said) / 3 if who_or_long else 0.0

    async def run(self, call: SkillCall) -> SkillOutcome:
        """The next question, "no slot", or the event to write with the best three starts to choose from."""
        plan = read_plan(call)
        if isinstance(plan, SkillAsk):
            return plan
        now, locale = call.reading.now, call.slots.locale
        await call.events.emit(Status("Looking for a time in the calendars that are here."))
        slots, unknown = await trio.to_thread.run_sync(self._slots, plan, now, call.freed)
        mine, theirs = await trio.to_thread.run_sync(self._unreadable, plan)
        if not slots:
            text = "\n".join(filter(None, [_no_slot(plan, unknown, now), unread_note([*mine, *theirs])]))
            return SkillSay(_found(text, plan.people), "no free slot under these conditions")
        write = _write(plan, slots, unknown, locale)       # of the owner's files the write itself says it
        return replace(write, before="\n".join(filter(None, [write.before, unread_note(theirs)])))

    def _unreadable(self, plan: Plan) -> tuple[list[str], list[str]]:
        """The owner's files that could not be read, and those of the others. Blocking."""
        mine = list(self._calendar.unreadable())
        found = dict.fromkeys(name for person in plan.people for name in self._calendar.unreadable(person))
        return mine, [name for name in found if name not in mine]

    def _slots(
        self, plan: Plan, now: datetime, freed: tuple[Interval, ...],
    ) -> tuple[list[Interval], tuple[str, ...]]:
        """The best slots, and whose calendar is not here; freed time counts as free. Blocking."""
        windows = _search_windows(plan.when, now)
        if not windows:
            return [], ()
        length = timedelta(minutes=plan.duration_min)       # one that is said for 23:30 runs over midnight
        hull = (min(start for start, _ in windows), max(end for _, end in windows) + length)
        busy = list(self._calendar.busy(hull))
        unknown = tuple(person for person in plan.people if not self._calendar.known(person))
        for person in plan.people:
            if person not in unknown:
                busy.extend(self._calendar.busy(hull, person=person))
        taken = without(busy, freed)
        if plan.when.fixed_min is not None:
            return _at_the_said_time(plan, windows, taken), unknown
        return best(free_slots(taken, _rules(plan, windows), limit=_CANDIDATES), plan.when), unknown


def read_plan(call: SkillCall) -> Plan | SkillAsk:
    """The booking in the request and the answers since, or the one thing to ask for next."""
    reading = call.reading
    names = list(reading.people.names)
    answered = call.answers.get("people")
    if reading.people.unclear:
        if answered is None:
            first = reading.people.unclear[0]
            return SkillAsk("people", who(first), first.candidates)
        if answered.people.unclear or not answered.people.found:
            return SkillAsk("people", who(answered.people.unclear[0]) if answered.people.unclear else "Who is meant?")
        names += [name for name in answered.people.names if name not in names]
    when = reading.when
    if not when.said:
        later = call.answers.get("when")
        if later is None or not later.when.said:
            return SkillAsk("when", "When should I look: which day or days, what time of day?")
        when = later.when.over(when)
    minutes, source = _duration(when, reading)
    title, origin, title_source = _title(reading, names)
    return Plan(tuple(names), minutes, source, when, title, origin, title_source)


def _duration(when: When, reading: Reading) -> tuple[int, str]:
    if when.length and when.length.minutes > 0:
        return when.length.minutes, f'your words: "{when.length.span.of(reading.text)}"'
    if when.end_min is not None and when.fixed_min is not None:
        return when.end_min - when.fixed_min, "your words: from ... to ..."
    return DEFAULT_MIN, f"default: {DEFAULT_MIN} min, you did not say how long"


def _title(reading: Reading, names: Sequence[str]) -> tuple[str, Origin, str]:
    people = [person.span for person in reading.people.found] + [one.span for one in reading.people.unclear]
    span = phrase(reading.text, "title", (*reading.understood, *people))
    if span and not any(span.overlaps(person) for person in people):
        words = (
            re.sub(
                r"^(?:the|a|an|my|our)\s"
                r"+",
                "",
                span.of(reading.text),
            )
            if not quoted(reading.text)
            else span.of(reading.text)
        )
        if words and not _NO_TITLE.fullmatch(words):
            return words[:1].upper() + words[1:], Origin.REQUEST, f'your words: "{span.of(reading.text)}"'
    if names:
        return f"Meeting with {_and([_short(name) for name in names])}", Origin.DEFAULT, "default: no title was said"
    return "Meeting", Origin.DEFAULT, "default: no title was said"


def _search_windows(when: When, now: datetime) -> tuple[Interval, ...]:
    """The stated days as whole days in UTC, from now on; two weeks when only "soon" or a time of day was said."""
    if when.moment:
        return ((when.moment, when.moment + timedelta(hours=12)),)
    today = now.astimezone(when.zone).date()
    ranges: Sequence[tuple[date, date]] = when.windows or ((today, today + timedelta(days=14)),)
    floor = max(now, when.not_before) if when.not_before else now
    found = [(max(wall_time(first, 0, when.zone), floor), wall_time(after, 0, when.zone)) for first, after in ranges]
    return tuple((start, end) for start, end in found if start < end)


def _at_the_said_time(plan: Plan, windows: Sequence[Interval], taken: Sequence[Interval]) -> list[Interval]:
    """The first free ones that start exactly then by the wall clock, whatever the clocks do that night: of an hour that
    comes twice the first, of a time that is skipped the one that is shown in its place."""
    when, length = plan.when, timedelta(minutes=plan.duration_min)
    assert when.fixed_min is not None
    found: list[Interval] = []
    for opens, closes in windows:
        day, last = (edge.astimezone(when.zone).date() for edge in (opens, closes))
        while day <= last and len(found) < SHOWN:
            start = wall_time(day, when.fixed_min, when.zone)
            allowed = day.weekday() not in when.excluded_weekdays and day not in when.excluded_days
            usual = when.names_weekend or day.weekday() < 5
            free = all(start + length <= busy_from or busy_to <= start for busy_from, busy_to in taken)
            if opens <= start < closes and allowed and usual and free:
                found.append((start, start + length))
            day += timedelta(days=1)
    return best(found, when)


def _rules(plan: Plan, windows: tuple[Interval, ...]) -> SlotRules:
    when = plan.when
    day_from, day_to = when.day_from_min, when.day_to_min
    if day_from is None and day_to is None and when.preferred:
        day_from = min(WORKING_HOURS[0], *(start for start, _ in when.preferred))
        day_to = max(WORKING_HOURS[1], *(end for _, end in when.preferred))
    return SlotRules(
        windows,
        plan.duration_min,
        when.zone,
        day_from_min=day_from,
        day_to_min=day_to,
        excluded_weekdays=when.excluded_weekdays,
        weekends=when.names_weekend,
    )


def best(slots: Sequence[Interval], when: When) -> list[Interval]:
    """At most three: wished times and days first, then usual hours ("morning" from nine), then the earliest; none
    overlapping another where there are enough."""

    def order(slot: Interval) -> tuple[bool, bool, bool, datetime]:
        start, end = (edge.astimezone(when.zone) for edge in slot)
        first, last = start.hour * 60 + start.minute, end.hour * 60 + end.minute
        wished = not when.preferred or any(low <= first and last <= high for low, high in when.preferred)
        day = not when.preferred_weekdays or start.weekday() in when.preferred_weekdays
        usual = WORKING_HOURS[0] <= first and (last <= WORKING_HOURS[1] or first >= WORKING_HOURS[1])
        return not wished, not day, not usual, slot[0]

    allowed = [slot for slot in slots if slot[0].astimezone(when.zone).date() not in when.excluded_days]
    chosen: list[Interval] = []
    for slot in sorted(allowed, key=order):
        if len(chosen) < SHOWN and all(slot[1] <= other[0] or other[1] <= slot[0] for other in chosen):
            chosen.append(slot)
    return chosen


def _write(plan: Plan, slots: Sequence[Interval], unknown: Sequence[str], locale: Locale) -> SkillWrite:
    start = slots[0][0]
    options = {show_moment(slot[0], locale): slot[0] for slot in slots[1:]}
    when_words = "worked out from your words and the calendars that are here"
    provenance = {
        "title": Provenance(plan.title_origin, plan.title_source),
        "start": Provenance(Origin.COMPUTED, when_words, alternatives=tuple(options)),
        "duration": Provenance(
            Origin.DEFAULT if plan.duration_source.startswith("default") else Origin.REQUEST,
            plan.duration_source,
        ),
    }
    args: dict[str, str | int | datetime | tuple[str, ...]] = {
        "title": plan.title,
        "start": start,
        "duration": plan.duration_min,
    }
    if plan.people:
        args["attendees"] = plan.people
        provenance["attendees"] = Provenance(Origin.SOURCE, "address book, for your words")
    before = "Free: " + "; ".join(show_interval(slot, locale) for slot in slots) + "."
    if plan.duration_source.startswith("default"):
        before += f" You did not say how long: I take {plan.duration_min} minutes."
    if unknown:
        before += f" I do not have {_and(unknown)}'s calendar, so that side is only proposed."
    after = f"{_and(plan.people)} {'was' if len(plan.people) == 1 else 'were'} not told yet." if plan.people else ""
    return SkillWrite("calendar_create", args, provenance, before, after, {"start": options} if options else {})


def _no_slot(plan: Plan, unknown: Sequence[str], now: datetime) -> str:
    if not _search_windows(plan.when, now):
        return "That time is over. Nothing was written. Give a day that is still to come."
    who_too = [person for person in plan.people if person not in unknown]
    text = f"No free {plan.duration_min} minutes in that time for you"
    text += f" and {_and(who_too)}" if who_too else ""
    if plan.when.fixed_min is not None:
        text = f"At {plan.when.fixed_min // 60:02d}:{plan.when.fixed_min % 60:02d} that time is taken or over"
    return text + ". Nothing was written. Give other days or hours, or a shorter time."


def _found(text: str, names: Sequence[str]) -> Labeled:
    values = tuple(Value(name, "PERSON") for name in names)
    return Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, "calendar", values)


def _short(name: str) -> str:
    if any(map(str.isdigit, name)):
        return name         # "pixel 8" is no first name and a last one
    return re.sub(r"\s*\(.*\)", "", name).strip() if "(" in name or name.startswith("Dr") else name.split()[0]


def _and(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1] if names else ""
