"""The one open pairing window: its secret, its tries left, its end. Durable, so that a crash gives no new tries.

Must not know how a secret is proved or who tries.
"""

from dataclasses import dataclass
from typing import Literal

from node.store.connection import Connection

__all__ = ["Method", "Window", "burn_try", "close", "current", "open_window"]

Method = Literal["link", "code"]


@dataclass(frozen=True, slots=True)
class Window:
    """An open window. secret: 16 bytes for a link, the code's UTF-8 text for a code."""

    method: Method
    secret: bytes
    tries_left: int
    opened_ms: int
    expires_ms: int


def open_window(tx: Connection, method: Method, secret: bytes, *, tries: int, now_ms: int, expires_ms: int) -> Window:
    """A new window in place of the old one, whose secret is void from now on."""
    close(tx)
    tx.execute(
        "INSERT INTO pairing_window (slot, method, secret, tries_left, opened_ms, expires_ms) "
        "VALUES (1, ?, ?, ?, ?, ?)",
        (method, secret, tries, now_ms, expires_ms),
    )
    return Window(method, secret, tries, now_ms, expires_ms)


def current(tx: Connection, now_ms: int) -> Window | None:
    """The window if one is open now: not used up, not run out, and the clock not set back before its start."""
    row = tx.execute("SELECT method, secret, tries_left, opened_ms, expires_ms FROM pairing_window").fetchone()
    window = None if row is None else Window(*row)
    if window is None or window.tries_left <= 0 or not window.opened_ms <= now_ms < window.expires_ms:
        return None
    return window


def burn_try(tx: Connection, now_ms: int) -> Window | None:
    """The window with one try fewer, for the attempt that begins now; None when no attempt is allowed.

    Commit this before the first byte of an answer: a guess that crashes the node must cost a try, too.
    """
    window = current(tx, now_ms)
    if window is None:
        return None
    tx.execute("UPDATE pairing_window SET tries_left = tries_left - 1")
    return Window(window.method, window.secret, window.tries_left - 1, window.opened_ms, window.expires_ms)


def close(tx: Connection) -> bool:
    """Whether a window was there; its secret is erased."""
    return tx.execute("DELETE FROM pairing_window").rowcount > 0
