"""Rows of the receipts that this node owes to its peers, and of those it has handed in.

Must not know keys or frames.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from node.store.connection import Connection

__all__ = ["OwedReceipt", "forget_before", "mark_sent", "named", "owe", "peers_waiting", "waiting"]

_SELECT = "SELECT number, peer_id, purpose, request_id, size_bytes, digest, at_ms FROM owed_receipts "


@dataclass(frozen=True, slots=True)
class OwedReceipt:
    """One piece that came from a peer."""

    number: int
    peer_id: str
    purpose: str
    request_id: bytes
    size_bytes: int
    digest: bytes
    at_ms: int


def owe(tx: Connection, arrived: Sequence[OwedReceipt]) -> None:
    """Keep what came; the same piece again is owed once. The numbers given are not looked at."""
    tx.executemany(
        "INSERT INTO owed_receipts (peer_id, purpose, request_id, size_bytes, digest, at_ms) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        [(one.peer_id, one.purpose, one.request_id, one.size_bytes, one.digest, one.at_ms) for one in arrived],
    )


def waiting(tx: Connection, peer_id: str, *, limit: int) -> list[OwedReceipt]:
    """What was not handed in yet, oldest first."""
    found = tx.execute(_SELECT + "WHERE peer_id = ? AND sent_ms IS NULL ORDER BY number LIMIT ?", (peer_id, limit))
    return [OwedReceipt(*row) for row in found]


def peers_waiting(tx: Connection) -> list[str]:
    """Peers to which receipts are owed."""
    return [str(row[0]) for row in tx.execute("SELECT DISTINCT peer_id FROM owed_receipts WHERE sent_ms IS NULL")]


def mark_sent(tx: Connection, numbers: Sequence[int], now_ms: int) -> None:
    """They were handed to the transport; the peer may ask for them again."""
    tx.executemany("UPDATE owed_receipts SET sent_ms = ? WHERE number = ?", [(now_ms, number) for number in numbers])


def named(tx: Connection, peer_id: str, request_ids: Sequence[bytes], *, limit: int) -> list[OwedReceipt]:
    """What came from this peer under these ids, handed in or not."""
    found: list[OwedReceipt] = []
    for request_id in request_ids:
        rows = tx.execute(
            _SELECT + "WHERE peer_id = ? AND request_id = ? ORDER BY number LIMIT ?",
            (peer_id, request_id, limit - len(found)),
        )
        found += [OwedReceipt(*row) for row in rows]
    return found[:limit]


def forget_before(tx: Connection, before_ms: int) -> int:
    """Drop what is older than this, owed or not; how many."""
    return tx.execute("DELETE FROM owed_receipts WHERE at_ms < ?", (before_ms,)).rowcount
