"""Rows of messages between this node and its peers: numbered outbox, numbered inbox, and how far each direction is.

Each (this node, peer) direction counts 1, 2, 3 ... without holes. A row is sent until the peer acknowledges its number;
an expired one leaves its number behind, so that the peer can step over it. Must not know streams, frames or retries.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from node.errors import StoreConflict
from node.store.connection import Connection

__all__ = [
    "FORGOTTEN", "INBOX_ROOM", "InboxRoom", "InboxRow", "Incoming", "Marks", "OutboxRow", "OutboxState", "Receipt",
    "acknowledge", "enqueue", "expire", "find", "give_up", "inbox", "is_full", "mark_read", "mark_sent", "marks",
    "outbox", "peers_waiting", "pending", "receive", "renumber", "sent", "skip", "waiting", "withhold",
]


class OutboxState(StrEnum):
    """How far a message is. Delivered means: durably in the peer's inbox."""

    QUEUED = "queued"
    SENT = "sent"
    DELIVERED = "delivered"
    EXPIRED = "expired"


class Receipt(StrEnum):
    """What became of an incoming message."""

    STORED = "stored"          # new, in order, in the inbox now
    DUPLICATE = "duplicate"    # had it already; acknowledge again
    AHEAD = "ahead"            # a hole lies before it; not stored, ask for the missing ones
    CONFLICT = "conflict"      # another message under a number that is taken: the peer lost its place
    FULL = "full"              # as much of this peer waits unread as may; not stored


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """One message to a peer. An expired one has an empty body."""

    peer_id: str
    seq: int
    message_id: str
    kind: str
    body: str
    state: OutboxState
    created_ms: int
    expires_ms: int
    settled_ms: int | None
    """When it was delivered or expired."""
    reason: str = ""
    """Why it is expired: the code of the refusal, or FORGOTTEN; empty when its time ran out."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """One message as it came from a peer."""

    seq: int
    message_id: str
    kind: str
    body: str
    sent_ms: int


@dataclass(frozen=True, slots=True)
class InboxRow:
    """One message from a peer. arrival numbers all messages of this node in the order they were stored."""

    arrival: int
    peer_id: str
    seq: int
    message_id: str
    kind: str
    body: str
    sent_ms: int
    received_ms: int
    read_ms: int | None


@dataclass(frozen=True, slots=True)
class Marks:
    """High-water marks with one peer; 0 before the first message."""

    allocated: int
    acked: int
    received: int


@dataclass(frozen=True, slots=True)
class InboxRoom:
    """How much of one peer may wait unread. Reading makes room."""

    messages: int
    size_bytes: int


FORGOTTEN = "forgotten"
"""The reason of messages to a peer that was forgotten before they were delivered."""
INBOX_ROOM = InboxRoom(messages=10_000, size_bytes=64 * 2**20)
_ROW_BYTES = 200
"""What a message takes besides its text; an inbox of empty messages is not for nothing."""

_OUTBOX = "SELECT peer_id, seq, message_id, kind, body, state, created_ms, expires_ms, settled_ms, reason FROM outbox "
_INBOX = "SELECT arrival, peer_id, seq, message_id, kind, body, sent_ms, received_ms, read_ms FROM inbox "


def marks(tx: Connection, peer_id: str) -> Marks:
    """How far both directions with this peer are."""
    row = tx.execute("SELECT allocated, acked, received FROM mail_marks WHERE peer_id = ?", (peer_id,)).fetchone()
    return Marks(0, 0, 0) if row is None else Marks(*row)


# ---- outgoing

def enqueue(
    tx: Connection, *, peer_id: str, message_id: str, kind: str, body: str, now_ms: int, expires_ms: int,
) -> OutboxRow:
    """The row under the next number of this peer. The same message_id again: the same row.

    Raises StoreConflict when the message_id was used for something else.
    """
    known = find(tx, message_id)
    if known is not None:
        same_text = known.body == body or known.state is OutboxState.EXPIRED
        if (known.peer_id, known.kind) != (peer_id, kind) or not same_text:
            raise StoreConflict("This message id was used for another message; nothing was queued.")
        return known
    seq = marks(tx, peer_id).allocated + 1
    _ensure_marks(tx, peer_id)
    tx.execute("UPDATE mail_marks SET allocated = ? WHERE peer_id = ?", (seq, peer_id))
    row = OutboxRow(peer_id, seq, message_id, kind, body, OutboxState.QUEUED, now_ms, expires_ms, None)
    tx.execute(
        "INSERT INTO outbox (peer_id, seq, message_id, kind, body, state, created_ms, expires_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (peer_id, seq, message_id, kind, body, row.state, now_ms, expires_ms),
    )
    return row


def pending(tx: Connection, peer_id: str, *, after_seq: int = 0, limit: int = 64) -> list[OutboxRow]:
    """What the peer has not acknowledged, in order, expired ones among them: the peer is told to step over those."""
    first = max(after_seq, marks(tx, peer_id).acked)
    found = tx.execute(_OUTBOX + "WHERE peer_id = ? AND seq > ? ORDER BY seq LIMIT ?", (peer_id, first, limit))
    return [_outbox_row(row) for row in found]


def sent(tx: Connection, peer_id: str) -> int:
    """The newest number that may have gone into a stream: the peer can have no message of ours above it."""
    row = tx.execute(
        "SELECT seq FROM outbox WHERE peer_id = ? AND state <> 'queued' ORDER BY seq DESC LIMIT 1", (peer_id,),
    ).fetchone()
    return max(int(row[0]) if row else 0, marks(tx, peer_id).acked)


def renumber(tx: Connection, peer_id: str, above_seq: int) -> int:
    """Move what the peer has not acknowledged behind a number that it has already; how many messages. It has other ones
    under these numbers: this outbox was put back from a copy. One that it has nevertheless it knows by its id.
    """
    known = marks(tx, peer_id)
    step = above_seq - known.acked
    if step <= 0:
        return 0
    rows = tx.execute("SELECT seq FROM outbox WHERE peer_id = ? AND seq > ?", (peer_id, known.acked)).fetchall()
    for (seq,) in sorted(rows, reverse=True):  # from the top down, no number is there twice
        tx.execute("UPDATE outbox SET seq = ? WHERE peer_id = ? AND seq = ?", (seq + step, peer_id, seq))
    _ensure_marks(tx, peer_id)
    tx.execute(
        "UPDATE mail_marks SET allocated = allocated + ?, acked = ? WHERE peer_id = ?", (step, above_seq, peer_id))
    return len(rows)


def mark_sent(tx: Connection, peer_id: str, seq: int) -> None:
    """Note that the message goes into a stream; before it does. Says nothing about arrival."""
    tx.execute(
        "UPDATE outbox SET state = 'sent' WHERE peer_id = ? AND seq = ? AND state = 'queued'", (peer_id, seq),
    )


def acknowledge(tx: Connection, peer_id: str, upto_seq: int, now_ms: int) -> list[OutboxRow]:
    """The messages that are delivered through this acknowledgement and were not before; empty for a repeated one.

    Raises StoreConflict when the peer claims numbers that were never given out.
    """
    known = marks(tx, peer_id)
    if upto_seq > known.allocated:
        raise StoreConflict(f"The peer acknowledged message {upto_seq} and only {known.allocated} exist.")
    if upto_seq <= known.acked:
        return []
    between = (peer_id, known.acked, upto_seq)
    rows = tx.execute(
        _OUTBOX + "WHERE peer_id = ? AND seq > ? AND seq <= ? AND state IN ('queued', 'sent') ORDER BY seq", between,
    ).fetchall()
    tx.execute(
        "UPDATE outbox SET state = 'delivered', settled_ms = ? "
        "WHERE peer_id = ? AND seq > ? AND seq <= ? AND state IN ('queued', 'sent')", (now_ms, *between),
    )
    tx.execute("UPDATE mail_marks SET acked = ? WHERE peer_id = ?", (upto_seq, peer_id))
    return [_outbox_row((*row[:5], OutboxState.DELIVERED, *row[6:8], now_ms, "")) for row in rows]


def expire(tx: Connection, now_ms: int, settled_ms: int | None = None) -> list[OutboxRow]:
    """The messages whose time ran out by now_ms. Their text is erased, their numbers stay; the owner sees them as
    expired, at settled_ms; None: now_ms."""
    settled_ms = now_ms if settled_ms is None else settled_ms
    rows = tx.execute(
        _OUTBOX + "WHERE state IN ('queued', 'sent') AND expires_ms <= ? ORDER BY peer_id, seq", (now_ms,),
    ).fetchall()
    tx.execute(
        "UPDATE outbox SET state = 'expired', body = '', settled_ms = ? "
        "WHERE state IN ('queued', 'sent') AND expires_ms <= ?", (settled_ms, now_ms),
    )
    return [_outbox_row((*row[:4], "", OutboxState.EXPIRED, *row[6:8], settled_ms, "")) for row in rows]


def withhold(tx: Connection, peer_id: str, seq: int, now_ms: int, reason: str) -> None:
    """One message that may not leave after all: its text is erased, its number stays, and its row says why."""
    tx.execute(
        "UPDATE outbox SET state = 'expired', body = '', settled_ms = ?, reason = ? "
        "WHERE peer_id = ? AND seq = ? AND state IN ('queued', 'sent')", (now_ms, reason, peer_id, seq),
    )


def give_up(tx: Connection, peer_id: str, now_ms: int) -> int:
    """How many messages to a peer that was forgotten will never be sent; their rows say so."""
    return tx.execute(
        "UPDATE outbox SET state = 'expired', body = '', settled_ms = ?, reason = ? "
        "WHERE peer_id = ? AND state IN ('queued', 'sent')", (now_ms, FORGOTTEN, peer_id),
    ).rowcount


def find(tx: Connection, message_id: str) -> OutboxRow | None:
    """The outgoing message with this id."""
    row = tx.execute(_OUTBOX + "WHERE message_id = ?", (message_id,)).fetchone()
    return None if row is None else _outbox_row(row)


def outbox(tx: Connection, *, limit: int = 100) -> list[OutboxRow]:
    """The newest outgoing messages first, in whatever state."""
    return [_outbox_row(row) for row in tx.execute(_OUTBOX + "ORDER BY created_ms DESC, seq DESC LIMIT ?", (limit,))]


def waiting(tx: Connection) -> dict[str, int]:
    """Per peer, how many messages are not delivered and not expired."""
    rows = tx.execute("SELECT peer_id, count(*) FROM outbox WHERE state IN ('queued', 'sent') GROUP BY peer_id")
    return {str(peer): int(count) for peer, count in rows}


def peers_waiting(tx: Connection) -> list[str]:
    """Peers that something must still be told: undelivered messages, or numbers to step over."""
    rows = tx.execute("SELECT peer_id FROM mail_marks WHERE acked < allocated ORDER BY peer_id")
    return [str(row[0]) for row in rows]


# ---- incoming

def receive(
    tx: Connection, peer_id: str, message: Incoming, now_ms: int, room: InboxRoom = INBOX_ROOM,
) -> Receipt:
    """Store one incoming message if it is the next of this peer. Acknowledge marks().received only after the commit."""
    received = marks(tx, peer_id).received
    if message.seq > received + 1:
        return Receipt.AHEAD
    if message.seq <= received:
        row = tx.execute(
            "SELECT message_id FROM inbox WHERE peer_id = ? AND seq = ?", (peer_id, message.seq),
        ).fetchone()
        return Receipt.DUPLICATE if row is None or row[0] == message.message_id else Receipt.CONFLICT
    if is_full(tx, peer_id, room):
        return Receipt.FULL
    _advance(tx, peer_id, message.seq)
    stored = tx.execute(
        "INSERT INTO inbox (peer_id, seq, message_id, kind, body, sent_ms, received_ms) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (peer_id, message_id) DO NOTHING",
        (peer_id, message.seq, message.message_id, message.kind, message.body, message.sent_ms, now_ms),
    ).rowcount
    if not stored:
        return Receipt.DUPLICATE
    tx.execute(
        "UPDATE mail_marks SET unread = unread + 1, unread_bytes = unread_bytes + ? WHERE peer_id = ?",
        (len(message.body.encode()) + _ROW_BYTES, peer_id),
    )
    return Receipt.STORED


def is_full(tx: Connection, peer_id: str, room: InboxRoom = INBOX_ROOM) -> bool:
    """Whether as much of this peer waits unread as may. The last message taken may go beyond the bytes by its size."""
    row = tx.execute("SELECT unread, unread_bytes FROM mail_marks WHERE peer_id = ?", (peer_id,)).fetchone()
    return row is not None and (row[0] >= room.messages or row[1] >= room.size_bytes)


def skip(tx: Connection, peer_id: str, upto_seq: int) -> int:
    """The new mark after the peer said that its messages up to upto_seq are gone; never goes back."""
    received = marks(tx, peer_id).received
    if upto_seq > received:
        _advance(tx, peer_id, upto_seq)
    return max(received, upto_seq)


def inbox(
    tx: Connection, *, limit: int = 100, before_arrival: int | None = None, unread: bool = False,
) -> list[InboxRow]:
    """The newest incoming messages first; unread: only those not read yet."""
    where = "WHERE arrival < ? " + ("AND read_ms IS NULL " if unread else "")
    top = before_arrival if before_arrival is not None else 2**62
    return [InboxRow(*row) for row in tx.execute(_INBOX + where + "ORDER BY arrival DESC LIMIT ?", (top, limit))]


def mark_read(tx: Connection, upto_arrival: int, now_ms: int) -> int:
    """How many messages up to this arrival became read now."""
    changed = tx.execute(
        "UPDATE inbox SET read_ms = ? WHERE arrival <= ? AND read_ms IS NULL", (now_ms, upto_arrival),
    ).rowcount
    if changed:
        tx.execute(
            """UPDATE mail_marks SET (unread, unread_bytes) = (
                SELECT count(*), coalesce(sum(octet_length(body) + ?), 0) FROM inbox
                WHERE inbox.peer_id = mail_marks.peer_id AND read_ms IS NULL)""", (_ROW_BYTES,),
        )
    return changed


def _ensure_marks(tx: Connection, peer_id: str) -> None:
    tx.execute("INSERT INTO mail_marks (peer_id) VALUES (?) ON CONFLICT DO NOTHING", (peer_id,))


def _advance(tx: Connection, peer_id: str, received: int) -> None:
    _ensure_marks(tx, peer_id)
    tx.execute("UPDATE mail_marks SET received = ? WHERE peer_id = ?", (received, peer_id))


def _outbox_row(row: tuple[Any, ...]) -> OutboxRow:
    peer_id, seq, message_id, kind, body, state, created_ms, expires_ms, settled_ms, reason = row
    return OutboxRow(
        peer_id, seq, message_id, kind, body, OutboxState(state), created_ms, expires_ms, settled_ms, reason)
