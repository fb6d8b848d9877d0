"""The tools that read the owner's calendar: what is on, and when there is time. Must not know how events are
written."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

from node.agent.ports import Interval, Json
from node.agent.tools.calls import in_thread
from node.agent.tools.errors import BadArgument
from node.agent.tools.examples import examples_of
from node.agent.tools.registry import Args, ArgValue, Param, ToolAnswer, ToolContext, ToolSpec, check_args
from node.agent.tools.wording import clock_span, day, minutes, unread_note
from node.counting import counted
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value
from node.sources.event import Event, merge
from node.sources.ics import Calendars
from node.sources.ics_expand import WINDOW_LIMIT
from node.sources.slots import SlotRules, free_slots, free_time

__all__ = ["CalendarFree", "CalendarList", "windows_of"]

SHOWN_EVENTS = 40
SHOWN_GAPS = 8
DEFAULT_MINUTES = 30

_LIST = ToolSpec(
    name="calendar_list",
    description="Show the appointments, meetings and events in the calendar for a day or period",
    params={"when": Param("the day or period to show", "window")},
    required=("when",),
    examples=(
        "what is on my calendar on Wednesday", "which appointments do I have this weekend",
        "read me my schedule for tomorrow",
        "do I have any meetings next week", "what's planned for the afternoon", "list everything I have on in April",
        "is there something in my diary for the 12th", "how does my Thursday look",
        "when is my next appointment this week", "what is on Friday", "do I have anything on Monday",
        *examples_of("calendar_list"),
    ),
    kind="read",
    cues=("agenda", "schedule", "appointments", "meetings", "events", "diary", "what do i have", "what's on",
    "what is on", "anything on", "planned"),
)
_FREE = ToolSpec(
    name="calendar_free",
    description="Find a free time slot in the calendar, check availability",
    params={
        "when": Param("the day or period to look in", "window"),
        "duration": Param("how long, in minutes", "minutes"),
    },
    required=("when",),
    examples=(
        "when am I free on Friday", "do I have an hour to spare tomorrow afternoon",
        "find a gap of 30 minutes this week",
        "is Tuesday morning still open", "am I available on the 3rd at noon", "look for an empty slot next Monday",
        "how much time do I have left on Wednesday", "where could I fit in two hours this week",
        "what free time is there today",
        *examples_of("calendar_free"),
    ),
    kind="read",
    cues=("free", "available", "availability", "slot", "gap", "spare", "open", "fit in", "time for"),
)


class CalendarList:
    """What is on, day by day."""

    spec = _LIST

    def __init__(self, calendars: Calendars) -> None:
        self._calendars = calendars

    async def choices(self, param: str) -> tuple[str, ...]:
        """Any window may be named."""
        return ()

    async def run(self, args: Args, ctx: ToolContext) -> ToolAnswer:
        """The owner's events that touch the window, cancelled ones left out."""
        check_args(self.spec, args)
        windows = windows_of(args["when"])
        events = await in_thread(lambda: _events(self._calendars, windows))
        source = "calendar_list:" + (",".join(sorted({event.calendar for event in events})) or "owner.ics")
        text = _with_note(_events_text(events, windows, ctx.zone), await in_thread(self._calendars.unreadable))
        return ToolAnswer(
            Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, source, _values(events)),
            {"events": [_event_data(event) for event in events]},
        )


class CalendarFree:
    """Where there is time."""

    spec = _FREE

    def __init__(self, calendars: Calendars) -> None:
        self._calendars = calendars

    async def choices(self, param: str) -> tuple[str, ...]:
        """Any window may be named."""
        return ()

    async def run(self, args: Args, ctx: ToolContext) -> ToolAnswer:
        """The owner's free stretches of at least the duration. Whole days mean working hours, and a weekend only when
        nothing else is named; a part of a day is taken as it is."""
        check_args(self.spec, args)
        windows = windows_of(args["when"])
        duration = args.get("duration", DEFAULT_MINUTES)
        assert isinstance(duration, int)
        rules = rules_for(windows, duration, ctx.zone)
        busy = await in_thread(lambda: [taken for window in windows for taken in self._calendars.busy(window)])
        gaps = [gap for gap in free_time(busy, rules) if gap[1] - gap[0] >= timedelta(minutes=duration)]
        slots = free_slots(busy, rules, limit=3)
        if not slots:
            gaps = []       # long enough, but no start on a quarter hour fits
        text = _with_note(_gaps_text(gaps, duration, ctx.zone), await in_thread(self._calendars.unreadable))
        return ToolAnswer(
            Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, "calendar_free:owner.ics"),
            {
                "duration": duration, "slots": [_interval_data(slot) for slot in slots],
                "free": [_interval_data(gap) for gap in gaps],
            },
        )


def _with_note(text: str, unreadable: Sequence[str]) -> str:
    return f"{text}\n{unread_note(unreadable)}" if unreadable else text


def windows_of(value: ArgValue) -> tuple[Interval, ...]:
    """The windows of an argument, merged, in UTC. Raises BadArgument above the longest window."""
    assert isinstance(value, tuple)
    pairs = [value] if isinstance(value[0], datetime) else value
    found: list[Interval] = []
    for pair in pairs:
        assert isinstance(pair, tuple)
        start, end = pair
        assert isinstance(start, datetime)
        assert isinstance(end, datetime)
        found.append((start.astimezone(UTC), end.astimezone(UTC)))
    merged = merge(found)
    if merged[-1][1] - merged[0][0] > WINDOW_LIMIT:
        raise BadArgument("when", f"That is more than {WINDOW_LIMIT.days} days. Name a shorter period.")
    return tuple(merged)


def rules_for(windows: tuple[Interval, ...], duration_min: int, zone: ZoneInfo) -> SlotRules:
    """Working hours for whole days, the window itself for a part of a day."""
    local = [(start.astimezone(zone), end.astimezone(zone)) for start, end in windows]
    whole = any(end - start >= timedelta(hours=23) for start, end in local)
    weekend_only = all(
        start.weekday() >= 5 and (end - timedelta(seconds=1)).weekday() >= 5 and end - start <= timedelta(days=2,
        hours=1) for start, end in local
    )
    if whole:
        return SlotRules(windows, duration_min, zone, weekends=weekend_only)
    return SlotRules(windows, duration_min, zone, day_from_min=0, day_to_min=1440, weekends=True)


def _events(calendars: Calendars, windows: Sequence[Interval]) -> list[Event]:
    found = [event for window in windows for event in calendars.events(window)]
    return sorted(dict.fromkeys(found), key=lambda event: (event.start, event.end, event.title))


def _events_text(events: Sequence[Event], windows: Sequence[Interval], zone: ZoneInfo) -> str:
    if not events:
        return f"Nothing is in your calendar for {_period(windows, zone)}."
    lines = []
    opens = windows[0][0]
    shown = events[:SHOWN_EVENTS]
    # An event that began before the period is shown under the period's first day.
    for first, group in groupby(shown, key=lambda event: max(event.start, opens).astimezone(zone).date()):
        entries = list(group)
        lines.append(f"{day(first)}: {counted(len(entries), 'event')}.")
        lines.extend(f"- {_line(event, zone)}" for event in entries)
    if len(events) > len(shown):
        lines.append(f"{len(events) - len(shown)} more are not shown.")
    return "\n".join(lines)


def _line(event: Event, zone: ZoneInfo) -> str:
    if event.all_day:
        last = (event.end - timedelta(seconds=1)).astimezone(zone).date()
        span = "all day" if last == event.start.astimezone(zone).date() else f"all day until {day(last)}"
    else:
        span = clock_span(event.start, event.end, zone)
    place = f", {event.location}" if event.location else ""
    people = f", with {', '.join(event.attendees)}" if event.attendees else ""
    return f"{span} {event.title}{place}{people}"


def _gaps_text(gaps: Sequence[Interval], duration: int, zone: ZoneInfo) -> str:
    if not gaps:
        return f"You have no free {minutes(duration)} then."
    lines = [f"You have time for {minutes(duration)}:"]
    for first, group in groupby(gaps[:SHOWN_GAPS], key=lambda gap: gap[0].astimezone(zone).date()):
        spans = ", ".join(clock_span(start, end, zone) for start, end in group)
        lines.append(f"- {day(first)}: {spans}")
    if len(gaps) > SHOWN_GAPS:
        lines.append("Later ones are not shown.")
    return "\n".join(lines)


def _period(windows: Sequence[Interval], zone: ZoneInfo) -> str:
    start = windows[0][0].astimezone(zone)
    end = (windows[-1][1] - timedelta(seconds=1)).astimezone(zone)
    return day(start.date()) if start.date() == end.date() else f"{day(start.date())} to {day(end.date())}"


def _values(events: Sequence[Event]) -> tuple[Value, ...]:
    found: dict[Value, None] = {}
    for event in events:
        found.setdefault(Value(event.title, "EVENT"))
        if event.location:
            found.setdefault(Value(event.location, "ADDRESS"))
        for name in event.attendees:
            found.setdefault(Value(name, "EMAIL" if "@" in name else "PERSON"))
    return tuple(found)


def _event_data(event: Event) -> Json:
    return {
        "uid": event.uid, "title": event.title, "start": event.start.isoformat(), "end": event.end.isoformat(),
        "all_day": event.all_day, "busy": event.busy, "location": event.location, "attendees": list(event.attendees),
    }


def _interval_data(interval: Interval) -> Json:
    return {"start": interval[0].isoformat(), "end": interval[1].isoformat()}
