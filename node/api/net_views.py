"""What the API tells about reachability: how peers reach this node and this node them, and what to do about it."""

from typing import Protocol

import msgspec

__all__ = ["NetPeerView", "NetRelayView", "NetView", "Reachability", "TurnedAwayView"]


class NetRelayView(msgspec.Struct, frozen=True, kw_only=True):
    """A peer that carries for this node. place: others can call this node through it now; problem: why not."""

    name: str
    peer_id: str
    place: bool
    problem: str


class NetPeerView(msgspec.Struct, frozen=True, kw_only=True):
    """How one paired peer is reached. route: lan, direct, "relayed via NAME", or empty while it is away.

    failure: why the last call failed. direct_problem: why the last try to do without the relay failed.
    """

    name: str
    peer_id: str
    here: bool
    route: str
    address: str
    rtt_ms: float | None
    failure: str
    direct_problem: str
    addresses: list[str]


class TurnedAwayView(msgspec.Struct, frozen=True, kw_only=True):
    """What was not let in since the start. calls: connections that came too fast; strangers: callers that nobody knows;
    streams: those a peer opened too fast; lately: whether calls came too fast in the last minute."""

    calls: int = 0
    strangers: int = 0
    streams: int = 0
    lately: bool = False


class NetView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about the ways to and from this node. advice: what to do next, the most important first."""

    schema: int = 1
    mode: str
    listening: list[str]
    told: list[str]
    """What peers are told: these addresses lead here."""
    stated: list[str]
    """net.announce, those of them that make sense."""
    mapped: list[str]
    """Addresses of the router that lead here."""
    mapping: str
    """How it stands with the router: off, asking, or what it said."""
    discovery: str
    seen_at: list[str]
    """Where peers see calls of this node come from."""
    relays: list[NetRelayView]
    carrying: bool
    """Whether this node is a relay for peers that were granted it."""
    places: list[str]
    """Peers that hold a place here."""
    circuits: int
    peers: list[NetPeerView]
    advice: list[str]
    turned_away: TurnedAwayView = TurnedAwayView()


class Reachability(Protocol):
    """The ways to and from this node."""

    def view(self) -> NetView:
        """As they are now; never waits."""
        ...
