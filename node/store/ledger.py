"""Rows of the egress ledger: append, close, walk. What an entry says and how the chain is hashed: node.privacy.ledger.

Must not decode an entry. There is no function that changes or removes an entry; only the kept bytes can be dropped.
"""

from dataclasses import dataclass
from typing import Any

from node.errors import StoreConflict
from node.store.connection import Connection

__all__ = [
    "Head", "LedgerRow", "NewEntry", "append", "close", "drop_outgoing", "get", "head", "open_row", "open_rows", "rows",
    "rows_backward",
]

_SELECT = "SELECT seq, digest, request_id, peer_id, purpose, at_ms, entry, outgoing, closed, closed_ms FROM ledger "


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the chain: the last entry's number and digest; (0, b"") before the first."""

    seq: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class NewEntry:
    """What append() stores: seq is one above the head's, digest covers the entry and the head's digest."""

    seq: int
    digest: bytes
    request_id: str
    peer_id: str
    purpose: str
    at_ms: int
    entry: bytes
    outgoing: bytes | None
    """The exact bytes that may leave, sealed by the caller if it wishes; None to keep none."""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One entry as stored. closed is None while the request runs, and after a crash until someone closes it."""

    seq: int
    digest: bytes
    request_id: str
    peer_id: str
    purpose: str
    at_ms: int
    entry: bytes
    outgoing: bytes | None
    closed: bytes | None
    closed_ms: int | None


def head(tx: Connection) -> Head:
    """The end of the chain. Read it in the transaction that appends."""
    row = tx.execute("SELECT seq, digest FROM ledger ORDER BY seq DESC LIMIT 1").fetchone()
    return Head(0, b"") if row is None else Head(int(row[0]), bytes(row[1]))


def append(tx: Connection, new: NewEntry) -> None:
    """Add an entry at the end. Raises StoreConflict unless its number follows the head's."""
    last = head(tx)
    if new.seq != last.seq + 1:
        raise StoreConflict(f"Ledger entry {new.seq} does not follow {last.seq}; nothing was sent.")
    tx.execute(
        "INSERT INTO ledger (seq, digest, request_id, peer_id, purpose, at_ms, entry, outgoing) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (new.seq, new.digest, new.request_id, new.peer_id, new.purpose, new.at_ms, new.entry, new.outgoing),
    )


def close(tx: Connection, seq: int, closed: bytes, now_ms: int) -> None:
    """Note how an entry ended. The same bytes again change nothing; anything else raises StoreConflict."""
    row = get(tx, seq)
    if row is None:
        raise StoreConflict(f"There is no ledger entry {seq} to close.")
    if row.closed is None:
        tx.execute("UPDATE ledger SET closed = ?, closed_ms = ? WHERE seq = ?", (closed, now_ms, seq))
    elif row.closed != closed:
        raise StoreConflict(f"Ledger entry {seq} is closed already.")


def get(tx: Connection, seq: int) -> LedgerRow | None:
    """One entry by its number."""
    row = tx.execute(_SELECT + "WHERE seq = ?", (seq,)).fetchone()
    return None if row is None else LedgerRow(*row)


def open_row(tx: Connection, peer_id: str, request_id: str) -> LedgerRow | None:
    """The newest entry of this peer and request that is not closed yet; a restarted message goes on with it."""
    row = tx.execute(
        _SELECT + "WHERE request_id = ? AND peer_id = ? AND closed IS NULL "
        "ORDER BY seq DESC LIMIT 1", (request_id, peer_id),
    ).fetchone()
    return None if row is None else LedgerRow(*row)


def open_rows(tx: Connection) -> list[LedgerRow]:
    """Entries that were never closed, oldest first: what a crash left behind."""
    found = tx.execute(_SELECT + "WHERE closed IS NULL ORDER BY seq")
    return [LedgerRow(*row) for row in found]


def rows(tx: Connection, *, after_seq: int = 0, limit: int = 500) -> list[LedgerRow]:
    """A page of the chain in order, for verifying and exporting: call again with the last row's number."""
    found = tx.execute(
        _SELECT + "WHERE seq > ? ORDER BY seq LIMIT ?", (after_seq, limit),
    )
    return [LedgerRow(*row) for row in found]


def rows_backward(
    tx: Connection, *, limit: int, before_seq: int | None = None, peer_id: str | None = None,
    since_ms: int | None = None,
) -> list[LedgerRow]:
    """The newest entries first, optionally of one peer, not before a time, below a number."""
    clauses: list[tuple[str, Any]] = [
        ("seq < ?", before_seq), ("peer_id = ?", peer_id), ("at_ms >= ?", since_ms),
    ]
    used = [(text, value) for text, value in clauses if value is not None]
    where = " AND ".join(text for text, _ in used) or "1"
    found = tx.execute(
        _SELECT + f"WHERE {where} ORDER BY seq DESC LIMIT ?",
        (*(value for _, value in used), limit),
    )
    return [LedgerRow(*row) for row in found]


def drop_outgoing(tx: Connection, before_ms: int) -> int:
    """How many old entries lost their kept bytes; the entries themselves stay."""
    return tx.execute(
        "UPDATE ledger SET outgoing = NULL WHERE outgoing IS NOT NULL AND closed IS NOT NULL AND at_ms < ?",
        (before_ms,),
    ).rowcount
