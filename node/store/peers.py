"""Rows of paired peers: name, trust both ways, where they were last reached. Grants are in grants.py.

Trust is plain text here; what a level means is node.identity.trust's business.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from node.errors import NameTaken, StoreConflict
from node.store.connection import Connection

__all__ = [
    "ADDRESS_LIMIT", "Peer", "add", "by_name", "every", "get", "located", "remove", "rename", "seen", "set_trust",
]

ADDRESS_LIMIT = 16

_SELECT = "SELECT peer_id, name, trust, their_trust, addresses, paired_ms, seen_ms FROM peers "


@dataclass(frozen=True, slots=True)
class Peer:
    """One paired peer."""

    peer_id: str
    name: str
    trust: str
    """What it is to this device's owner: self, home, friend or none."""
    their_trust: str
    """What this device is to its owner, as it told us."""
    addresses: tuple[str, ...]
    """Where it was reached, the best first."""
    paired_ms: int
    seen_ms: int | None


def add(tx: Connection, peer: Peer) -> None:
    """Store a newly paired peer; pairing again replaces its row. Raises NameTaken when another peer has the name."""
    holder = by_name(tx, peer.name)
    if holder is not None and holder.peer_id != peer.peer_id:
        raise NameTaken(f"Another paired peer is already called {holder.name}.")
    tx.execute(
        "INSERT INTO peers (peer_id, name, trust, their_trust, addresses, paired_ms, seen_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (peer_id) DO UPDATE SET name = excluded.name, trust = excluded.trust, "
        "their_trust = excluded.their_trust, addresses = excluded.addresses, paired_ms = excluded.paired_ms, "
        "seen_ms = excluded.seen_ms",
        (
            peer.peer_id, peer.name, peer.trust, peer.their_trust, json.dumps(peer.addresses[:ADDRESS_LIMIT]),
            peer.paired_ms, peer.seen_ms,
        ),
    )


def get(tx: Connection, peer_id: str) -> Peer | None:
    """The peer with exactly this id; None when it is not paired."""
    row = tx.execute(_SELECT + "WHERE peer_id = ?", (peer_id,)).fetchone()
    return None if row is None else _peer(row)


def by_name(tx: Connection, name: str) -> Peer | None:
    """The peer with this name, letter case aside."""
    row = tx.execute(_SELECT + "WHERE name = ?", (name,)).fetchone()
    return None if row is None else _peer(row)


def every(tx: Connection) -> list[Peer]:
    """All paired peers, by name."""
    return [_peer(row) for row in tx.execute(_SELECT + "ORDER BY name")]


def set_trust(tx: Connection, peer_id: str, trust: str) -> None:
    """Change what the peer is to us. Raises StoreConflict when it is not paired."""
    _one(tx.execute("UPDATE peers SET trust = ? WHERE peer_id = ?", (trust, peer_id)).rowcount)


def rename(tx: Connection, peer_id: str, name: str) -> None:
    """Call the peer something else. Raises NameTaken, or StoreConflict when it is not paired."""
    holder = by_name(tx, name)
    if holder is not None and holder.peer_id != peer_id:
        raise NameTaken(f"Another paired peer is already called {holder.name}.")
    _one(tx.execute("UPDATE peers SET name = ? WHERE peer_id = ?", (name, peer_id)).rowcount)


def seen(
    tx: Connection, peer_id: str, addresses: Sequence[str], now_ms: int, their_trust: str | None = None,
) -> None:
    """Note that the peer was reached now, best address first; older addresses stay behind them, up to the limit.
    their_trust: what it says that we are to it; None: nothing new.

    A peer that was forgotten meanwhile is left forgotten.
    """
    peer = get(tx, peer_id)
    if peer is None:
        return
    kept = tuple(dict.fromkeys((*addresses, *peer.addresses)))[:ADDRESS_LIMIT]
    tx.execute(
        "UPDATE peers SET addresses = ?, seen_ms = ?, their_trust = coalesce(?, their_trust) WHERE peer_id = ?",
        (json.dumps(kept), now_ms, their_trust, peer_id),
    )


def located(tx: Connection, peer_id: str, addresses: Sequence[str]) -> Peer | None:
    """Note where the peer says that it can be reached: these come first, and older ones stay behind them, up to the
    limit. The changed row comes back; None when nothing changed, or when the peer was forgotten meanwhile."""
    peer = get(tx, peer_id)
    if peer is None:
        return None
    kept = tuple(dict.fromkeys((*addresses, *peer.addresses)))[:ADDRESS_LIMIT]
    if kept == peer.addresses:
        return None
    tx.execute("UPDATE peers SET addresses = ? WHERE peer_id = ?", (json.dumps(kept), peer_id))
    return replace(peer, addresses=kept)


def remove(tx: Connection, peer_id: str) -> bool:
    """Whether there was a row to remove."""
    return tx.execute("DELETE FROM peers WHERE peer_id = ?", (peer_id,)).rowcount > 0


def _one(rowcount: int) -> None:
    if rowcount != 1:
        raise StoreConflict("This peer is not paired.", hint="See who is paired: kith peers")


def _peer(row: tuple[Any, ...]) -> Peer:
    peer_id, name, trust, their_trust, addresses, paired_ms, seen_ms = row
    return Peer(peer_id, name, trust, their_trust, tuple(json.loads(addresses)), paired_ms, seen_ms)
