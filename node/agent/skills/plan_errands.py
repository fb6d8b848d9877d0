"""Plan errands: the stops that were named, in their order, in the first free time that holds them all; one event.

Must not know models, nor how a calendar is stored.
"""

import re
from datetime import timedelta

import trio

from node.agent.effects import Origin
from node.agent.ports import Calendar, Interval
from node.agent.readers.durations import lengths
from node.agent.skills.registry import SkillAsk, SkillCall, SkillOutcome, SkillSay, SkillWrite
from node.agent.slots import Reading, show_moment
from node.agent.tools.registry import Provenance
from node.agent.tools.wording import listed, minutes, unread_note
from node.privacy.labels import Confidentiality, Integrity, Labeled
from node.sources.slots import SlotRules, free_slots

__all__ = ["PlanErrands"]

_ASKED = re.compile(
    r"\b(?:plan|schedule|organi[sz]e|arrange|fit\s+in)\s+(?:my\s+|some\s+|the\s+|these\s+)?errands\b(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_STOPS = re.compile(r":\s*(?P<stops>.+)$", re.DOTALL)
_SPLIT = re.compile(r"\s*(?:,\s*(?:and\s+|then\s+)?|;|\s+and\s+(?:then\s+)?|\s+then\s+)\s*", re.IGNORECASE)
STOP_MIN = 30
MOST_STOPS = 10


class PlanErrands:
    """The skill over the owner's calendar."""

    name = "plan_errands"
    description = "Plan errands one after the other into free time"
    claims = ("calendar_create",)
    examples = (
        "plan my errands for tomorrow: bank, bakery and post office", "schedule my errands on Friday: tailor, cobbler",
        "organise my errands this afternoon: pharmacy then library", "plan errands for Monday morning: garage, bank",
        "fit in my errands next week: town hall, optician", "arrange my errands on Thursday: market, dry cleaner",
        "plan the errands tomorrow: hardware store (20 minutes), bank", "schedule errands on Saturday: florist, bakery",
    )
    cues = ("errands",)

    def __init__(self, calendar: Calendar) -> None:
        self._calendar = calendar

    def takes(self, tool: str, reading: Reading) -> bool:
        """Requests that speak of errands."""
        return self.sure(reading)

    def sure(self, reading: Reading) -> bool:
        """True when errands are to be planned."""
        return _ASKED.search(reading.text) is not None

    def evidence(self, reading: Reading) -> float:
        """Errands and a when."""
        return 1.0 if self.sure(reading) and reading.when.said else 0.0

    async def run(self, call: SkillCall) -> SkillOutcome:
        """One event with every stop and its time; asks for the stops and the day where they are missing."""
        stops = _stops(call.answers["stops"].text if "stops" in call.answers else call.reading.text,
                       bare="stops" in call.answers)
        if not stops:
            return SkillAsk("stops", "Which errands?")
        said = call.answers.get("when", call.reading)
        windows = said.when.periods(call.reading.now)
        if not windows:
            return SkillAsk("when", "On which day?")
        total_min = sum(length for _, length in stops)
        rules = SlotRules(
            windows, total_min, said.when.zone, day_from_min=said.when.day_from_min, day_to_min=said.when.day_to_min,
            weekends=said.when.names_weekend,
        )
        busy = await trio.to_thread.run_sync(self._busy, windows)
        found = [slot for slot in free_slots(busy, rules, limit=3) if slot[0] > call.reading.now]
        if not found:
            text = f"There is no free time of {minutes(total_min)} for all of them then."
            if note := unread_note(await trio.to_thread.run_sync(self._calendar.unreadable)):
                text += f"\n{note}"
            return SkillSay(Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, "kith", ()), "no slot")
        start = found[0][0]
        lines, at = [], start
        for stop, length in stops:
            lines.append(f"- {at.astimezone(said.when.zone):%H:%M}: {stop} ({minutes(length)})")
            at += timedelta(minutes=length)
        title = f"Errands: {listed([stop for stop, _ in stops])}"
        words = f"your words: \"{listed([stop for stop, _ in stops])}\""
        provenance = {
            "title": Provenance(Origin.REQUEST, words),
            "start": Provenance(Origin.COMPUTED, "the first free time"),
            "duration": Provenance(Origin.COMPUTED, f"{STOP_MIN} minutes a stop where you did not say how long"),
        }
        before = "\n".join([f"From {show_moment(start, call.slots.locale)}:", *lines])
        return SkillWrite(
            "calendar_create", {"title": title, "start": start, "duration": total_min}, provenance, before, "")

    def _busy(self, windows: tuple[Interval, ...]) -> list[Interval]:
        hull = (min(start for start, _ in windows), max(end for _, end in windows))
        return list(self._calendar.busy(hull))


def _stops(text: str, *, bare: bool) -> list[tuple[str, int]]:
    """Each stop and how many minutes it takes."""
    match = _STOPS.search(text)
    listed_text = match.group("stops") if match else text if bare else ""
    found: list[tuple[str, int]] = []
    for part in _SPLIT.split(listed_text.strip(" .!")):
        said = lengths(part)
        name = part
        for one in reversed(said):
            name = name[: one.span.start] + name[one.span.end :]
        name = re.sub(r"^(?:the|to|a)\s+|[()]|\bfor\b\s*$", "", name.strip(), flags=re.IGNORECASE).strip(" -")
        if name:
            found.append((name, said[0].minutes if said and said[0].minutes else STOP_MIN))
    return found[:MOST_STOPS]
