"""What the network tells its owner: plain facts, handed to a callback in the order they happened.

Must not import libp2p; must not know who listens.
"""

from dataclasses import dataclass
from typing import Any

__all__ = ["Connected", "Disconnected", "LinkDown", "LinkUp", "NetEvent", "Refused"]


@dataclass(frozen=True, slots=True)
class Connected:
    """A connection to a proven peer stands. stranger: it is here through an open pairing window only."""

    peer_id: str
    address: str
    dialled: bool
    stranger: bool


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The last connection to this peer is gone, and why."""

    peer_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """An unknown peer proved its key and was turned away before any stream."""

    peer_id: str
    address: str


@dataclass(frozen=True, slots=True)
class LinkUp:
    """Both sides said hello and the beats run: the peer is present. hello is the frame it sent."""

    peer_id: str
    hello: Any
    address: str
    rtt_ms: float


@dataclass(frozen=True, slots=True)
class LinkDown:
    """A peer that was present is so no longer, and why in words."""

    peer_id: str
    reason: str


NetEvent = Connected | Disconnected | Refused | LinkUp | LinkDown
