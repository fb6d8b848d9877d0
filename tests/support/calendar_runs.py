"""The node's own agent on the households of random_calendars, judged by calendar_oracle: whole requests over real
calendar and contact files, the written file read again, and the list of free time. Must not know how anything is found.
"""

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import trio
from agent_memory import Events, FixedClock, MemoryConversations, MemoryJournal, Owner, Thoughts
from agent_node import NoPeers, StaticEmbedder
from calendar_oracle import Oracle, minute_of, wall
from random_calendars import Household, address_of, household, ics_text, vcf_text

from node.agent.choice import Chooser
from node.agent.effects import Approval, Effect
from node.agent.gate import load_gate
from node.agent.loop import Agent
from node.agent.ports import Answer, AnswerKind, AskRequest
from node.agent.readers.windows import Locale
from node.agent.skills.builtin import builtin_skills
from node.agent.tools.builtin import builtin_tools
from node.agent.tools.registry import ReadTool, ToolContext
from node.agent.turn import AgentParts, AgentSettings
from node.sources.ics import Calendars
from node.sources.notes import NoteFolder
from node.sources.vcf import Contacts

__all__ = ["ERRORS", "Judged", "count", "judge", "judge_all"]

ERRORS = ("clash", "wrong person", "time")
"""What must never happen. "time" is every error of day, hour, length or offset, the changes of clocks among them."""
_LEAST_FREE_MIN = 30
_CHOOSERS: dict[str, Chooser] = {}


@dataclass
class Judged:
    """What came of one household. outcome: booked, asked, none (no slot), other (not taken for a booking)."""

    house: Household
    outcome: str = "other"
    answer: str = ""
    faults: list[tuple[str, str]] = field(default_factory=list)
    """Kind (ERRORS, or "missed" for a free time that was not found) and what exactly."""


class _Choosy(Owner):
    """Takes the first other choice of start that is offered, on every second seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed

    async def approve(self, effect: Effect) -> Approval:
        approval = await super().approve(effect)
        others = next((value.alternatives for value in effect.values if value.name == "start"), ())
        return replace(approval, chosen={"start": others[0]}) if others and self._seed % 2 else approval


@contextmanager
def _folder(house: Household) -> Iterator[Path]:
    root = Path(tempfile.mkdtemp(prefix="kith-calendars-"))
    try:
        for name in ("calendars", "contacts", "notes", "files"):
            (root / name).mkdir()
        for name, series in house.files.items():
            (root / "calendars" / name).write_text(ics_text(series), newline="")
        (root / "contacts" / "people.vcf").write_text(vcf_text(house.names), newline="")
        yield root
    finally:
        shutil.rmtree(root)


async def judge(seed: int) -> Judged:
    """One household: its booking asked of the whole agent, and its free time listed."""
    house = household(seed)
    oracle, found = Oracle(house), Judged(house)
    with _folder(house) as root:
        zone, clock, owner = ZoneInfo(house.zone), FixedClock(house.now), _Choosy(seed)
        contacts = Contacts(root / "contacts")
        calendars = Calendars(root / "calendars", zone, people=contacts.names)
        notes = NoteFolder(root / "notes")
        registry = builtin_tools(calendars=calendars, contacts=contacts, notes=notes, files={}, peers=NoPeers(),
                                 clock=clock)

        async def names() -> Sequence[str]:
            return await trio.to_thread.run_sync(contacts.names)

        numbers = iter(range(1000))
        parts = AgentParts(
            registry, builtin_skills(calendars=calendars, notes=notes, reminders=None, postbox=None, model=None),
            StaticEmbedder(), load_gate(), names, Thoughts(), owner, MemoryJournal(), MemoryConversations(), clock,
            lambda: f"s{seed}-{next(numbers)}",
        )
        agent = Agent(parts, AgentSettings(Locale(zone), "phone"))
        agent._judging._chooser = _CHOOSERS.setdefault("one", agent._judging._chooser)   # same sentences, embedded once
        free = registry.get("calendar_free")
        assert isinstance(free, ReadTool)
        listed = await free.run({"when": house.free_window, "duration": _LEAST_FREE_MIN}, ToolContext(clock, zone))
        _check_free(oracle, listed.data, found)
        answer = await agent.ask(AskRequest(house.booking.text, request_id=f"s{seed}"), Events())
        found.answer = answer.text
        _check_answer(oracle, answer, owner, (root / "calendars" / "owner.ics").read_text(), found)
    return found


async def judge_all(seeds: Iterable[int]) -> list[Judged]:
    """Every household of these seeds."""
    return [await judge(seed) for seed in seeds]


def count(judged: Sequence[Judged]) -> Counter[str]:
    """Outcomes, and households with a fault of each kind."""
    found = Counter(one.outcome for one in judged)
    for one in judged:
        found.update({kind for kind, _ in one.faults})
    return found


def _check_free(oracle: Oracle, data: Any, found: Judged) -> None:
    surely, perhaps = oracle.free_minutes(found.house.free_window, _LEAST_FREE_MIN)
    listed = set[int]()
    for start, end in (gap.values() if isinstance(gap, dict) else gap for gap in data["free"]):
        listed.update(range(minute_of(datetime.fromisoformat(start)), minute_of(datetime.fromisoformat(end))))
    on_grid = any(set(range(at, at + _LEAST_FREE_MIN)) <= surely for at in surely if at % 15 == 0)
    if listed - perhaps or (surely - listed and on_grid):
        found.faults.append(("time", f"free list: {len(listed - perhaps)} too many, {len(surely - listed)} too few"))


def _check_answer(oracle: Oracle, answer: Answer, owner: Owner, written: str, found: Judged) -> None:
    asked = found.house.booking
    if answer.effects:
        found.outcome = "booked"
        for effect in (*answer.effects, *owner.shown):
            _check_effect(oracle, effect, found)
        _check_written(answer.effects[0], written, found)
    elif answer.kind is AnswerKind.ASKED and answer.missing in {"people", "attendees"}:
        found.outcome = "asked"
        if not asked.asks:
            found.faults.append(("needless question", answer.text))
    elif answer.kind is AnswerKind.DONE and answer.tools_used == ("book_meeting",):
        found.outcome = "none"
        at = None if asked.asks else oracle.free_start()
        if at is not None:
            found.faults.append(("missed", f"{wall(at, oracle.zone):%a %d %b %H:%M %z} is free: {answer.text}"))
    if owner.shown and not answer.effects:
        found.faults.append(("time", f"shown and not written: {answer.text}"))


def _check_effect(oracle: Oracle, effect: Effect, found: Judged) -> None:
    asked = found.house.booking
    start, end = (datetime.fromisoformat(str(effect.value(name))) for name in ("start", "end"))
    people: Any = effect.value("attendees", [])
    if asked.asks or sorted(one["name"] for one in people) != sorted(asked.people) or any(
        one["email"] != address_of(one["name"]) for one in people
    ):
        found.faults.append(("wrong person", f"{people} not {'a question' if asked.asks else asked.people}"))
    if oracle.clashes(start, end) and "It overlaps" not in effect.text:      # an exact time is the owner's to insist on
        found.faults.append(("clash", f"{start:%d %b %H:%M} UTC"))
    if wrong := oracle.misplaced(start, end):
        found.faults.append(("time", wrong))
    said = next(value.shown for value in effect.values if value.name == "start")
    local = wall(minute_of(start), oracle.zone)
    if said != f"{local:%A} {local.day} {local:%B %Y, %H:%M}":
        found.faults.append(("time", f"shown as {said}, is {local}"))


def _check_written(effect: Effect, written: str, found: Judged) -> None:
    events = written.split("BEGIN:VEVENT")[1:]
    ours = [text for text in events if "@random.example" not in text]
    times = [re.search(rf"^{name}:(\d{{8}}T\d{{6}}Z)\s*$", ours[-1], re.MULTILINE) for name in ("DTSTART", "DTEND")]
    meant = [f"{datetime.fromisoformat(str(effect.value(name))).astimezone(UTC):%Y%m%dT%H%M%SZ}"
             for name in ("start", "end")]
    if len(ours) != 1 or [match and match[1] for match in times] != meant:
        found.faults.append(("time", f"the file does not say {meant}"))
