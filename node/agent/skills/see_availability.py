"""When is somebody free: the free time of a person whose calendar is here, never the owner's own in its place.

Must not know models, approvals or how a calendar is stored.
"""

import re
from collections.abc import Sequence

import trio

from node.agent.ports import Calendar, Interval
from node.agent.saying import who
from node.agent.skills.registry import SkillAsk, SkillCall, SkillOutcome, SkillSay
from node.agent.slots import Reading, show_interval
from node.agent.tools.wording import unread_note
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value
from node.sources.slots import SlotRules, free_time

__all__ = ["SeeAvailability"]

SHOWN = 6
_FREE = re.compile(r"\b(?:free|available|availability|busy|have\s+time|has\s+time|around|reachable)\b", re.IGNORECASE)
_OWNER = re.compile(r"\b(?:i|me|we|us|my|our)\b", re.IGNORECASE)


class SeeAvailability:
    """The skill over one set of calendars."""

    name = "see_availability"
    description = "Say when a person is free whose calendar is here"
    claims = ("calendar_free", "calendar_list")
    examples = (
        "is Sam free tomorrow", "when is Kim available next week", "does Alex have time on Friday",
        "is Robin busy on Monday afternoon", "when would Toni have time this week", "check if Jo is around on Thursday",
        "are Max and Pat available tomorrow morning", "is Chris free at three",
    )
    cues = ("available", "have time", "free")

    def __init__(self, calendar: Calendar) -> None:
        self._calendar = calendar

    def takes(self, tool: str, reading: Reading) -> bool:
        """Questions about others' time that do not speak of the owner."""
        people = reading.people.found or reading.people.unclear
        return bool(people) and _FREE.search(reading.text) is not None and _OWNER.search(reading.text) is None

    def sure(self, reading: Reading) -> bool:
        """Never: the choice decides."""
        return False

    def evidence(self, reading: Reading) -> float:
        """A person and a when."""
        return 1.0 if self.takes("", reading) and reading.when.said else 0.0

    async def run(self, call: SkillCall) -> SkillOutcome:
        """The person's free time in working hours or the stated part of day; who or when where that is missing."""
        reading, answered = call.reading, call.answers
        people = answered["people"].people if "people" in answered else reading.people
        if people.unclear:
            return SkillAsk("people", who(people.unclear[0]), people.unclear[0].candidates)
        when = reading.when if reading.when.said or "when" not in answered else answered["when"].when
        windows = when.periods(reading.now)
        if not windows:
            return SkillAsk("when", "Which day or days should I look at?")
        names = people.names
        unknown = [name for name in names if not await trio.to_thread.run_sync(self._calendar.known, name)]
        if unknown:
            text = f"I do not have the calendar of {' and '.join(unknown)}."
            return SkillSay(_labeled(text, unknown), "no such calendar")
        minutes = when.length.minutes if when.length and when.length.minutes else 30
        rules = SlotRules(
            windows, minutes, when.zone, day_from_min=when.day_from_min, day_to_min=when.day_to_min,
            weekends=when.names_weekend,
        )
        free = await trio.to_thread.run_sync(self._free, names, windows, rules)
        long_enough = [one for one in free if (one[1] - one[0]).total_seconds() >= minutes * 60]
        shown = [show_interval(one, call.slots.locale) for one in long_enough]
        text = f"{' and '.join(names)}: " + ("free " + "; ".join(shown[:SHOWN]) if shown else "no free time then") + "."
        note = unread_note(await trio.to_thread.run_sync(self._unreadable, names))
        return SkillSay(_labeled(f"{text}\n{note}" if note else text, names))

    def _unreadable(self, names: tuple[str, ...]) -> list[str]:
        return list(dict.fromkeys(file for name in names for file in self._calendar.unreadable(name)))

    def _free(self, names: tuple[str, ...], windows: tuple[Interval, ...], rules: SlotRules) -> list[Interval]:
        hull = (min(start for start, _ in windows), max(end for _, end in windows))
        busy = [one for name in names for one in self._calendar.busy(hull, person=name)]
        return free_time(busy, rules)


def _labeled(text: str, names: Sequence[str]) -> Labeled:
    values = tuple(Value(name, "PERSON") for name in names)
    return Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, "calendar", values)
