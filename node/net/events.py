"""What the network tells its owner: plain facts, handed to a callback in the order they happened.

Must not import libp2p; must not know who listens.
"""

from dataclasses import dataclass

from protocol.frames.link import IDLE, Hello, Load, ModelAdvert

__all__ = [
    "AddressesTold", "Connected", "Disconnected", "GrantReceived", "LinkDown", "LinkUp", "ModelsAdvertised", "NetEvent",
    "Refused", "Rerouted",
]


@dataclass(frozen=True, slots=True)
class Connected:
    """A connection to a proven peer stands. stranger: it is here through an open pairing window only."""

    peer_id: str
    address: str
    dialled: bool
    stranger: bool


@dataclass(frozen=True, slots=True)
class Rerouted:
    """A peer that was connected through a relay is so directly now; new streams take the direct connection."""

    peer_id: str
    address: str
    dialled: bool


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
class NotServed:
    """A peer asked for a protocol that is not served to it. protocol: the name as it asked, "?" for bytes that are no
    name."""

    peer_id: str
    protocol: str


@dataclass(frozen=True, slots=True)
class LinkUp:
    """Both sides said hello and an echo came back: the peer is present. hello is the frame it sent; protocols and
    capabilities are what both sides can do."""

    peer_id: str
    hello: Hello
    protocols: frozenset[str]
    capabilities: frozenset[str]
    address: str
    rtt_ms: float
    dialled: bool = True
    """Whether this side made the connection: only then is its address one to call again."""


@dataclass(frozen=True, slots=True)
class ModelsAdvertised:
    """A present peer serves these models now, instead of those in its hello, and is so busy."""

    peer_id: str
    models: tuple[ModelAdvert, ...]
    load: Load = IDLE


@dataclass(frozen=True, slots=True)
class GrantReceived:
    """A present peer decided anew what this node may do there. The grant is not verified yet; empty for nothing."""

    peer_id: str
    grant: bytes


@dataclass(frozen=True, slots=True)
class AddressesTold:
    """A present peer says where it can be reached (signed, not verified yet), and where it sees this node."""

    peer_id: str
    addresses: bytes
    seen_at: str | None


@dataclass(frozen=True, slots=True)
class LinkDown:
    """A peer that was present is so no longer. reason: silent, lost, closed, protocol, left (we ended it), or bye:CODE
    with the code the peer gave (shutdown, offline, forgotten ...)."""

    peer_id: str
    reason: str


NetEvent = (
    Connected | Disconnected | Refused | LinkUp | LinkDown | ModelsAdvertised | GrantReceived | Rerouted | NotServed
    | AddressesTold
)
