"""The agent's journal and conversations in the node's database: the ports of the agent over the rows of the store.

Must not know tools, models or how anything is asked.
"""

from collections.abc import Mapping, Sequence

import msgspec

from node.agent.effect_json import (
    approval_from_json,
    approval_to_json,
    effect_from_json,
    effect_to_json,
    record_from_json,
    record_to_json,
)
from node.agent.effects import Approval, Effect, JournalEntry, Json
from node.agent.ports import TurnRecord
from node.clock import Clock, Entropy, from_ms, new_id, to_ms
from node.privacy.labels import PUBLIC_LABEL, Confidentiality, Integrity, Label, Labeled, Value
from node.store import answers, conversations, journal
from node.store.connection import Connection
from node.store.database import Database
from node.store.journal import Step, StepState

__all__ = ["StoredConversations", "StoredJournal", "turn_row"]


class StoredJournal:
    """Journal over the table of steps."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def find(self, idempotency_key: str) -> JournalEntry | None:
        """The entry under this key."""
        step = await self._database.read(journal.get, idempotency_key)
        return _entry(step) if step and step.decision else None

    async def approved(self, effect: Effect, approval: Approval) -> None:
        """Record a decision, a denial too."""
        state = StepState.APPROVED if approval.approved else StepState.DENIED
        now_ms, key = to_ms(self._clock.now()), effect.idempotency_key
        plan, decision = effect_to_json(effect), approval_to_json(approval)

        def record(tx: Connection) -> None:
            step = journal.plan(tx, key=key, run_id=key.split("/")[0], step=effect.tool, plan=plan, now_ms=now_ms)
            if step.state is StepState.PLANNED:
                journal.advance(tx, key, state, now_ms, decision=decision)

        await self._database.write(record)

    async def applied(self, idempotency_key: str, undo: Mapping[str, Json]) -> None:
        """Record that the effect is in place and how to undo it."""
        await self._database.write(
            journal.advance,
            idempotency_key,
            StepState.APPLIED,
            to_ms(self._clock.now()),
            record=record_to_json(undo),
        )

    async def failed(self, idempotency_key: str, reason: str) -> None:
        """Record that the approved write was refused."""
        await self._database.write(
            journal.advance,
            idempotency_key,
            StepState.FAILED,
            to_ms(self._clock.now()),
            record=record_to_json({"reason": reason}),
        )

    async def unfinished(self) -> Sequence[JournalEntry]:
        """Approved but not known to be applied, oldest first."""
        return [_entry(step) for step in await self._database.read(journal.unfinished)]

    async def last_applied(self) -> JournalEntry | None:
        """The newest applied effect that is not undone."""
        step = await self._database.read(journal.last_undoable)
        return _entry(step) if step else None

    async def undone(self, idempotency_key: str) -> None:
        """Record that it was undone."""
        await self._database.write(journal.advance, idempotency_key, StepState.UNDONE, to_ms(self._clock.now()))


class StoredConversations:
    """Conversations over their tables. A turn's personal values are kept beside its text, so that its label stays
    whole."""

    def __init__(self, database: Database, clock: Clock, entropy: Entropy) -> None:
        self._database = database
        self._clock = clock
        self._entropy = entropy

    async def create(self) -> str:
        """A new conversation's id."""
        conversation_id = new_id(self._entropy)
        await self._database.write(
            conversations.create,
            conversation_id,
            to_ms(self._clock.now()),
            confidentiality=int(PUBLIC_LABEL.confidentiality),
            integrity=int(PUBLIC_LABEL.integrity),
        )
        return conversation_id

    async def label(self, conversation_id: str) -> Label | None:
        """How private and how trusted it has become."""
        found = await self._database.read(conversations.get, conversation_id)
        return Label(Confidentiality(found.confidentiality), Integrity(found.integrity)) if found else None

    async def latest(self) -> str | None:
        """The conversation last spoken in."""
        found = await self._database.read(conversations.latest)
        return found.conversation_id if found else None

    async def turns(self, conversation_id: str, *, limit: int) -> Sequence[TurnRecord]:
        """The newest turns, oldest first."""
        return [_turn(row) for row in await self._database.read(conversations.turns, conversation_id, limit=limit)]

    async def append(self, conversation_id: str, turn: TurnRecord, *, settles: str = "") -> None:
        """Add a turn; erase the kept answer that it is."""
        row = turn_row(turn)

        def add(tx: Connection) -> None:
            conversations.append(tx, conversation_id, row)
            if settles:
                answers.settle(tx, settles)

        await self._database.write(add)

    async def draft(self, conversation_id: str) -> Mapping[str, Json] | None:
        """The unfinished call that waits for the owner's next words."""
        stored = await self._database.read(conversations.draft, conversation_id)
        return record_from_json(stored) if stored else None

    async def keep_draft(self, conversation_id: str, draft: Mapping[str, Json] | None) -> None:
        """Keep a draft, or drop it."""
        stored = record_to_json(draft) if draft is not None else None
        await self._database.write(conversations.keep_draft, conversation_id, stored)


def turn_row(turn: TurnRecord) -> conversations.Turn:
    """A turn as it is stored: its personal values beside its text, so that its label stays whole."""
    values = None if turn.text.values is None else [list(value) for value in turn.text.values]
    detail = {**turn.detail, "source": turn.text.source, "values": values}
    return conversations.Turn(
        turn.role, turn.text.value, int(turn.text.confidentiality), int(turn.text.integrity), to_ms(turn.at),
        turn.ran_on, turn.sources, msgspec.json.encode(detail).decode(),
    )


def _entry(step: Step) -> JournalEntry:
    assert step.decision is not None
    return JournalEntry(
        effect_from_json(step.plan),
        approval_from_json(step.decision),
        applied=step.state in {StepState.APPLIED, StepState.UNDONE},
        undo=record_from_json(step.record) if step.record and step.state is not StepState.FAILED else None,
        undone=step.state is StepState.UNDONE,
        failed=step.state is StepState.FAILED,
    )


def _turn(row: conversations.Turn) -> TurnRecord:
    detail = record_from_json(row.detail)
    stored = detail.pop("values", None)
    values = None
    if isinstance(stored, list):
        values = tuple(Value(str(one[0]), str(one[1])) for one in stored if isinstance(one, list))
    source = str(detail.pop("source", "history"))
    text = Labeled(row.text, Confidentiality(row.confidentiality), Integrity(row.integrity), source, values)
    return TurnRecord(
        "user" if row.role == "user" else "assistant", text, from_ms(row.at_ms), row.ran_on, row.sources, detail
    )
