"""The one open pairing window: its secrets, its tries left, its end. Durable, so that a crash gives no new tries.

Must not know how a secret is proved or who tries.
"""

from dataclasses import dataclass, field

from node.store.connection import Connection

__all__ = ["Window", "burn_try", "close", "current", "open_window", "spend"]


@dataclass(frozen=True, slots=True)
class Window:
    """An open window: a spoken code, a scanned secret, or both; what the other side will be to the owner."""

    code: str | None = field(repr=False)
    secret: bytes | None = field(repr=False)
    trust: str
    tries_left: int
    opened_ms: int
    expires_ms: int


def open_window(tx: Connection, window: Window) -> None:
    """Put this window in place of the old one, whose secrets are void from now on."""
    close(tx)
    tx.execute(
        "INSERT INTO pairing_window (slot, code, secret, trust, tries_left, opened_ms, expires_ms) "
        "VALUES (1, ?, ?, ?, ?, ?, ?)",
        (window.code, window.secret, window.trust, window.tries_left, window.opened_ms, window.expires_ms),
    )


def current(tx: Connection, now_ms: int) -> Window | None:
    """The window if one is open now: not used up, not run out, and the clock not set back before its start."""
    row = tx.execute("SELECT code, secret, trust, tries_left, opened_ms, expires_ms FROM pairing_window").fetchone()
    window = None if row is None else Window(*row)
    if window is None or window.tries_left <= 0 or not window.opened_ms <= now_ms < window.expires_ms:
        return None
    return window


def burn_try(tx: Connection, now_ms: int, window: Window) -> int | None:
    """How many tries are left after the attempt that begins now; None when it is not allowed, or not of this window.

    Commit this before the first byte of an answer: a guess that crashes the node must cost a try, too.
    """
    found = current(tx, now_ms)
    if found is None or (found.code, found.secret) != (window.code, window.secret):
        return None
    tx.execute("UPDATE pairing_window SET tries_left = tries_left - 1")
    return found.tries_left - 1


def spend(tx: Connection, window: Window) -> bool:
    """Whether this window's secrets were still unspent; they are spent now, for one success is all they are good for.

    Says nothing about tries and time: the attempt that succeeds burned its try while there was one.
    """
    return tx.execute(
        "DELETE FROM pairing_window WHERE code IS ? AND secret IS ?", (window.code, window.secret),
    ).rowcount > 0


def close(tx: Connection) -> bool:
    """Whether a window was there; its secrets are erased."""
    return tx.execute("DELETE FROM pairing_window").rowcount > 0
