"""Rows of the egress ledger: append, close, walk, thin out. What an entry says and how it is chained is node.privacy's.

Must not decode an entry. No function changes an entry: kept texts can be dropped with a note, and whole entries only
from the beginning on, with a checkpoint in their place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from node.errors import StoreConflict
from node.store.connection import Connection

__all__ = [
    "Head", "LedgerRow", "NewEntry", "ReceiptRow", "add_receipt", "append", "checkpoint", "close", "drop_kept", "get",
    "head", "kept_before", "kept_of", "open_row", "open_rows", "prunable", "prune", "receipts", "rows", "rows_backward",
]

_SELECT = (
    "SELECT seq, digest, request_id, peer_id, purpose, at_ms, entry, outgoing, closed, closed_ms, conversation, "
    "frames, dropped FROM ledger "
)
_RECEIPTS_OF_ONE = 8    # a message is sent again after each break; more than this is a peer at play


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
    """The exact texts that may leave, sealed by the caller if it wishes; None to keep none."""
    conversation: str = ""


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
    conversation: str = ""
    frames: bytes | None = None
    """The exact bytes that left, sealed; known once it is closed."""
    dropped: bytes | None = None
    """The note that texts and bytes were erased."""


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """A peer's signature for what it received of an entry."""

    seq: int
    digest: bytes
    size_bytes: int
    signature: bytes
    received_ms: int


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
        "INSERT INTO ledger (seq, digest, request_id, peer_id, purpose, at_ms, entry, outgoing, conversation) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new.seq, new.digest, new.request_id, new.peer_id, new.purpose, new.at_ms, new.entry, new.outgoing,
            new.conversation,
        ),
    )


def close(tx: Connection, seq: int, closed: bytes, now_ms: int, frames: bytes | None = None) -> None:
    """Note how an entry ended. The same bytes again change nothing; anything else raises StoreConflict.

    frames: the exact bytes, not kept when the entry's texts were erased meanwhile.
    """
    row = get(tx, seq)
    if row is None:
        raise StoreConflict(f"There is no ledger entry {seq} to close.")
    if row.closed is None:
        kept = frames if row.dropped is None else None
        tx.execute(
            "UPDATE ledger SET closed = ?, closed_ms = ?, frames = ? WHERE seq = ?", (closed, now_ms, kept, seq),
        )
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
    return _read(tx, "WHERE closed IS NULL ORDER BY seq", ())


def rows(tx: Connection, *, after_seq: int = 0, limit: int = 500) -> list[LedgerRow]:
    """A page of the chain in order, for verifying and exporting: call again with the last row's number."""
    return _read(tx, "WHERE seq > ? ORDER BY seq LIMIT ?", (after_seq, limit))


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
    return _read(tx, f"WHERE {where} ORDER BY seq DESC LIMIT ?", (*(value for _, value in used), limit))


# ---- receipts

def add_receipt(
    tx: Connection, *, peer_id: str, purpose: str, request_id: str, size_bytes: int, digest: bytes, signature: bytes,
    now_ms: int,
) -> bool:
    """Keep a peer's signature with the newest entry of this request; False when there is no entry or no more room."""
    row = tx.execute(
        "SELECT seq FROM ledger WHERE request_id = ? AND peer_id = ? AND purpose = ? ORDER BY seq DESC LIMIT 1",
        (request_id, peer_id, purpose),
    ).fetchone()
    if row is None:
        return False
    count = tx.execute("SELECT count(*) FROM receipts WHERE seq = ?", (row[0],)).fetchone()
    assert count is not None
    if count[0] >= _RECEIPTS_OF_ONE:
        return False
    return tx.execute(
        "INSERT INTO receipts (seq, digest, size_bytes, signature, received_ms) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING", (row[0], digest, size_bytes, signature, now_ms),
    ).rowcount > 0


def receipts(tx: Connection, first_seq: int, last_seq: int) -> list[ReceiptRow]:
    """The receipts of these entries, both ends included."""
    found = tx.execute(
        "SELECT seq, digest, size_bytes, signature, received_ms FROM receipts WHERE seq BETWEEN ? AND ? "
        "ORDER BY seq, received_ms", (first_seq, last_seq),
    )
    return [ReceiptRow(*row) for row in found]


# ---- thinning out

def kept_before(tx: Connection, before_ms: int, *, limit: int) -> list[LedgerRow]:
    """Closed entries older than this whose texts or bytes are still kept, oldest first."""
    return _read(
        tx, "WHERE at_ms < ? AND dropped IS NULL AND closed IS NOT NULL "
        "AND (outgoing IS NOT NULL OR frames IS NOT NULL) ORDER BY at_ms, seq LIMIT ?", (before_ms, limit),
    )


def kept_of(tx: Connection, conversation: str) -> list[LedgerRow]:
    """Entries of one conversation whose texts or bytes are still kept."""
    return _read(tx, "WHERE conversation = ? AND conversation != '' AND dropped IS NULL ORDER BY seq", (conversation,))


def drop_kept(tx: Connection, notes: Sequence[tuple[int, bytes]]) -> int:
    """Erase texts and bytes of these entries and leave the note (number, note) in their place; how many had some."""
    return sum(
        tx.execute(
            "UPDATE ledger SET outgoing = NULL, frames = NULL, dropped = ? WHERE seq = ? AND dropped IS NULL",
            (note, seq),
        ).rowcount
        for seq, note in notes
    )


def prunable(tx: Connection, before_ms: int) -> Head | None:
    """The last of the entries from the beginning on that are all closed and older than this; never the newest one."""
    row = tx.execute(
        "SELECT max(seq) FROM ledger WHERE seq < coalesce("
        "  (SELECT min(seq) FROM ledger WHERE closed IS NULL OR at_ms >= ?), (SELECT max(seq) FROM ledger))",
        (before_ms,),
    ).fetchone()
    if row is None or row[0] is None:
        return None
    found = get(tx, int(row[0]))
    return None if found is None else Head(found.seq, found.digest)


def prune(tx: Connection, upto: Head, record: bytes) -> int:
    """Remove the entries up to this one and keep the record in their place; how many went."""
    found = get(tx, upto.seq)
    if found is None or found.digest != upto.digest or head(tx).seq <= upto.seq:
        raise StoreConflict("These ledger entries are not there any more; nothing was removed.")
    tx.execute(
        "INSERT INTO ledger_checkpoint (slot, record) VALUES (1, ?) "
        "ON CONFLICT (slot) DO UPDATE SET record = excluded.record", (record,),
    )
    tx.execute("DELETE FROM receipts WHERE seq <= ?", (upto.seq,))
    return tx.execute("DELETE FROM ledger WHERE seq <= ?", (upto.seq,)).rowcount


def checkpoint(tx: Connection) -> bytes | None:
    """The record that stands for removed entries."""
    row = tx.execute("SELECT record FROM ledger_checkpoint").fetchone()
    return None if row is None else bytes(row[0])


def _read(tx: Connection, where: str, parameters: tuple[Any, ...]) -> list[LedgerRow]:
    return [LedgerRow(*row) for row in tx.execute(_SELECT + where, parameters)]
