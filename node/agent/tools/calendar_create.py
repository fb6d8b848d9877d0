"""The tool that puts one event into the owner's calendar, exactly once, and can take it out again.

The event's UID is made from the idempotency key. Nobody is invited by it: it writes to the owner's own file only.
Must not know who approves.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from node.agent.ports import Clock, Effect, EffectValue, Json, Origin
from node.agent.tools.calls import in_thread
from node.agent.tools.errors import EffectRefused
from node.agent.tools.examples import examples_of
from node.agent.tools.registry import (
    Args,
    Param,
    Provenance,
    ToolContext,
    ToolSpec,
    UndoRecord,
    check_args,
    effect_value,
)
from node.agent.tools.wording import clock_span, listed, minutes, moment, unread_note
from node.sources.event import Attendee, Event, NewEvent
from node.sources.ics import Calendars
from node.sources.vcf import Contacts

__all__ = ["CalendarCreate", "uid_of"]

DEFAULT_MINUTES = 30

_SPEC = ToolSpec(
    name="calendar_create",
    description="Create a new event, meeting or appointment in the calendar at a given time",
    params={
        "title": Param("what the event is", "text"),
        "start": Param("when it starts", "moment"),
        "duration": Param("how long, in minutes", "minutes"),
        "attendees": Param("the names of the people in it", "names"),
        "location": Param("where it is", "text"),
    },
    required=("title", "start"),
    examples=(
        "put dentist on my calendar for Monday at 8", "enter yoga on Thursday from 18:00 to 19:00",
        "make an appointment with the plumber tomorrow at 11", "add dinner with Bo on Saturday at seven",
        "book the boiler inspection for 4 May, 9 o'clock", "block two hours on Wednesday morning for painting",
        "create an event called choir practice next Tuesday at 20:00",
        "save the date: school concert on 12 June at 6pm",
        "set up a call with the bank on Friday at half past ten",
        *examples_of("calendar_create"),
    ),
    kind="write",
    cues=("schedule", "book", "add", "create", "put", "enter", "block", "save the date", "set up", "appointment"),
)


class CalendarCreate:
    """One new event of the owner."""

    spec = _SPEC

    def __init__(self, calendars: Calendars, contacts: Contacts, clock: Clock) -> None:
        self._calendars = calendars
        self._contacts = contacts
        self._clock = clock

    async def choices(self, param: str) -> tuple[str, ...]:
        """The address book's names for attendees."""
        return await in_thread(self._contacts.names) if param == "attendees" else ()

    async def plan(self, args: Args, ctx: ToolContext, *, idempotency_key: str) -> Effect:
        """The event in full, with a warning where it overlaps another. Without a duration it takes DEFAULT_MINUTES,
        which is said."""
        check_args(self.spec, args)
        start, duration = args["start"], args.get("duration", DEFAULT_MINUTES)
        assert isinstance(start, datetime)
        assert isinstance(duration, int)
        names = args.get("attendees", ())
        assert isinstance(names, tuple)
        start = start.astimezone(UTC)
        end = start + timedelta(minutes=duration)
        title, location = str(args["title"]).strip(), str(args.get("location", "")).strip()
        people = await in_thread(lambda: [self._attendee(str(name)) for name in names])
        clashes = await in_thread(lambda: [each for each in self._calendars.events((start, end)) if each.busy])
        assumed = Provenance(Origin.DEFAULT, "nobody said how long")
        values = [
            effect_value("title", title, title, ctx),
            effect_value("start", start.isoformat(), moment(start, ctx.zone), ctx),
            effect_value("duration", duration, minutes(duration), ctx, default=assumed),
            EffectValue("end", end.isoformat(), moment(end, ctx.zone), Origin.COMPUTED),
        ]
        if people:
            shown = listed([_person(who) for who in people])
            pairs: Json = [{"name": who.name, "email": who.email} for who in people]
            values.append(effect_value("attendees", pairs, shown, ctx))
        if location:
            values.append(effect_value("location", location, location, ctx))
        text = _text(title, (start, end), people, location, clashes, ctx.zone)
        if end <= ctx.clock.now():
            text += "\nThat time is past."
        if note := unread_note(await in_thread(self._calendars.unreadable)):
            text += f"\n{note}"
        return Effect(self.spec.name, "write", text, tuple(values), idempotency_key)

    async def apply(self, effect: Effect, idempotency_key: str) -> UndoRecord:
        """Write the event unless it is there. The record names the event and a fingerprint of it as it stands."""
        event = _new_event(effect, idempotency_key)
        stamp = self._clock.now()

        def write() -> UndoRecord:
            done = self._calendars.create_event(event, stamp=stamp)
            return {
                "uid": done.uid, "file": done.file, "title": event.title,
                "fingerprint": self._calendars.fingerprint(done.uid),
            }

        return await in_thread(write)

    async def undo(self, record: UndoRecord) -> str:
        """Take the event out, unless somebody changed it since."""
        uid, title = str(record["uid"]), str(record["title"])

        def take_out() -> bool:
            current = self._calendars.fingerprint(uid)
            if current is None:
                return False
            if current != record["fingerprint"]:
                raise EffectRefused(f"\"{title}\" was changed in the calendar since. It stays as it is.")
            return self._calendars.delete_event(uid)

        if await in_thread(take_out):
            return f"\"{title}\" is out of your calendar again."
        return f"\"{title}\" is not in your calendar any more."

    def _attendee(self, name: str) -> Attendee:
        """With the address of the one contact of exactly this name; nobody's address is guessed."""
        found = [contact for contact in self._contacts.lookup(name) if contact.email]
        return Attendee(name, found[0].email if len(found) == 1 else "")


def uid_of(idempotency_key: str) -> str:
    """The UID of the event that this key stands for."""
    return f"{hashlib.blake2b(idempotency_key.encode(), digest_size=16).hexdigest()}@kith"


def _new_event(effect: Effect, idempotency_key: str) -> NewEvent:
    people = effect.value("attendees", [])
    assert isinstance(people, Sequence)
    return NewEvent(
        uid=uid_of(idempotency_key),
        title=str(effect.value("title")),
        start=datetime.fromisoformat(str(effect.value("start"))),
        end=datetime.fromisoformat(str(effect.value("end"))),
        attendees=tuple(
            Attendee(str(who["name"]), str(who["email"])) for who in people if isinstance(who, dict)
        ),
        location=str(effect.value("location", "")),
    )


def _person(who: Attendee) -> str:
    return f"{who.name} ({who.email or 'no e-mail address known'})"


def _text(
    title: str, when: tuple[datetime, datetime], people: Sequence[Attendee], location: str, clashes: Sequence[Event],
    zone: ZoneInfo,
) -> str:
    start, end = when
    span = clock_span(start, end, zone)
    lines = [f"New event \"{title}\" on {moment(start, zone).rpartition(', ')[0]}, {span}."]
    if location:
        lines.append(f"Where: {location}.")
    if people:
        lines.append(f"With {listed([_person(who) for who in people])}. Nobody is told yet.")
    lines.extend(
        f"It overlaps \"{clash.title}\" ({clock_span(clash.start, clash.end, zone)})." for clash in clashes[:3]
    )
    return "\n".join(lines)
