"""The contract of a skill, and the skills of one node.

A skill is work of several steps whose order, checks and stop conditions are code; a small model at most words a
phrase in it. A skill reads the request, asks for one missing thing at a time, and ends in something to say or one
write, which goes through the same approval as any tool's. Must not know how approvals, conversations or models work.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from node.agent.events import EventSink
from node.agent.ports import Interval
from node.agent.slots import Reading, SlotReader
from node.agent.tools.registry import Args, ArgValue, Provenance
from node.privacy.labels import Labeled

__all__ = ["Skill", "SkillAsk", "SkillCall", "SkillOutcome", "SkillSay", "SkillWrite", "Skills"]


@dataclass(frozen=True, slots=True)
class SkillCall:
    """What a skill works on."""

    reading: Reading
    """The request as it was first said, with the clock of that moment."""
    answers: Mapping[str, Reading]
    """The owner's answers to the skill's questions, by slot."""
    slots: SlotReader
    events: EventSink
    freed: tuple[Interval, ...] = ()
    """Time that only an earlier write takes which this one replaces."""


@dataclass(frozen=True, slots=True)
class SkillAsk:
    """One thing is missing; the next message answers it."""

    slot: str
    question: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillSay:
    """The skill is done without a write."""

    text: Labeled
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SkillWrite:
    """One write by a tool, to be approved."""

    tool: str
    args: Args
    provenance: Mapping[str, Provenance]
    before: str
    """What was found and assumed, for the owner, said before the effect is shown."""
    after: str
    """What remains to be said once it is written."""
    options: Mapping[str, Mapping[str, ArgValue]] = field(default_factory=dict)
    """The values behind the alternatives in provenance, by argument and by how they are shown."""


SkillOutcome = SkillAsk | SkillSay | SkillWrite


class Skill(Protocol):
    """One skill."""

    @property
    def name(self) -> str:
        """Stable, such as book_meeting."""
        ...

    @property
    def description(self) -> str:
        """One sentence for the owner: what it does."""
        ...

    @property
    def claims(self) -> tuple[str, ...]:
        """The tools whose requests it may take over: its sentences and cues count for the first of them. May be
        empty."""
        ...

    @property
    def examples(self) -> tuple[str, ...]:
        """Sentences that ask for it: at least 8 where it claims a tool, for they count in the choice; otherwise two or
        more for the owner to read."""
        ...

    @property
    def cues(self) -> tuple[str, ...]:
        """Words that speak for it."""
        ...

    def takes(self, tool: str, reading: Reading) -> bool:
        """True when a request that was understood as this tool's is the skill's work."""
        ...

    def sure(self, reading: Reading) -> bool:
        """True when readers alone show that the request is the skill's: no tool is considered then."""
        ...

    def evidence(self, reading: Reading) -> float:
        """0 to 1: how much of what it needs the readers found."""
        ...

    async def run(self, call: SkillCall) -> SkillOutcome:
        """The next outcome. Raises what its sources raise."""
        ...


class Skills:
    """The skills of one node, by name, in a fixed order."""

    def __init__(self, skills: Iterable[Skill] = ()) -> None:
        self._skills = {skill.name: skill for skill in skills}

    def __iter__(self) -> Iterator[Skill]:
        return iter(self._skills.values())

    def get(self, name: str) -> Skill | None:
        """The skill, or None."""
        return self._skills.get(name)

    def sure(self, reading: Reading) -> Skill | None:
        """The first skill that readers alone show to be meant."""
        return next((skill for skill in self if skill.sure(reading)), None)

    def taking(self, tool: str, reading: Reading) -> Skill | None:
        """The first skill that takes over a request for this tool."""
        return next((skill for skill in self if tool in skill.claims and skill.takes(tool, reading)), None)
