"""Rows of what the owner decided about disclosure: a level for a peer and purpose, and what is always refused.

Must not know what a level means.
"""

from dataclasses import dataclass

from node.store.connection import Connection

__all__ = [
    "Denial", "Level", "allow_again", "denials", "deny", "drop", "drop_clear", "every", "forget", "forget_conversation",
    "put",
]


@dataclass(frozen=True, slots=True)
class Level:
    """One decision. conversation: "" for all of them."""

    peer_id: str
    purpose: str
    conversation: str
    level: str
    set_ms: int


@dataclass(frozen=True, slots=True)
class Denial:
    """What the owner never wants to be asked again; the answer is no."""

    number: int
    peer_id: str
    purpose: str
    made_ms: int


def put(tx: Connection, decision: Level) -> None:
    """Keep the decision in place of an earlier one."""
    tx.execute(
        "INSERT INTO levels (peer_id, purpose, conversation, level, set_ms) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (peer_id, purpose, conversation) DO UPDATE SET level = excluded.level, set_ms = excluded.set_ms",
        (decision.peer_id, decision.purpose, decision.conversation, decision.level, decision.set_ms),
    )


def drop(tx: Connection, peer_id: str, purpose: str, conversation: str) -> bool:
    """Whether there was a decision to take back."""
    return tx.execute(
        "DELETE FROM levels WHERE peer_id = ? AND purpose = ? AND conversation = ?", (peer_id, purpose, conversation),
    ).rowcount > 0


def every(tx: Connection) -> list[Level]:
    """All decisions."""
    rows = tx.execute("SELECT peer_id, purpose, conversation, level, set_ms FROM levels ORDER BY peer_id, purpose, "
                      "conversation")
    return [Level(*row) for row in rows]


def deny(tx: Connection, peer_id: str, purpose: str, now_ms: int) -> None:
    """Refuse this purpose to this peer from now on; again changes nothing."""
    tx.execute(
        "INSERT INTO denials (peer_id, purpose, made_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (peer_id, purpose, now_ms),
    )


def denials(tx: Connection) -> list[Denial]:
    """All refusals, oldest first."""
    return [Denial(*row) for row in tx.execute("SELECT number, peer_id, purpose, made_ms FROM denials ORDER BY number")]


def allow_again(tx: Connection, number: int) -> bool:
    """Whether there was such a refusal to take back."""
    return tx.execute("DELETE FROM denials WHERE number = ?", (number,)).rowcount > 0


def drop_clear(tx: Connection, peer_id: str) -> None:
    """Take every clear back: it was decided for a peer of another trust."""
    tx.execute("DELETE FROM levels WHERE peer_id = ? AND level = 'clear'", (peer_id,))


def forget(tx: Connection, peer_id: str) -> None:
    """Drop every decision about a peer that is no longer paired."""
    tx.execute("DELETE FROM levels WHERE peer_id = ?", (peer_id,))
    tx.execute("DELETE FROM denials WHERE peer_id = ?", (peer_id,))


def forget_conversation(tx: Connection, conversation: str) -> None:
    """Drop every decision about a conversation that is gone."""
    tx.execute("DELETE FROM levels WHERE conversation = ? AND conversation != ''", (conversation,))
