"""What is ahead today: appointments, reminders, who wrote. Reads only; words of others are counted, not repeated.

Must not know models, nor how calendars, reminders and messages are kept.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

import trio

from node.agent.ports import Interval
from node.agent.skills.registry import SkillCall, SkillOutcome, SkillSay
from node.agent.slots import Reading
from node.agent.tools.messages import Postbox
from node.agent.tools.reminders import ReminderBook
from node.agent.tools.wording import clock_span, day, listed, unread_note
from node.counting import counted
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value
from node.sources.event import Event

__all__ = ["Agenda", "DailyBrief"]

_ASKED = re.compile(
    r"\b(?:daily\s+brief(?:ing)?|morning\s+brief(?:ing)?|brief\s+me|my\s+brief(?:ing)?|what(?:[’']s|\s+is)\s+ahead|"
    r"how\s+(?:does|is)\s+my\s+day\s+look(?:ing)?|run\s+(?:me\s+)?through\s+my\s+day|what\s+does\s+my\s+day\s+look\s+like|"
    r"what\s+do\s+i\s+need\s+to\s+know\s+(?:for\s+)?today)\b",
    re.IGNORECASE,
)
MESSAGES_LOOKED_AT = 50
FRESH = timedelta(days=1)


class Agenda(Protocol):
    """The owner's events. Blocking: called in a thread."""

    def events(self, window: Interval, *, person: str | None = None) -> Sequence[Event]:
        """Those that touch the window, by their start."""
        ...

    def unreadable(self, person: str | None = None) -> Sequence[str]:
        """The names of files and folders that events() may lack."""
        ...


class DailyBrief:
    """The skill over the owner's day."""

    name = "daily_brief"
    description = "Say what is ahead today: appointments, reminders, messages"
    claims: tuple[str, ...] = ()
    examples = ("how does my day look?", "brief me for tomorrow")
    cues: tuple[str, ...] = ()

    def __init__(self, agenda: Agenda, reminders: ReminderBook, postbox: Postbox) -> None:
        self._agenda = agenda
        self._reminders = reminders
        self._postbox = postbox

    def takes(self, tool: str, reading: Reading) -> bool:
        """Never in a tool's place."""
        return False

    def sure(self, reading: Reading) -> bool:
        """True when a brief is asked for by its name."""
        return _ASKED.search(reading.text) is not None

    def evidence(self, reading: Reading) -> float:
        """None: it is taken when it is sure, or not at all."""
        return 0.0

    async def run(self, call: SkillCall) -> SkillOutcome:
        """The day that was named, or today."""
        zone, now = call.slots.locale.zone, call.reading.now
        windows = call.reading.when.periods(now)
        local = (windows[0][0] if windows else now).astimezone(zone).date()
        begin = datetime.combine(local, datetime.min.time(), zone)
        window = (max(begin, now) if local == now.astimezone(zone).date() else begin, begin + timedelta(days=1))
        events = await trio.to_thread.run_sync(lambda: self._agenda.events(window))
        due = [one for one in await self._reminders.waiting() if begin <= one.due < window[1]]
        fresh = [
            one for one in await self._postbox.received(limit=MESSAGES_LOOKED_AT) if now - one.received <= FRESH
        ]
        lines = [f"{day(local)}."]
        lines += [f"- {'all day' if one.all_day else clock_span(one.start, one.end, zone)}: {one.title}"
                  for one in events] or ["Nothing more is in your calendar."]
        if note := unread_note(await trio.to_thread.run_sync(self._agenda.unreadable)):
            lines.append(note)
        if due:
            lines += ["Reminders:", *(f"- {one.due.astimezone(zone):%H:%M}: {one.text}" for one in due)]
        if fresh:
            senders = list(dict.fromkeys(one.sender for one in fresh))
            lines.append(f"{counted(len(fresh), 'message')} since yesterday, from {listed(senders)}.")
        values = tuple(dict.fromkeys((
            *(Value(one.title, "EVENT") for one in events), *(Value(one.text, "PRIVATE") for one in due),
            *(Value(one.sender, "PERSON") for one in fresh),
        )))
        return SkillSay(Labeled("\n".join(lines), Confidentiality.PERSONAL, Integrity.LOCAL, "daily_brief", values))
