"""Rows of steps that change the owner's data: planned, decided, applied, undone, each under its idempotency key.

    planned -> approved -> applied -> undone
       |          +-----> failed
       +-> denied

Plans, decisions and undo records are JSON texts of the agent's; this module must not read them.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from node.errors import StoreConflict
from node.store.connection import Connection

__all__ = ["Step", "StepState", "advance", "applied", "drop_before", "get", "last_undoable", "plan", "unfinished"]

_SELECT = "SELECT number, key, run_id, step, state, plan, decision, record, created_ms, updated_ms FROM journal "


class StepState(StrEnum):
    """How far a step is."""

    PLANNED = "planned"
    APPROVED = "approved"
    DENIED = "denied"
    APPLIED = "applied"
    UNDONE = "undone"
    FAILED = "failed"


_ALLOWED = {
    StepState.PLANNED: {StepState.APPROVED, StepState.DENIED, StepState.FAILED},
    StepState.APPROVED: {StepState.APPLIED, StepState.FAILED},
    StepState.APPLIED: {StepState.UNDONE},
    StepState.DENIED: set[StepState](),
    StepState.UNDONE: set[StepState](),
    StepState.FAILED: set[StepState](),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step. record is what undoing takes, once it is applied."""

    number: int
    key: str
    run_id: str
    step: str
    state: StepState
    plan: str
    decision: str | None
    record: str | None
    created_ms: int
    updated_ms: int


def plan(tx: Connection, *, key: str, run_id: str, step: str, plan: str, now_ms: int) -> Step:
    """The step under this key: a new planned one, or the one that is there, whatever its state.

    Raises StoreConflict when the key stands for another plan.
    """
    known = get(tx, key)
    if known is None:
        tx.execute(
            "INSERT INTO journal (key, run_id, step, state, plan, created_ms, updated_ms) "
            "VALUES (?, ?, ?, 'planned', ?, ?, ?)", (key, run_id, step, plan, now_ms, now_ms),
        )
        known = get(tx, key)
        assert known is not None
    if known.plan != plan or known.step != step:
        raise StoreConflict("This step was planned with other contents; nothing was changed.")
    return known


def advance(
    tx: Connection, key: str, state: StepState, now_ms: int, *, decision: str | None = None, record: str | None = None,
) -> Step:
    """The step in its new state. The state it already has changes nothing; a step back raises StoreConflict."""
    step = get(tx, key)
    if step is None:
        raise StoreConflict("This step was never planned.")
    if step.state is state:
        return step
    if state not in _ALLOWED[step.state]:
        raise StoreConflict(f"A step that is {step.state} cannot become {state}.")
    tx.execute(
        "UPDATE journal SET state = ?, decision = coalesce(?, decision), record = coalesce(?, record), updated_ms = ?, "
        "applied_order = CASE WHEN ? = 'applied' THEN (SELECT coalesce(max(applied_order), 0) + 1 FROM journal) "
        "ELSE applied_order END WHERE key = ?",
        (state, decision, record, now_ms, state, key),
    )
    changed = get(tx, key)
    assert changed is not None
    return changed


def get(tx: Connection, key: str) -> Step | None:
    """The step under this key."""
    row = tx.execute(_SELECT + "WHERE key = ?", (key,)).fetchone()
    return None if row is None else _step(row)


def unfinished(tx: Connection) -> list[Step]:
    """Approved but not known to be applied, oldest first: what a crash left behind. Apply again under the same key."""
    return [_step(row) for row in tx.execute(_SELECT + "WHERE state = 'approved' ORDER BY number")]


def last_undoable(tx: Connection) -> Step | None:
    """The step applied last that can be undone and is not."""
    row = tx.execute(
        _SELECT + "WHERE state = 'applied' AND record IS NOT NULL ORDER BY applied_order DESC LIMIT 1",
    ).fetchone()
    return None if row is None else _step(row)


def applied(tx: Connection, *, limit: int) -> list[Step]:
    """The newest steps that are in place and not undone, oldest first."""
    rows = tx.execute(_SELECT + "WHERE state = 'applied' ORDER BY number DESC LIMIT ?", (limit,)).fetchall()
    return [_step(row) for row in reversed(rows)]


def drop_before(tx: Connection, before_ms: int, *, limit: int) -> int:
    """How many steps went whose last change is older than this. One that is not over stays, and so does the one that
    would be undone next.
    """
    return tx.execute(
        "DELETE FROM journal WHERE number IN ("
        "  SELECT number FROM journal WHERE state NOT IN ('planned', 'approved') AND updated_ms < ?"
        "  AND number <> coalesce((SELECT number FROM journal WHERE state = 'applied' AND record IS NOT NULL"
        "    ORDER BY applied_order DESC LIMIT 1), 0)"
        "  ORDER BY number LIMIT ?)", (before_ms, limit),
    ).rowcount


def _step(row: tuple[Any, ...]) -> Step:
    number, key, run_id, step, state, plan_json, decision, record, created_ms, updated_ms = row
    return Step(number, key, run_id, step, StepState(state), plan_json, decision, record, created_ms, updated_ms)
