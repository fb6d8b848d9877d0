"""Rows of the owner's conversations with the agent: turns with their labels, the draft that waits for an answer.

Labels are plain numbers here (confidentiality: higher is more private; integrity: lower is less trusted); they can only
get stricter. What they mean is node.privacy.labels's business.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from node.errors import StoreConflict, UsageError
from node.store.connection import Connection

__all__ = [
    "Conversation", "Turn", "append", "create", "delete", "draft", "export", "find", "get", "keep_draft", "latest",
    "newest", "tighten", "turns", "upgrade", "upgraded",
]

_SELECT = "SELECT conversation_id, title, confidentiality, integrity, created_ms, updated_ms FROM conversations "
_TURNS = "SELECT number, role, text, confidentiality, integrity, ran_on, sources, detail, at_ms FROM turns "
_TITLE_CHARS = 80


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation without its turns."""

    conversation_id: str
    title: str
    confidentiality: int
    integrity: int
    created_ms: int
    updated_ms: int


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing said. number is given by append()."""

    role: str
    text: str
    confidentiality: int
    integrity: int
    at_ms: int
    ran_on: str = ""
    sources: tuple[str, ...] = ()
    detail: str = "{}"
    """A JSON object with whatever else the agent keeps, such as the tools used and the reason."""
    number: int = 0


def create(tx: Connection, conversation_id: str, now_ms: int, *, confidentiality: int, integrity: int) -> Conversation:
    """A new, empty conversation. Its title becomes the start of the first turn."""
    tx.execute(
        "INSERT INTO conversations (conversation_id, title, confidentiality, integrity, created_ms, updated_ms) "
        "VALUES (?, '', ?, ?, ?, ?)", (conversation_id, confidentiality, integrity, now_ms, now_ms),
    )
    return Conversation(conversation_id, "", confidentiality, integrity, now_ms, now_ms)


def append(tx: Connection, conversation_id: str, turn: Turn) -> int:
    """The number of the added turn, from 1. Tightens the conversation's label. StoreConflict if unknown."""
    found = get(tx, conversation_id)
    if found is None:
        raise StoreConflict("This conversation does not exist.", hint="See them: kith history")
    row = tx.execute(
        "SELECT coalesce(max(number), 0) + 1 FROM turns WHERE conversation_id = ?", (conversation_id,),
    ).fetchone()
    assert row is not None
    tx.execute(
        "INSERT INTO turns (conversation_id, number, role, text, confidentiality, integrity, ran_on, sources, detail, "
        "at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            conversation_id, row[0], turn.role, turn.text, turn.confidentiality, turn.integrity, turn.ran_on,
            json.dumps(turn.sources), turn.detail, turn.at_ms,
        ),
    )
    title = found.title or " ".join(turn.text.split())[:_TITLE_CHARS]
    tx.execute(
        "UPDATE conversations SET title = ?, updated_ms = max(updated_ms, ?) WHERE conversation_id = ?",
        (title, turn.at_ms, conversation_id),
    )
    tighten(tx, conversation_id, turn.confidentiality, turn.integrity)
    return int(row[0])


def upgrade(tx: Connection, conversation_id: str, intent_id: str, turn: Turn) -> int:
    """The number of the turn that now holds this better answer: the draft's own turn, whose detail names the intent and
    which is kept in the detail; a new one when there is no draft. Raises StoreConflict for an unknown conversation.
    """
    row = tx.execute(
        "SELECT number, text, ran_on, at_ms FROM turns WHERE conversation_id = ? AND role = 'assistant' "
        "AND json_extract(detail, '$.intent') = ?", (conversation_id, intent_id),
    ).fetchone()
    detail = {**json.loads(turn.detail), "intent": intent_id, "upgraded": True}
    if row is None:
        return append(tx, conversation_id, replace(turn, detail=json.dumps(detail)))
    detail["draft"] = {"text": row[1], "ran_on": row[2], "at_ms": row[3]}
    tx.execute(
        "UPDATE turns SET text = ?, ran_on = ?, sources = ?, detail = ?, confidentiality = max(confidentiality, ?), "
        "integrity = min(integrity, ?) WHERE conversation_id = ? AND number = ?",
        (
            turn.text, turn.ran_on, json.dumps(turn.sources), json.dumps(detail), turn.confidentiality, turn.integrity,
            conversation_id, row[0],
        ),
    )
    tx.execute(
        "UPDATE conversations SET updated_ms = max(updated_ms, ?) WHERE conversation_id = ?",
        (turn.at_ms, conversation_id))
    tighten(tx, conversation_id, turn.confidentiality, turn.integrity)
    return int(row[0])


def upgraded(tx: Connection, conversation_id: str, intent_id: str) -> Turn | None:
    """The turn of this intent: its draft, or the better answer once that is there."""
    row = tx.execute(
        _TURNS + "WHERE conversation_id = ? AND role = 'assistant' AND json_extract(detail, '$.intent') = ?",
        (conversation_id, intent_id),
    ).fetchone()
    return None if row is None else _turn(row)


def tighten(tx: Connection, conversation_id: str, confidentiality: int, integrity: int) -> None:
    """Make the conversation at least this private and at most this trusted; it never becomes laxer."""
    tx.execute(
        "UPDATE conversations SET confidentiality = max(confidentiality, ?), integrity = min(integrity, ?) "
        "WHERE conversation_id = ?", (confidentiality, integrity, conversation_id),
    )


def get(tx: Connection, conversation_id: str) -> Conversation | None:
    """The conversation with exactly this id."""
    row = tx.execute(_SELECT + "WHERE conversation_id = ?", (conversation_id,)).fetchone()
    return None if row is None else Conversation(*row)


def find(tx: Connection, prefix: str) -> Conversation | None:
    """The conversation whose id starts with prefix. Raises UsageError when several do."""
    rows = tx.execute(
        _SELECT + "WHERE substr(conversation_id, 1, ?) = ? LIMIT 2", (len(prefix), prefix),
    ).fetchall()
    if len(rows) > 1:
        raise UsageError("Several conversations start with this.", hint="Give more letters of the id.")
    return Conversation(*rows[0]) if rows else None


def latest(tx: Connection) -> Conversation | None:
    """The conversation last spoken in."""
    found = newest(tx, limit=1)
    return found[0] if found else None


def newest(tx: Connection, *, limit: int = 50) -> list[Conversation]:
    """The conversations last spoken in, newest first."""
    found = tx.execute(_SELECT + "ORDER BY updated_ms DESC, conversation_id LIMIT ?", (limit,))
    return [Conversation(*row) for row in found]


def turns(tx: Connection, conversation_id: str, *, limit: int | None = None) -> list[Turn]:
    """The newest turns, all of them without a limit, oldest first."""
    rows = tx.execute(
        _TURNS + "WHERE conversation_id = ? ORDER BY number DESC LIMIT ?",
        (conversation_id, -1 if limit is None else limit),
    ).fetchall()
    return [_turn(row) for row in reversed(rows)]


def draft(tx: Connection, conversation_id: str) -> str | None:
    """The unfinished call, as JSON, that waits for the owner's next words."""
    row = tx.execute("SELECT draft FROM conversations WHERE conversation_id = ?", (conversation_id,)).fetchone()
    return None if row is None else row[0]


def keep_draft(tx: Connection, conversation_id: str, draft_json: str | None) -> None:
    """Keep an unfinished call; None drops it."""
    tx.execute("UPDATE conversations SET draft = ? WHERE conversation_id = ?", (draft_json, conversation_id))


def delete(tx: Connection, conversation_id: str) -> bool:
    """Whether it was there. Its rows are overwritten; Database.shrink_log() then empties the log too."""
    tx.execute("DELETE FROM approvals WHERE conversation_id = ?", (conversation_id,))
    return tx.execute("DELETE FROM conversations WHERE conversation_id = ?", (conversation_id,)).rowcount > 0


def export(tx: Connection, conversation_ids: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Plain records of these conversations, or of all, with every turn, ready for JSON."""
    chosen = [get(tx, one) for one in conversation_ids] if conversation_ids else list(newest(tx, limit=-1))
    return [
        {
            "conversation_id": one.conversation_id, "title": one.title, "created_ms": one.created_ms,
            "confidentiality": one.confidentiality, "integrity": one.integrity,
            "turns": [
                {
                    "role": turn.role, "text": turn.text, "at_ms": turn.at_ms, "ran_on": turn.ran_on,
                    "sources": list(turn.sources), "detail": json.loads(turn.detail),
                    "confidentiality": turn.confidentiality, "integrity": turn.integrity,
                }
                for turn in turns(tx, one.conversation_id)
            ],
        }
        for one in chosen if one is not None
    ]


def _turn(row: tuple[Any, ...]) -> Turn:
    number, role, text, confidentiality, integrity, ran_on, sources, detail, at_ms = row
    return Turn(role, text, confidentiality, integrity, at_ms, ran_on, tuple(json.loads(sources)), detail, number)
