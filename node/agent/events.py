"""What happens while a request runs, for whoever watches it. Must not know who watches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from node.agent.effects import Effect
from node.agent.ports import Answer

__all__ = [
    "Answered",
    "ApprovalNeeded",
    "ConsentNeeded",
    "Delta",
    "Event",
    "EventSink",
    "Status",
    "ToolFinished",
    "ToolStarted",
]



@dataclass(frozen=True, slots=True)
class Status:
    """A line for the owner on what happens now."""

    text: str


@dataclass(frozen=True, slots=True)
class Delta:
    """A new piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool or skill begins."""

    tool: str
    args: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool or skill ended."""

    tool: str
    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class ApprovalNeeded:
    """An effect waits for the owner's decision."""

    effect: Effect
    deadline_s: float


@dataclass(frozen=True, slots=True)
class ConsentNeeded:
    """Text would leave the device and the owner must say yes: who gets it, why, and exactly what."""

    question_id: str
    peer_name: str
    purpose: str
    texts: tuple[str, ...]
    deadline_s: float


@dataclass(frozen=True, slots=True)
class Answered:
    """The last event of every request."""

    answer: Answer


Event: TypeAlias = Status | Delta | ToolStarted | ToolFinished | ApprovalNeeded | ConsentNeeded | Answered


class EventSink(Protocol):
    """Where a request's events go: a terminal, an event stream, a test's list."""

    async def emit(self, event: Event) -> None:
        """Take one event. May wait when the reader is slow; must not raise for a reader that left."""
        ...
