"""Rows of folders that the owner shares with named peers for search. Must not look into a folder."""

from dataclasses import dataclass

from node.store.connection import Connection

__all__ = ["Share", "add", "every", "folders_for", "remove", "remove_peer"]


@dataclass(frozen=True, slots=True)
class Share:
    """One folder and the peers that may search it."""

    folder: str
    peer_ids: tuple[str, ...]
    added_ms: int
    """When it was first shared."""


def add(tx: Connection, folder: str, peer_id: str, now_ms: int) -> bool:
    """Whether this folder is newly shared with this peer."""
    return tx.execute(
        "INSERT INTO shares (folder, peer_id, added_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (folder, peer_id, now_ms),
    ).rowcount > 0


def every(tx: Connection) -> list[Share]:
    """All shared folders, by path."""
    found: dict[str, list[tuple[str, int]]] = {}
    rows = tx.execute("SELECT folder, peer_id, added_ms FROM shares ORDER BY folder, peer_id")
    for folder, peer_id, added_ms in rows:
        found.setdefault(str(folder), []).append((str(peer_id), int(added_ms)))
    return [
        Share(folder, tuple(peer for peer, _ in given), min(added for _, added in given))
        for folder, given in found.items()
    ]


def folders_for(tx: Connection, peer_id: str) -> list[str]:
    """The folders that this peer may search."""
    rows = tx.execute("SELECT folder FROM shares WHERE peer_id = ? ORDER BY folder", (peer_id,))
    return [str(row[0]) for row in rows]


def remove(tx: Connection, folder: str, peer_id: str | None = None) -> int:
    """How many peers lost this folder: the one named, or all."""
    if peer_id is None:
        return tx.execute("DELETE FROM shares WHERE folder = ?", (folder,)).rowcount
    return tx.execute("DELETE FROM shares WHERE folder = ? AND peer_id = ?", (folder, peer_id)).rowcount


def remove_peer(tx: Connection, peer_id: str) -> int:
    """How many folders this peer lost."""
    return tx.execute("DELETE FROM shares WHERE peer_id = ?", (peer_id,)).rowcount
