"""Small facts the node keeps about itself, by key. The owner's choices live in the configuration file, not here.

Must not know what a key means.
"""

from node.store.connection import Connection

__all__ = ["delete", "get", "items", "put"]


def get(tx: Connection, key: str) -> str | None:
    """The value under key; None when there is none."""
    row = tx.execute("SELECT value FROM settings WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def put(tx: Connection, key: str, value: str) -> None:
    """Keep value under key in place of what was there."""
    tx.execute(
        "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def delete(tx: Connection, key: str) -> bool:
    """Whether there was a value under key to remove."""
    return tx.execute("DELETE FROM settings WHERE key = ?", (key,)).rowcount > 0


def items(tx: Connection, prefix: str = "") -> dict[str, str]:
    """Every key that starts with prefix, and its value, in key order."""
    rows = tx.execute("SELECT key, value FROM settings WHERE substr(key, 1, ?) = ? ORDER BY key", (len(prefix), prefix))
    return {str(key): str(value) for key, value in rows}
