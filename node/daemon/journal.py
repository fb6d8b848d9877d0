"""The agent's journal of effects over the database: what was approved, what is in place, how to undo it.

Implements node.agent.ports.Journal. Effects are kept as JSON texts in the encrypted database. Must not know tools.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from node.agent.ports import Approval, Effect, EffectValue, JournalEntry, Json, Origin, Span
from node.clock import Clock, to_ms
from node.store import journal
from node.store.connection import Connection
from node.store.database import Database
from node.store.journal import StepState

__all__ = ["StoredJournal", "effect_from_json", "effect_to_json"]


def effect_to_json(effect: Effect) -> str:
    """One effect as a stable JSON text."""
    return json.dumps(
        {
            "tool": effect.tool, "kind": effect.kind, "text": effect.text,
            "key": effect.idempotency_key,
            "values": [
                {
                    "name": value.name, "value": value.value, "shown": value.shown, "origin": value.origin.value,
                    "source": value.source,
                    "span": None if value.span is None else [value.span.start, value.span.end],
                    "alternatives": list(value.alternatives),
                }
                for value in effect.values
            ],
        },
        ensure_ascii=False, sort_keys=True,
    )


def effect_from_json(text: str) -> Effect:
    """The effect that effect_to_json wrote."""
    held = json.loads(text)
    values = tuple(
        EffectValue(
            value["name"], value["value"], value["shown"], Origin(value["origin"]), value["source"],
            None if value["span"] is None else Span(*value["span"]), tuple(value["alternatives"]),
        )
        for value in held["values"]
    )
    return Effect(held["tool"], held["kind"], held["text"], values, held["key"])


def _approval_to_json(approval: Approval) -> str:
    return json.dumps({
        "approved": approval.approved, "by": approval.by, "at": approval.at.isoformat(),
        "chosen": dict(approval.chosen), "note": approval.note,
    })


def _approval_from_json(key: str, text: str) -> Approval:
    held: dict[str, Any] = json.loads(text)
    at = datetime.fromisoformat(held["at"])
    return Approval(key, held["approved"], held["by"], at, held["chosen"], held["note"])


def _entry(step: journal.Step) -> JournalEntry:
    assert step.decision is not None
    return JournalEntry(
        effect=effect_from_json(step.plan),
        approval=_approval_from_json(step.key, step.decision),
        applied=step.state in (StepState.APPLIED, StepState.UNDONE),
        undo=None if step.record is None else json.loads(step.record),
        undone=step.state is StepState.UNDONE,
    )


class StoredJournal:
    """Every call returns once the change is durable. Raises StorageError and StoreConflict of node.errors."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def _now_ms(self) -> int:
        return to_ms(self._clock.now())

    async def find(self, idempotency_key: str) -> JournalEntry | None:
        """The decided effect under this key."""
        step = await self._database.read(journal.get, idempotency_key)
        return None if step is None or step.decision is None else _entry(step)

    async def approved(self, effect: Effect, approval: Approval) -> None:
        """Record plan and decision in one transaction."""
        state = StepState.APPROVED if approval.approved else StepState.DENIED
        now_ms = self._now_ms()

        def record(tx: Connection) -> None:
            key = effect.idempotency_key
            step = journal.plan(tx, key=key, run_id=key, step=effect.tool, plan=effect_to_json(effect), now_ms=now_ms)
            if step.state is StepState.PLANNED:
                journal.advance(tx, key, state, now_ms, decision=_approval_to_json(approval))

        await self._database.write(record)

    async def applied(self, idempotency_key: str, undo: Mapping[str, Json]) -> None:
        """Record that the effect is in place."""
        await self._database.write(
            journal.advance, idempotency_key, StepState.APPLIED, self._now_ms(), record=json.dumps(undo)
        )

    async def unfinished(self) -> Sequence[JournalEntry]:
        """Approved and not known to be applied."""
        return [_entry(step) for step in await self._database.read(journal.unfinished)]

    async def last_applied(self) -> JournalEntry | None:
        """The newest effect that can be undone."""
        step = await self._database.read(journal.last_undoable)
        return None if step is None else _entry(step)

    async def undone(self, idempotency_key: str) -> None:
        """Record that it was undone."""
        await self._database.write(journal.advance, idempotency_key, StepState.UNDONE, self._now_ms())
