"""What the agent needs from the rest of the node, and what it hands back: ports, requests, effects, events.

Everything here is a Protocol or a frozen dataclass. This module must not know who implements a port: no engine, no
peer, no database, no screen. Times are aware datetimes in UTC unless a name says otherwise.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

from node.agent.effects import Approval, Effect, EffectValue, Interval, JournalEntry, Json, Origin, Span
from node.clock import Clock
from node.privacy.labels import Label, Labeled

__all__ = [
    "AUTO",
    "LOCAL",
    "Answer",
    "AnswerKind",
    "Approval",
    "Approver",
    "AskRequest",
    "Calendar",
    "Clock",
    "ConversationStore",
    "Effect",
    "EffectValue",
    "Embedder",
    "Interval",
    "Journal",
    "JournalEntry",
    "Json",
    "Leg",
    "LocalModel",
    "Message",
    "Origin",
    "Span",
    "ThinkJob",
    "ThinkPart",
    "ThinkResult",
    "Thinker",
    "TurnRecord",
    "Wait",
]

AUTO = "auto"
"""Run where the router thinks best."""
LOCAL = "local"
"""Never leave this device."""

Wait: TypeAlias = Literal["auto", "later", "never"]
"""auto: a request that wants a peer which is away is drafted here and queued; later: queue it in any case; never:
answer now or fail."""


class Approver(Protocol):
    """Asks the owner. Fails closed: no answer in time is a denial, never an error."""

    async def approve(self, effect: Effect) -> Approval:
        """The owner's decision on exactly this effect."""
        ...


class Journal(Protocol):
    """Durable record of approved effects. Each call returns once it is on disk."""

    async def find(self, idempotency_key: str) -> JournalEntry | None:
        """The entry under this key."""
        ...

    async def approved(self, effect: Effect, approval: Approval) -> None:
        """Record a decision, a denial too. The same key again changes nothing."""
        ...

    async def applied(self, idempotency_key: str, undo: Mapping[str, Json]) -> None:
        """Record that the effect is in place and how to undo it."""
        ...

    async def failed(self, idempotency_key: str, reason: str) -> None:
        """Record that the approved write was refused, so that no later start tries it again."""
        ...

    async def unfinished(self) -> Sequence[JournalEntry]:
        """Approved, neither applied nor refused as far as is known, oldest first: what a crash left behind."""
        ...

    async def last_applied(self) -> JournalEntry | None:
        """The newest applied effect that is not undone."""
        ...

    async def undone(self, idempotency_key: str) -> None:
        """Record that it was undone."""
        ...


# ---------------------------------------------------------------- models


class Embedder(Protocol):
    """Static vectors from the scan worker (256 numbers a text, about 0.2 ms each)."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector per text, in order. Raises when the worker is down."""
        ...


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a prompt for the local model."""

    role: Literal["system", "user", "assistant"]
    text: str


class LocalModel(Protocol):
    """This device's own small model. Nothing given to it leaves the device."""

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        grammar: str | None,
        max_tokens: int,
        stop: Sequence[str] = (),
    ) -> str:
        """The model's text, held to the GBNF grammar when one is given. Raises when no model can answer."""
        ...


@dataclass(frozen=True, slots=True)
class ThinkPart:
    """One labelled part of a heavy job. The label decides what the guard does with it on the way to a peer."""

    role: Literal["system", "user", "assistant"]
    text: Labeled
    name: str = "request"
    """What it is, for the owner's eyes: request, file, stdin, note, history, instruction."""


@dataclass(frozen=True, slots=True)
class ThinkJob:
    """Language work for a model, here or at a peer."""

    job_id: str
    conversation_id: str
    parts: tuple[ThinkPart, ...]
    on_text: Callable[[str], Awaitable[bool]]
    """Gets each new piece as the owner shall read it. False means: stop here, enough was said."""
    place: str = AUTO
    """AUTO, LOCAL, or a peer's name or id that the owner named."""
    model: str | None = None
    max_tokens: int = 1024
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    exact: bool = False
    """In the exact lane: where a machine goes on for another one, the same words come as if nothing had happened."""
    in_clear: bool = False
    """The owner wants the prompt to leave without placeholders, this once; the exact text is shown first."""
    keep: bool = False
    """Keep the answer while it is written, for a restart; append() of its turn with `settles` ends that."""
    on_note: Callable[[str], Awaitable[None]] | None = None
    """Gets a line for the owner when the answer changes machines, or waits for one."""
    wait: Wait = "auto"
    hedge: bool = False
    """Ask the two best places at once and take whoever writes first; it costs both of them."""
    adapter: str | None = None
    """The digest of a LoRA adapter of the model here; only with LOCAL."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One stretch of an answer on one machine. model, digest: "" while it is not known which one writes."""

    ran_on: str
    model: str
    digest: str
    begun_at: int
    """Characters that the owner had read before."""
    ended: str = ""
    """Why it ended before the answer did, in words; "" for the one that finished it."""
    peer_id: str | None = None


@dataclass(frozen=True, slots=True)
class ThinkResult:
    """The whole answer as shown, and where it ran."""

    text: str
    ran_on: str
    """The node's name as the owner knows it."""
    reason: str
    """Why there, in words."""
    finish_reason: str = "stop"
    """stop, length, loop, stopped (on_text said so), cancelled, broken (nobody could go on; text is what there was)."""
    model: str = ""
    peer_id: str | None = None
    """None when it ran on this device."""
    legs: tuple[Leg, ...] = ()
    """All machines that wrote it, in order."""
    exact: bool = False
    """All of it was written in the exact lane, by one model."""
    draft: bool = False
    """A machine that could do better was away: what a queue may have answered again later."""
    intent_id: str = ""
    """The queued request whose better answer will take this one's place; empty: none is to come."""
    waits_for: str = ""
    """With intent_id: what it waits for: peer, consent, or time (the owner asked for it later)."""


class Thinker(Protocol):
    """Runs a job where the router decides. Implemented above offload; asks consent through the guard itself."""

    async def think(self, job: ThinkJob) -> ThinkResult:
        """The finished answer. Raises when it can run nowhere; the error's text says why and what to do."""
        ...


# ---------------------------------------------------------------- the owner's calendar, as the booking skill needs it


class Calendar(Protocol):
    """Busy times of known calendars. Blocking: callers run it in a thread."""

    def busy(self, window: Interval, *, person: str | None = None) -> Sequence[Interval]:
        """What is taken in window, merged, in UTC; person None is the owner. Empty for a person without a calendar."""
        ...

    def known(self, person: str) -> bool:
        """True when this person's calendar is here."""
        ...

    def unreadable(self, person: str | None = None) -> Sequence[str]:
        """The names of this person's files, and of folders, that could not be read in full: what busy() may lack."""
        ...


# ---------------------------------------------------------------- conversations


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One stored turn of a conversation."""

    role: Literal["user", "assistant"]
    text: Labeled
    at: datetime
    ran_on: str = ""
    sources: tuple[str, ...] = ()
    detail: Mapping[str, Json] = field(default_factory=dict)
    """Whatever else is worth keeping: kind, reason, tools used."""


class ConversationStore(Protocol):
    """Durable conversations and the drafts that wait for one more answer."""

    async def create(self) -> str:
        """A new conversation's id."""
        ...

    async def label(self, conversation_id: str) -> Label | None:
        """How private and how trusted it has become; None when there is no such conversation."""
        ...

    async def latest(self) -> str | None:
        """The conversation last spoken in."""
        ...

    async def turns(self, conversation_id: str, *, limit: int) -> Sequence[TurnRecord]:
        """The newest turns, oldest first."""
        ...

    async def append(self, conversation_id: str, turn: TurnRecord, *, settles: str = "") -> None:
        """Add a turn. settles: the kept answer (ThinkJob.keep) that it is, erased in the same transaction."""
        ...

    async def draft(self, conversation_id: str) -> Mapping[str, Json] | None:
        """The unfinished call that waits for the owner's next words."""
        ...

    async def keep_draft(self, conversation_id: str, draft: Mapping[str, Json] | None) -> None:
        """Keep a draft, or drop it."""
        ...


# ---------------------------------------------------------------- requests and answers


@dataclass(frozen=True, slots=True)
class AskRequest:
    """What the owner asks."""

    text: str
    conversation_id: str | None = None
    """None starts a new one; AUTO continues the latest."""
    request_id: str = ""
    """Stable across retries of the same request: idempotency keys derive from it. Empty: the agent makes one."""
    attachments: tuple[tuple[str, Labeled], ...] = ()
    """(name, text) of files, standard input or notes given along."""
    place: str = AUTO
    model: str | None = None
    dry_run: bool = False
    exact: bool = False
    in_clear: bool = False
    wait: Wait = "auto"
    hedge: bool = False
    adapter: str | None = None


class AnswerKind(StrEnum):
    """How a turn ended."""

    DONE = "done"  # a tool, skill or model answered
    DRAFT = "draft"  # this device's own model answered; a better answer is queued
    ASKED = "asked"  # one thing is missing; the next message fills it
    DECLINED = "declined"  # nothing here can do it
    DENIED = "denied"  # the owner said no; nothing was written
    PROPOSED = "proposed"  # dry run: effects shown, nothing applied
    STOPPED = "stopped"  # a bound was hit; the reason says which


@dataclass(frozen=True, slots=True)
class Answer:
    """What the owner gets back."""

    text: str
    kind: AnswerKind
    ran_on: str
    reason: str
    conversation_id: str
    tools_used: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    """Applied ones; in a dry run the proposed ones."""
    choices: tuple[str, ...] = ()
    """For ASKED: answers the owner may pick."""
    caution: str = ""
    """What to know before acting on it, told once a conversation."""
    domain: str = ""
    """Of the caution: health, money or law."""
    missing: str | None = None
    """For ASKED: the slot that is asked for. For DRAFT: what the better answer waits for: peer, consent or time."""
    legs: tuple[Leg, ...] = ()
    """For a model's answer: the machines that wrote it."""
    exact: bool = False
    settles: str = ""
    """The kept answer that this is."""
    intent_id: str = ""
    """For DRAFT: the queued request whose better answer will take this one's place."""


# ---------------------------------------------------------------- events while a request runs
