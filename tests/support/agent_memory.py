"""Memory versions of the agent's ports: a journal and conversations in dicts, scripted owners and models, an event
list."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from node.agent.effects import Approval, Effect, JournalEntry, Json
from node.agent.events import Event
from node.agent.ports import Message, ThinkJob, ThinkResult, TurnRecord
from node.privacy.labels import ConversationLabel, Label


class FixedClock:
    """A clock that stands where it is put."""

    def __init__(self, now: datetime) -> None:
        self.at = now.astimezone(UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic_s(self) -> float:
        return self.at.timestamp()


class MemoryJournal:
    """Entries by key, in order; `die_before_applied` raises once, as a crash between approval and the record would."""

    def __init__(self) -> None:
        self.entries: dict[str, JournalEntry] = {}
        self.calls: list[str] = []
        self.crash_after_approval = False

    async def find(self, idempotency_key: str) -> JournalEntry | None:
        return self.entries.get(idempotency_key)

    async def approved(self, effect: Effect, approval: Approval) -> None:
        self.calls.append("approved" if approval.approved else "denied")
        self.entries.setdefault(effect.idempotency_key, JournalEntry(effect, approval, False, None))
        if self.crash_after_approval:
            self.crash_after_approval = False
            raise Crash

    async def applied(self, idempotency_key: str, undo: Mapping[str, Json]) -> None:
        self.calls.append("applied")
        old = self.entries[idempotency_key]
        self.entries[idempotency_key] = JournalEntry(old.effect, old.approval, True, undo)

    async def failed(self, idempotency_key: str, reason: str) -> None:
        self.calls.append("failed")
        old = self.entries[idempotency_key]
        self.entries[idempotency_key] = JournalEntry(old.effect, old.approval, False, None, failed=True)

    async def unfinished(self) -> Sequence[JournalEntry]:
        return [one for one in self.entries.values() if one.approval.approved and not one.applied and not one.failed]

    async def last_applied(self) -> JournalEntry | None:
        done = [entry for entry in self.entries.values() if entry.applied and not entry.undone]
        return done[-1] if done else None

    async def undone(self, idempotency_key: str) -> None:
        old = self.entries[idempotency_key]
        self.entries[idempotency_key] = JournalEntry(old.effect, old.approval, True, old.undo, undone=True)


class Crash(BaseException):
    """The process dies here: nothing in the agent may catch it."""


@dataclass
class _Kept:
    turns: list[TurnRecord] = field(default_factory=list)
    draft: Mapping[str, Json] | None = None


class MemoryConversations:
    """Conversations in a dict, the latest last."""

    def __init__(self) -> None:
        self.kept: dict[str, _Kept] = {}

    async def create(self) -> str:
        name = f"c{len(self.kept) + 1}"
        self.kept[name] = _Kept()
        return name

    async def label(self, conversation_id: str) -> Label | None:
        kept = self.kept.get(conversation_id)
        if kept is None:
            return None
        label = ConversationLabel()
        label.absorb(*(turn.text for turn in kept.turns))
        return label.label

    async def latest(self) -> str | None:
        return next(reversed(self.kept), None)

    async def turns(self, conversation_id: str, *, limit: int) -> Sequence[TurnRecord]:
        return self.kept[conversation_id].turns[-limit:]

    async def append(self, conversation_id: str, turn: TurnRecord, *, settles: str = "") -> None:
        self.kept[conversation_id].turns.append(turn)

    async def draft(self, conversation_id: str) -> Mapping[str, Json] | None:
        return self.kept[conversation_id].draft

    async def keep_draft(self, conversation_id: str, draft: Mapping[str, Json] | None) -> None:
        self.kept[conversation_id].draft = draft


class Owner:
    """Decides by a function of the effect; keeps what it was shown."""

    def __init__(
        self, decide: Callable[[Effect], bool] = lambda effect: True, chosen: Mapping[str, str] | None = None,
    ) -> None:
        self.decide = decide
        self.chosen = chosen or {}
        self.shown: list[Effect] = []

    async def approve(self, effect: Effect) -> Approval:
        self.shown.append(effect)
        at = datetime(2026, 3, 18, 8, 31, tzinfo=UTC)
        return Approval(effect.idempotency_key, self.decide(effect), "owner, test", at, self.chosen)


class Thoughts:
    """A thinker that streams given pieces and keeps its jobs."""

    def __init__(self, pieces: Sequence[str] = ("An ", "answer"
        "."), *, ran_on: str = "phone", peer_id: str | None = None) -> None:
        self.pieces = pieces
        self.ran_on = ran_on
        self.peer_id = peer_id
        self.jobs: list[ThinkJob] = []

    async def think(self, job: ThinkJob) -> ThinkResult:
        self.jobs.append(job)
        shown, finish = "", "stop"
        for piece in self.pieces:
            shown += piece
            if not await job.on_text(piece):
                finish = "stopped"
                break
        return ThinkResult(shown, self.ran_on, f"{self.ran_on} has the larger model", finish, "test", self.peer_id)


class ScriptedModel:
    """A local model that answers from a list and keeps what it was asked."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Sequence[Message], str | None]] = []

    async def complete(
        self, messages: Sequence[Message], *, grammar: str | None, max_tokens: int, stop: Sequence[str] = (),
    ) -> str:
        self.asked.append((messages, grammar))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)


class Events:
    """Every event, in order."""

    def __init__(self) -> None:
        self.seen: list[Event] = []

    async def emit(self, event: Event) -> None:
        self.seen.append(event)

    def of(self, kind: type) -> list[Any]:
        """The events of one type."""
        return [event for event in self.seen if isinstance(event, kind)]
