"""What a write would do, shown whole before it is done: values with their origin, effects, decisions, journal entries.

Plain frozen data. Must not know tools, screens or the database.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeAlias

__all__ = [
    "DEADLINE", "NO_TERMINAL", "Approval", "Effect", "EffectValue", "Interval", "JournalEntry", "Json", "Origin",
    "Span",
]

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Interval: TypeAlias = tuple[datetime, datetime]
"""Half-open [start, end), both aware."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open slice [start, end) of the owner's request, in characters."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """The words this span covers in text."""
        return text[self.start : self.end]

    def overlaps(self, other: "Span") -> bool:
        """True when both share at least one character."""
        return self.start < other.end and other.start < self.end


class Origin(StrEnum):
    """Where a value came from; shown beside it whenever the owner is asked to approve."""

    REQUEST = "request"      # read by code in the owner's words; has a span
    COPIED = "copied"        # the local model's copy of a span of the owner's words; has a span
    CHOSEN = "chosen"        # the owner picked it or answered a question with it
    SOURCE = "source"        # from the owner's data: a contact, a calendar, a note
    DEFAULT = "default"      # nobody said it: a stated default
    COMPUTED = "computed"    # worked out by code from the others (an end from a start and a length)
    UNTRUSTED = "untrusted"  # derived from text that is not the owner's: a peer, a web page, a shared note


@dataclass(frozen=True, slots=True)
class EffectValue:
    """One value of an effect: what will be written, how it reads, and where it came from."""

    name: str
    value: Json
    shown: str
    origin: Origin
    source: str = ""
    """Words for the owner, such as 'your words: "tomorrow at 6"' or 'default'."""
    span: Span | None = None
    alternatives: tuple[str, ...] = ()
    """Other readings that the owner may choose instead, shown beside the value."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The exact change that one write would make. Nothing that is not in it is written."""

    tool: str
    kind: Literal["write", "destructive"]
    text: str
    """One or a few lines for the owner: the whole effect in words."""
    values: tuple[EffectValue, ...]
    idempotency_key: str
    """Stable for one effect of one request: applying twice under the same key changes nothing the second time.
    An event's UID derives from it."""
    cautions: tuple[str, ...] = ()
    """What the owner should know before a yes, such as that a text of somebody else was read."""
    replaces: str = ""
    """The key of the write in place that this one corrects: undoing this one brings that one back."""
    takes_back: str = ""
    """The key of a write that is undone first: this one brings back what stood before it."""

    def value(self, name: str, default: Json = None) -> Json:
        """The value called name, or default."""
        return next((entry.value for entry in self.values if entry.name == name), default)


NO_TERMINAL = "no terminal"
DEADLINE = "deadline"
"""By whom it was decided when nobody was there to be asked, or nobody answered."""


@dataclass(frozen=True, slots=True)
class Approval:
    """The owner's decision on one effect. Unanswered counts as denied."""

    idempotency_key: str
    approved: bool
    by: str
    """Who decided and where, such as 'owner, terminal', or 'deadline'."""
    at: datetime
    chosen: Mapping[str, str] = field(default_factory=dict)
    """Alternatives picked instead of the shown value, by value name."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What is durable about one effect."""

    effect: Effect
    approval: Approval
    applied: bool
    undo: Mapping[str, Json] | None
    """What undoing it takes, as the tool recorded it; None until applied."""
    undone: bool = False
    failed: bool = False
    """True when the write was refused after the yes; it is not tried again under this key."""
