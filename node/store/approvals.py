"""Rows of questions put to the owner: exactly what was shown, what was decided, when. Consent to egress included.

Must not know what a question is about or how it is asked.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from node.errors import StoreConflict
from node.store.connection import Connection

__all__ = ["Approval", "Decision", "ask", "close_pending", "decide", "get", "newest"]

_SELECT = "SELECT approval_id, conversation_id, kind, shown, decision, asked_ms, decided_ms FROM approvals "


class Decision(StrEnum):
    """What the owner said. Expired: nothing in time, which counts as no."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Approval:
    """One question and its decision."""

    approval_id: str
    conversation_id: str | None
    kind: str
    shown: str
    decision: Decision
    asked_ms: int
    decided_ms: int | None


def ask(tx: Connection, *, approval_id: str, conversation_id: str | None, kind: str, shown: str, now_ms: int) -> None:
    """Note a question before it is shown."""
    tx.execute(
        "INSERT INTO approvals (approval_id, conversation_id, kind, shown, decision, asked_ms) "
        "VALUES (?, ?, ?, ?, 'pending', ?)", (approval_id, conversation_id, kind, shown, now_ms),
    )


def decide(tx: Connection, approval_id: str, decision: Decision, now_ms: int) -> Approval:
    """The question with its decision. The same decision again changes nothing; another one raises StoreConflict."""
    found = get(tx, approval_id)
    if found is None:
        raise StoreConflict("This question was never asked.")
    if found.decision is Decision.PENDING and decision is not Decision.PENDING:
        tx.execute(
            "UPDATE approvals SET decision = ?, decided_ms = ? WHERE approval_id = ?", (decision, now_ms, approval_id),
        )
        return Approval(
            found.approval_id, found.conversation_id, found.kind, found.shown, decision, found.asked_ms, now_ms,
        )
    if found.decision is not decision:
        raise StoreConflict(f"This question is decided already: {found.decision}.")
    return found


def get(tx: Connection, approval_id: str) -> Approval | None:
    """One question by its id."""
    row = tx.execute(_SELECT + "WHERE approval_id = ?", (approval_id,)).fetchone()
    return None if row is None else _approval(row)


def newest(tx: Connection, *, limit: int = 50) -> list[Approval]:
    """The latest questions first."""
    return [_approval(row) for row in tx.execute(_SELECT + "ORDER BY asked_ms DESC, rowid DESC LIMIT ?", (limit,))]


def close_pending(tx: Connection, now_ms: int) -> int:
    """How many questions nobody can answer any more, at start: they count as not approved."""
    return tx.execute(
        "UPDATE approvals SET decision = 'expired', decided_ms = ? WHERE decision = 'pending'", (now_ms,),
    ).rowcount


def _approval(row: tuple[Any, ...]) -> Approval:
    approval_id, conversation_id, kind, shown, decision, asked_ms, decided_ms = row
    return Approval(approval_id, conversation_id, kind, shown, Decision(decision), asked_ms, decided_ms)
