"""Rows of reminders: what, when, and whether the owner was told and has seen it. Texts are the owner's own.

    waiting --tell--> told        waiting --cancel--> cancelled        told or cancelled --restore--> waiting (undo)

Must not know clocks, quiet hours or how somebody is told.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from node.store.connection import Connection

__all__ = [
    "KEEP", "Reminder", "ReminderState", "add", "cancel", "due", "get", "listed", "next_due_ms", "remove", "restore",
    "see", "tell",
]

_SELECT = "SELECT reminder_id, text, due_ms, made_ms, state, told_ms, missed, seen_ms FROM reminders "
KEEP = 500
"""Told and cancelled reminders that are kept; older ones go."""


class ReminderState(StrEnum):
    """How far a reminder is."""

    WAITING = "waiting"
    TOLD = "told"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Reminder:
    """One reminder. missed: this node was off, or the hours were quiet, when it was due."""

    reminder_id: str
    text: str
    due_ms: int
    made_ms: int
    state: ReminderState
    told_ms: int | None
    missed: bool
    seen_ms: int | None


def add(tx: Connection, reminder_id: str, text: str, due_ms: int, made_ms: int) -> None:
    """A new reminder. The same id again changes nothing."""
    tx.execute(
        "INSERT INTO reminders (reminder_id, text, due_ms, made_ms, state) VALUES (?, ?, ?, ?, 'waiting') "
        "ON CONFLICT (reminder_id) DO NOTHING",
        (reminder_id, text, due_ms, made_ms),
    )


def get(tx: Connection, reminder_id: str) -> Reminder | None:
    """The reminder with exactly this id."""
    row = tx.execute(_SELECT + "WHERE reminder_id = ?", (reminder_id,)).fetchone()
    return None if row is None else _reminder(row)


def due(tx: Connection, now_ms: int) -> list[Reminder]:
    """Waiting ones whose time has come, the oldest first."""
    rows = tx.execute(_SELECT + "WHERE state = 'waiting' AND due_ms <= ? ORDER BY due_ms, reminder_id", (now_ms,))
    return [_reminder(row) for row in rows]


def next_due_ms(tx: Connection) -> int | None:
    """When the next waiting one is due."""
    row = tx.execute("SELECT min(due_ms) FROM reminders WHERE state = 'waiting'").fetchone()
    return None if row is None or row[0] is None else int(row[0])


def tell(tx: Connection, reminder_ids: Sequence[str], now_ms: int, *, missed: Sequence[str]) -> list[Reminder]:
    """Those of these that were still waiting, now told: each is told once, whatever dies in between."""
    told = []
    for reminder_id in reminder_ids:
        changed = tx.execute(
            "UPDATE reminders SET state = 'told', told_ms = ?, missed = ? WHERE reminder_id = ? AND state = 'waiting'",
            (now_ms, int(reminder_id in missed), reminder_id),
        ).rowcount
        if changed and (found := get(tx, reminder_id)) is not None:
            told.append(found)
    tx.execute(
        "DELETE FROM reminders WHERE state != 'waiting' AND seen_ms IS NOT NULL AND reminder_id NOT IN "
        "(SELECT reminder_id FROM reminders WHERE state != 'waiting' ORDER BY due_ms DESC LIMIT ?)", (KEEP,),
    )
    return told


def cancel(tx: Connection, reminder_id: str, now_ms: int) -> bool:
    """Whether a waiting reminder was there to cancel."""
    return tx.execute(
        "UPDATE reminders SET state = 'cancelled', seen_ms = ? WHERE reminder_id = ? AND state = 'waiting'",
        (now_ms, reminder_id),
    ).rowcount > 0


def restore(tx: Connection, reminder_id: str) -> bool:
    """Whether a cancelled reminder waits again."""
    return tx.execute(
        "UPDATE reminders SET state = 'waiting', seen_ms = NULL WHERE reminder_id = ? AND state = 'cancelled'",
        (reminder_id,),
    ).rowcount > 0


def remove(tx: Connection, reminder_id: str) -> bool:
    """Whether a waiting reminder was there to take out without a trace."""
    return tx.execute(
        "DELETE FROM reminders WHERE reminder_id = ? AND state = 'waiting'", (reminder_id,)
    ).rowcount > 0


def listed(tx: Connection, limit: int) -> list[Reminder]:
    """Waiting ones by their time, then what was told or cancelled, the newest first; at most limit."""
    rows = tx.execute(
        _SELECT + "ORDER BY state != 'waiting', CASE state WHEN 'waiting' THEN due_ms ELSE -due_ms END LIMIT ?",
        (limit,),
    )
    return [_reminder(row) for row in rows]


def see(tx: Connection, now_ms: int) -> int:
    """Mark every told reminder as looked at; how many were new."""
    return tx.execute(
        "UPDATE reminders SET seen_ms = ? WHERE state = 'told' AND seen_ms IS NULL", (now_ms,)
    ).rowcount


def _reminder(row: tuple[Any, ...]) -> Reminder:
    reminder_id, text, due_ms, made_ms, state, told_ms, missed, seen_ms = row
    return Reminder(reminder_id, text, due_ms, made_ms, ReminderState(state), told_ms, bool(missed), seen_ms)
