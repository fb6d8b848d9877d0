"""Rows of signed grants: what we gave each peer and what each peer gave us. A revoked epoch stays, so it never returns.

The blobs are protocol.grants's; this module must not decode them.
"""

from dataclasses import dataclass
from typing import Any, Literal

from node.errors import StoreConflict
from node.store.connection import Connection

__all__ = ["Direction", "StoredGrant", "current", "drop_received", "every", "put", "reserve_epoch", "revoke"]

Direction = Literal["issued", "received"]

_SELECT = "SELECT peer_id, direction, epoch, blob, stored_ms, revoked_ms FROM grants "


@dataclass(frozen=True, slots=True)
class StoredGrant:
    """One grant as it lies in the database."""

    peer_id: str
    direction: Direction
    epoch: int
    blob: bytes
    stored_ms: int
    revoked_ms: int | None


def reserve_epoch(tx: Connection) -> int:
    """The number for the next grant to anybody. Commit before the grant is shown: it is never given out again, so a
    grant that was signed for a pairing that then failed stays below every later one.
    """
    tx.execute(
        "INSERT INTO grant_epoch (slot, last) VALUES (1, 1) ON CONFLICT (slot) DO UPDATE SET last = last + 1",
    )
    row = tx.execute("SELECT last FROM grant_epoch").fetchone()
    assert row is not None
    return int(row[0])


def put(tx: Connection, peer_id: str, direction: Direction, epoch: int, blob: bytes, now_ms: int) -> None:
    """Store a grant and revoke the older ones of its direction. The same grant again changes nothing.

    Raises StoreConflict for an epoch that is not above the last, unless it is byte for byte the stored one.
    """
    row = tx.execute(
        "SELECT epoch, blob FROM grants WHERE peer_id = ? AND direction = ? ORDER BY epoch DESC LIMIT 1",
        (peer_id, direction),
    ).fetchone()
    if row is not None and epoch <= row[0]:
        if epoch == row[0] and blob == row[1]:
            return
        raise StoreConflict(f"Grant {epoch} comes after grant {row[0]}; an older one is not taken back.")
    revoke(tx, peer_id, now_ms, direction)
    tx.execute(
        "INSERT INTO grants (peer_id, direction, epoch, blob, stored_ms) VALUES (?, ?, ?, ?, ?)",
        (peer_id, direction, epoch, blob, now_ms),
    )


def current(tx: Connection, peer_id: str, direction: Direction) -> StoredGrant | None:
    """The newest grant of this direction if it is not revoked; None means: nothing is granted."""
    row = tx.execute(
        _SELECT + "WHERE peer_id = ? AND direction = ? "
        "ORDER BY epoch DESC LIMIT 1", (peer_id, direction),
    ).fetchone()
    grant = None if row is None else _grant(row)
    return None if grant is None or grant.revoked_ms is not None else grant


def every(tx: Connection, peer_id: str) -> list[StoredGrant]:
    """All grants to and from a peer, the newest first."""
    rows = tx.execute(
        _SELECT + "WHERE peer_id = ? ORDER BY stored_ms DESC, epoch DESC",
        (peer_id,),
    )
    return [_grant(row) for row in rows]


def revoke(tx: Connection, peer_id: str, now_ms: int, direction: Direction | None = None) -> int:
    """How many live grants ended now: those of one direction, or of both."""
    return tx.execute(
        "UPDATE grants SET revoked_ms = ? WHERE peer_id = ? AND revoked_ms IS NULL AND direction IN (?, ?)",
        (now_ms, peer_id, direction or "issued", direction or "received"),
    ).rowcount


def drop_received(tx: Connection, peer_id: str) -> int:
    """How many grants of the peer were removed: it is paired anew, and may have started counting anew."""
    return tx.execute("DELETE FROM grants WHERE peer_id = ? AND direction = 'received'", (peer_id,)).rowcount


def _grant(row: tuple[Any, ...]) -> StoredGrant:
    return StoredGrant(*row)
