"""Removes messages that are over: read ones that came, and delivered or expired ones that were sent.

What is unread, undelivered, or still needed to count on with a peer stays; what was stamped by a clock that was behind
can be put right. Must not know how long anything is kept.
"""

from node.store.connection import Connection

__all__ = ["drop_read", "drop_settled", "move_stamps"]


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


def move_stamps(tx: Connection, since_ms: int, upto_ms: int, by_ms: int) -> int:
    """How many messages were noted as over between these two moments; they were so much later."""
    span = by_ms, since_ms, upto_ms
    read = tx.execute("UPDATE inbox SET read_ms = read_ms + ? WHERE read_ms BETWEEN ? AND ?", span)
    settled = tx.execute("UPDATE outbox SET settled_ms = settled_ms + ? WHERE settled_ms BETWEEN ? AND ?", span)
    return read.rowcount + settled.rowcount
