"""Removes messages that are over: read ones that came, and delivered or expired ones that were sent.

What is unread, undelivered, or still needed to count on with a peer stays. Must not know how long anything is kept.
"""

from node.store.connection import Connection

__all__ = ["drop_read", "drop_settled"]


def drop_read(tx: Connection, before_ms: int, *, limit: int) -> int:
    """How many incoming messages went that were read before this, the oldest first."""
    return tx.execute(
        "DELETE FROM inbox WHERE arrival IN ("
        "  SELECT arrival FROM inbox WHERE read_ms < ? ORDER BY arrival LIMIT ?)", (before_ms, limit),
    ).rowcount


def drop_settled(tx: Connection, before_ms: int, *, limit: int) -> int:
    """How many outgoing messages went that were delivered or expired before this. A number that the peer has not
    acknowledged keeps its row: from it this node knows how far the peer can be.
    """
    return tx.execute(
        "DELETE FROM outbox WHERE rowid IN ("
        "  SELECT outbox.rowid FROM outbox JOIN mail_marks USING (peer_id)"
        "  WHERE state IN ('delivered', 'expired') AND settled_ms < ? AND seq <= acked LIMIT ?)", (before_ms, limit),
    ).rowcount
