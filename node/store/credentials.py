"""Rows of the owner's passwords and tokens for services: a name, what it is for, and the sealed value.

Must not know a value: sealing and opening is node.privacy.credentials's.
"""

from dataclasses import dataclass

from node.store.connection import Connection

__all__ = ["Credential", "every", "put", "remove", "used"]


@dataclass(frozen=True, slots=True)
class Credential:
    """One sealed value under its name."""

    name: str
    purpose: str
    sealed: bytes
    added_ms: int
    used_ms: int | None


def put(tx: Connection, credential: Credential) -> bool:
    """Whether it took the place of an earlier value."""
    replaced = tx.execute("SELECT 1 FROM credentials WHERE name = ?", (credential.name,)).fetchone() is not None
    tx.execute(
        "INSERT INTO credentials (name, purpose, sealed, added_ms, used_ms) VALUES (?, ?, ?, ?, NULL) "
        "ON CONFLICT (name) DO UPDATE SET purpose = excluded.purpose, sealed = excluded.sealed, "
        "added_ms = excluded.added_ms, used_ms = NULL",
        (credential.name, credential.purpose, credential.sealed, credential.added_ms),
    )
    return replaced


def every(tx: Connection) -> list[Credential]:
    """All of them, by name."""
    found = tx.execute("SELECT name, purpose, sealed, added_ms, used_ms FROM credentials ORDER BY name")
    return [Credential(*row) for row in found]


def used(tx: Connection, name: str, now_ms: int) -> None:
    """Note that it was used now."""
    tx.execute("UPDATE credentials SET used_ms = ? WHERE name = ?", (now_ms, name))


def remove(tx: Connection, name: str) -> bool:
    """Whether there was one to remove."""
    return tx.execute("DELETE FROM credentials WHERE name = ?", (name,)).rowcount > 0
