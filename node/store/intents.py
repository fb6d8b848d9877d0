"""Rows of requests that wait for a better answer, and the one transaction in which that answer takes its place.

    waiting --claim--> running --settle--> done
       ^  \\              | |  \\
       |   \\   put back  | |   +--refuse, give up--> refused, failed
       +----\\------------+ |
       |     \\             +--park--> needs_consent --allow--> waiting
       |      \\                            | deny --> refused
       +- cancel, expire (from waiting, needs_consent; cancel from running too) --> cancelled, expired

A settled row never changes again, so an answer is written once whatever dies in between. What was asked is erased when
a row settles; it stands in its conversation. Jobs are encoded, questions are JSON; this module must not read them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from node.errors import UsageError
from node.store import conversations
from node.store.connection import Connection
from node.store.conversations import Turn

__all__ = [
    "LIVE", "Intent", "IntentState", "add", "advance", "clear", "counts", "expire", "find", "get", "listed", "live",
    "mark_seen", "prune", "recover", "settle",
]

_SELECT = (
    "SELECT intent_id, key, conversation_id, place, model, title, job, state, reason, attempts, question, "
    "allowed_digest, ran_on, created_ms, expires_ms, updated_ms, seen_ms FROM intents "
)


class IntentState(StrEnum):
    """How far a request is."""

    WAITING = "waiting"
    NEEDS_CONSENT = "needs_consent"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    REFUSED = "refused"
    FAILED = "failed"


_S = IntentState
LIVE = (_S.WAITING, _S.NEEDS_CONSENT, _S.RUNNING)
_FROM: dict[IntentState, frozenset[IntentState]] = {
    _S.RUNNING: frozenset({_S.WAITING}),
    _S.WAITING: frozenset({_S.RUNNING, _S.NEEDS_CONSENT}),
    _S.NEEDS_CONSENT: frozenset({_S.RUNNING}),
    _S.DONE: frozenset({_S.RUNNING}),
    _S.CANCELLED: frozenset(LIVE),
    _S.EXPIRED: frozenset({_S.WAITING, _S.NEEDS_CONSENT}),
    _S.REFUSED: frozenset({_S.RUNNING, _S.NEEDS_CONSENT}),
    _S.FAILED: frozenset({_S.RUNNING, _S.WAITING}),
}


@dataclass(frozen=True, slots=True)
class Intent:
    """One request. place: "auto" or a peer's id; key: the idempotency key that it was put in under."""

    intent_id: str
    key: str
    conversation_id: str
    place: str
    model: str | None
    title: str
    job: bytes
    state: IntentState
    reason: str
    attempts: int
    question: str | None
    allowed_digest: str | None
    ran_on: str
    created_ms: int
    expires_ms: int
    updated_ms: int
    seen_ms: int | None


def add(
    tx: Connection, *, intent_id: str, key: str, conversation_id: str, place: str, model: str | None, title: str,
    job: bytes, reason: str, now_ms: int, expires_ms: int,
) -> Intent:
    """The waiting request under this key: a new one, or the one that is there, in whatever state."""
    tx.execute(
        "INSERT INTO intents (intent_id, key, conversation_id, place, model, title, job, state, reason, attempts, "
        "ran_on, created_ms, expires_ms, updated_ms) VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', ?, 0, '', ?, ?, ?) "
        "ON CONFLICT (key) DO NOTHING",
        (intent_id, key, conversation_id, place, model, title, job, reason, now_ms, expires_ms, now_ms),
    )
    row = tx.execute(_SELECT + "WHERE key = ?", (key,)).fetchone()
    assert row is not None
    return _intent(row)


def get(tx: Connection, intent_id: str) -> Intent | None:
    """The request with exactly this id."""
    row = tx.execute(_SELECT + "WHERE intent_id = ?", (intent_id,)).fetchone()
    return None if row is None else _intent(row)


def find(tx: Connection, name: str) -> Intent | None:
    """The request with this key, or whose id starts with name. Raises UsageError when several do."""
    row = tx.execute(_SELECT + "WHERE key = ?", (name,)).fetchone()
    if row is not None:
        return _intent(row)
    if not name:
        return None
    rows = tx.execute(_SELECT + "WHERE substr(intent_id, 1, ?) = ? LIMIT 2", (len(name), name)).fetchall()
    if len(rows) > 1:
        raise UsageError("Several queued requests start with this.", hint="Give more letters of the id: kith queue")
    return _intent(rows[0]) if rows else None


def live(tx: Connection) -> list[Intent]:
    """All that are not settled, oldest first."""
    return [_intent(row) for row in tx.execute(
        _SELECT + "WHERE state IN ('waiting', 'needs_consent', 'running') ORDER BY created_ms, intent_id")]


def listed(tx: Connection, *, limit: int) -> list[Intent]:
    """Live ones first, then settled ones; in both the newest first."""
    return [_intent(row) for row in tx.execute(
        _SELECT + "ORDER BY state IN ('waiting', 'needs_consent', 'running') DESC, created_ms DESC, intent_id LIMIT ?",
        (limit,))]


def counts(tx: Connection) -> dict[str, int]:
    """How many are in each state; "new": done and not looked at."""
    rows = tx.execute("SELECT state, count(*) FROM intents GROUP BY state")
    found = {str(state): int(count) for state, count in rows}
    row = tx.execute("SELECT count(*) FROM intents WHERE state = 'done' AND seen_ms IS NULL").fetchone()
    return {**found, "new": int(row[0]) if row else 0}


def advance(
    tx: Connection, intent_id: str, to: IntentState, now_ms: int, *, reason: str | None = None,
    question: str | None = None, allowed_digest: str | None = None,
) -> Intent | None:
    """The request in its new state; None when it is gone, or in no state that leads there: nothing is changed then.

    Running counts an attempt. A settled one keeps neither job nor question. Not for DONE: that is settle()'s.
    """
    assert to is not _S.DONE
    found = get(tx, intent_id)
    if found is None or found.state not in _FROM[to]:
        return None
    over = to not in LIVE
    tx.execute(
        "UPDATE intents SET state = ?, updated_ms = ?, reason = coalesce(?, reason), attempts = attempts + ?, "
        "job = CASE WHEN ? THEN x'' ELSE job END, question = ?, allowed_digest = coalesce(?, allowed_digest) "
        "WHERE intent_id = ?",
        (to.value, now_ms, reason, int(to is _S.RUNNING), over, question, allowed_digest, intent_id),
    )
    return get(tx, intent_id)


def settle(tx: Connection, intent_id: str, attempt: int, turn: Turn, now_ms: int) -> Intent | None:
    """The request, done: its answer stands in the conversation where its draft stood. Both in this transaction.

    None, and nothing changed, when it was cancelled meanwhile or another attempt runs: that answer is dropped.
    """
    found = get(tx, intent_id)
    if found is None or found.state is not _S.RUNNING or found.attempts != attempt:
        return None
    conversations.upgrade(tx, found.conversation_id, intent_id, turn)
    tx.execute(
        "UPDATE intents SET state = 'done', updated_ms = ?, reason = '', job = x'', question = NULL, ran_on = ? "
        "WHERE intent_id = ?", (now_ms, turn.ran_on, intent_id),
    )
    return get(tx, intent_id)


def recover(tx: Connection, now_ms: int) -> int:
    """How many were running when the node ended; they wait again."""
    return tx.execute(
        "UPDATE intents SET state = 'waiting', updated_ms = ?, reason = 'the node was stopped in the middle' "
        "WHERE state = 'running'", (now_ms,),
    ).rowcount


def expire(tx: Connection, now_ms: int) -> list[str]:
    """The ids of those whose time ran out now. One that runs may end."""
    due = [str(row[0]) for row in tx.execute(
        "SELECT intent_id FROM intents WHERE state IN ('waiting', 'needs_consent') AND expires_ms <= ? "
        "ORDER BY created_ms", (now_ms,))]
    for intent_id in due:
        advance(tx, intent_id, _S.EXPIRED, now_ms, reason="nobody could answer in time")
    return due


def mark_seen(tx: Connection, intent_id: str, now_ms: int) -> None:
    """The owner looked at its answer."""
    tx.execute(
        "UPDATE intents SET seen_ms = ? WHERE intent_id = ? AND state = 'done' AND seen_ms IS NULL",
        (now_ms, intent_id))


def clear(tx: Connection) -> int:
    """How many settled ones were removed. Their answers stay in the conversations."""
    return tx.execute(
        "DELETE FROM intents WHERE state NOT IN ('waiting', 'needs_consent', 'running')").rowcount


def prune(tx: Connection, before_ms: int) -> int:
    """How many settled ones were removed that nothing happened to since then; not those whose answer is still new."""
    return tx.execute(
        "DELETE FROM intents WHERE state NOT IN ('waiting', 'needs_consent', 'running') AND updated_ms < ? "
        "AND NOT (state = 'done' AND seen_ms IS NULL)", (before_ms,)).rowcount


def _intent(row: Sequence[Any]) -> Intent:
    values = list(row)
    values[7] = IntentState(values[7])
    return Intent(*values)
