"""Every limit of the network in one place: counts, sizes and times, each with its reason.

Pure data; must not import libp2p or trio. Tests pass smaller ones, no configuration file can raise them.
"""

from dataclasses import dataclass, field

__all__ = ["LinkTiming", "MuxLimits", "NetLimits", "PaceLimits", "Rate", "RelayLimits"]

_KIB = 1 << 10
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class MuxLimits:
    """What one connection may hold. Worst case in memory: max_inbound_streams * 256 KiB + growth_pool_bytes = 20
    MiB."""

    max_window_bytes: int = 1 * _MIB
    """One stream's receive window may grow to this: 50 MB/s at 20 ms of round trip."""
    growth_pool_bytes: int = 4 * _MIB
    """All streams of one connection together may grow by this over the 256 KiB that the specification gives each."""
    max_inbound_streams: int = 64
    """Streams that the peer may have open; the next one is reset."""
    max_control_frames: int = 4000
    """Frames without payload (pings, opened streams, frames to streams that are gone) per control_period_s."""
    control_period_s: float = 10.0
    outbox_bytes: int = 256 * _KIB
    """Bytes waiting for the socket; a writer waits above it."""
    max_queued_frames: int = 8192
    """Frames waiting for the socket; a peer that makes us answer and never reads is closed at this."""
    write_stall_s: float = 15.0
    """A socket that takes nothing for this long is dead."""
    ping_every_s: float = 30.0
    """How often the round trip is measured. A connection that brings nothing at all for this long after a ping is dead;
    a link notices far sooner, this is for connections that no link watches any more."""


@dataclass(frozen=True, slots=True)
class RelayLimits:
    """What this node carries between paired peers, and how it uses theirs."""

    max_reservations: int = 16
    """Peers that may be called through this node at a time."""
    reservation_s: int = 3600
    """How long a place is kept; its holder asks again after half of it."""
    max_circuits: int = 32
    """Circuits in all."""
    max_circuits_per_peer: int = 4
    """Circuits in which one peer is an end."""
    circuit_s: int = 2 * 3600
    """A circuit is cut after this; the two ends make a new one."""
    circuit_bytes: int = 4 * 1024 * _MIB
    """Both directions of one circuit together."""
    idle_s: float = 120.0
    """A circuit that carries nothing for this long is dead: the ends ping each other every 30 s."""
    review_s: float = 0.25
    """How often a circuit that carries nothing is checked against the grants of its ends."""
    message_s: float = 4.0
    """For one message of the exchange before a circuit stands."""
    max_used: int = 3
    """Relays that this node keeps a place at, and tries for one call."""
    max_called: int = 16
    """Circuits that come in to this node at a time."""
    after_direct_s: float = 0.3
    """How long the known addresses are tried alone before relays are."""
    improve_after_s: tuple[float, ...] = (0.6, 2.0, 5.0, 15.0, 60.0, 300.0)
    """Pauses before the tries to reach a relayed peer directly; the last one repeats."""
    punch_addresses: int = 4
    """Addresses told, and dialled, when both sides dial at once."""
    punch_s: float = 4.0
    """For one such try: the kernel repeats a call that met a closed door after 1 s, and 2 s later."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and so many a second in the long run."""

    burst: int
    per_s: float


@dataclass(frozen=True, slots=True)
class PaceLimits:
    """How often others may make this node work. A handshake costs a slow machine 10 ms of CPU, a call without one 1 ms:
    all callers together take about a fifth of a core at most. Paired peers get back what their calls took."""

    calls: Rate = Rate(200, 50)
    """Connections that are taken, from each source (an IPv4 address, a /64 of IPv6)."""
    calls_together: Rate = Rate(600, 100)
    proofs: Rate = Rate(40, 4)
    """Handshakes begun. A pairing needs one; a device that was forgotten calls once in 5 s."""
    proofs_together: Rate = Rate(100, 10)
    known: Rate = Rate(60, 2)
    """Calls of one paired peer that cost it nothing; those beyond count as a stranger's. A link that breaks again and
    again is called up twice a second at most."""
    streams: Rate = Rate(400, 40)
    """Streams that one peer opens, for all services together; a message, an answer or a search is one."""


@dataclass(frozen=True, slots=True)
class NetLimits:
    """What the whole node may hold, and how long it waits for anyone."""

    max_connections: int = 200
    """Connections with a proven, allowed peer at the other end."""
    max_per_peer: int = 4
    """Connections of one peer; the oldest is closed at once when there is one more."""
    max_waiting: int = 64
    """Inbound connections that have not proven who they are; the oldest is dropped when there is one more."""
    max_waiting_per_ip: int = 32
    upgrade_s: float = 3.0
    """From accepted socket to proven peer and agreed multiplexer."""
    negotiate_s: float = 5.0
    """To agree on the protocol of one stream."""
    dial_s: float = 4.0
    """One address: connect and upgrade. A frozen peer takes the connection and then says nothing."""
    stranger_idle_s: float = 10.0
    """A stranger in an open pairing window who opens no pairing stream in this time makes room for another."""
    write_stall_s: float = 10.0
    """A stream whose peer grants no credit for this long is reset."""
    linger_s: float = 5.0
    """After a handler returned: how long the peer may take to end its side."""
    close_s: float = 2.0
    """All connections together, at the end."""
    max_per_stranger: int = 2
    """Connections of one stranger: the one in use, and one that it dialled at the same moment."""
    stagger_s: float = 0.2
    """Between calls of a stranger's addresses; those of a paired peer are all called at once."""
    race_s: float = 5.0
    """Two connections born this close together are both sides dialling at once; later ones are a reconnect."""
    retire_s: float = 5.0
    """How often a relayed connection that a direct one replaced is looked at: it is closed when its streams are
    over."""
    mux: MuxLimits = field(default_factory=MuxLimits)
    relay: RelayLimits = field(default_factory=RelayLimits)
    pace: PaceLimits = field(default_factory=PaceLimits)


@dataclass(frozen=True, slots=True)
class LinkTiming:
    """How a link is kept. Beats and the allowed silence are protocol.limits' matter."""

    connect_s: float = 4.0
    """All addresses of a peer together."""
    open_s: float = 3.0
    """To open the link's stream on a connection that stands."""
    accept_s: float = 3.0
    """How long the side that was dialled waits for the dialler to open the link before it does so itself."""
    send_s: float = 5.0
    """One frame; a link whose frames do not leave is silent anyway."""
    leave_s: float = 1.0
    """For goodbyes."""
    first_s: float = 0.1
    factor: float = 1.6
    cap_s: float = 0.5
    """The longest pause between attempts right after a peer was lost ..."""
    cap_share: float = 0.1
    """... growing to this share of the time it has been away ..."""
    ceiling_s: float = 60.0
    """... and never above this."""
    refused_s: float = 5.0
    """The shortest pause after a peer that turned us away."""
