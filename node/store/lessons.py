"""Rows of lessons: sentences of the owner that were confirmed as a tool's, with the words that became arguments.

Must not know what is learnt from them.
"""

import json
from dataclasses import dataclass
from typing import Any

from node.store.connection import Connection

__all__ = ["LessonRow", "add", "clear", "listed", "remove"]

_SELECT = "SELECT lesson_id, text, tool, words, made_ms FROM lessons "


@dataclass(frozen=True, slots=True)
class LessonRow:
    """One lesson."""

    lesson_id: str
    text: str
    tool: str
    words: dict[str, str]
    made_ms: int


def add(tx: Connection, row: LessonRow, *, keep: int) -> None:
    """Keep it in place of an older one of the same sentence and tool; the oldest beyond `keep` go."""
    tx.execute("DELETE FROM lessons WHERE text = ? AND tool = ?", (row.text, row.tool))
    tx.execute(
        "INSERT INTO lessons (lesson_id, text, tool, words, made_ms) VALUES (?, ?, ?, ?, ?)",
        (row.lesson_id, row.text, row.tool, json.dumps(row.words, sort_keys=True), row.made_ms),
    )
    tx.execute(
        "DELETE FROM lessons WHERE lesson_id NOT IN (SELECT lesson_id FROM lessons ORDER BY made_ms DESC, rowid DESC "
        "LIMIT ?)", (keep,),
    )


def listed(tx: Connection, limit: int) -> list[LessonRow]:
    """The newest first."""
    rows = tx.execute(_SELECT + "ORDER BY made_ms DESC, rowid DESC LIMIT ?", (limit,))
    return [_row(row) for row in rows]


def remove(tx: Connection, lesson_id: str) -> bool:
    """Whether there was one to remove."""
    return tx.execute("DELETE FROM lessons WHERE lesson_id = ?", (lesson_id,)).rowcount > 0


def clear(tx: Connection) -> int:
    """How many were removed: all of them."""
    return tx.execute("DELETE FROM lessons").rowcount


def _row(row: tuple[Any, ...]) -> LessonRow:
    lesson_id, text, tool, words, made_ms = row
    return LessonRow(lesson_id, text, tool, dict(json.loads(words)), made_ms)
