"""The network as the mode allows it: loaded late, listening where the owner said, off without a trace when offline.

Owns the libp2p network and the links to known peers; hands out guarded channels and nothing else. Must not know what
is sent.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import trio

from node.clock import Entropy
from node.counting import counted
from node.daemon.lan import may_reach
from node.daemon.own_addresses import hosts_to_add, is_everywhere
from node.errors import PeerUnreachable
from node.identity.keystore import Identity
from node.net.addresses import Address, parse
from node.net.errors import AddressInUse, ListenError
from node.net.events import Connected, NetEvent
from node.net.gate import Gate
from node.privacy.egress import Egress
from protocol.channel import FrameChannel
from protocol.frames.link import IDLE, Hello, Load

if TYPE_CHECKING:
    from node.net.host import Network
    from node.net.links import Links
    from node.net.relay_hop import RelayPolicy
    from node.net.streams import PeerStream

__all__ = ["MODES", "Networking", "Wiring"]

log = logging.getLogger(__name__)

MODES = ("offline", "lan", "online")
OPEN_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Wiring:
    """What the network calls back: peers that open a stream, events, and what we say about ourselves to each peer."""

    on_channel: Callable[[FrameChannel], Awaitable[None]]
    on_event: Callable[[NetEvent], None]
    hello: Callable[[str], Hello]
    known: Callable[[], Sequence[tuple[str, Sequence[str]]]]
    """Every paired peer and its addresses."""


class Networking:
    """Runs the network while the mode wants one. All other methods may be called at any time."""

    def __init__(
        self, identity: Identity, gate: Gate, egress: Egress, entropy: Entropy, wiring: Wiring, *, mode: str,
        relay: "RelayPolicy | None" = None,
    ) -> None:
        """relay: for whom this node carries circuits; without one it speaks no relay protocol."""
        self._identity = identity
        self._gate = gate
        self._egress = egress
        self._entropy = entropy
        self._wiring = wiring
        self.mode = mode
        self.load: Load = IDLE
        self.stage = "starting network" if mode != "offline" else "starting services"
        self._listen: tuple[str, ...] = ()
        self._network: Network | None = None
        self._links: Links | None = None
        self._session: trio.CancelScope | None = None
        self._nursery: trio.Nursery | None = None
        self._any_port = False
        self._wanted: tuple[str, ...] = ()
        self._failure: ListenError | None = None
        self._relay = relay
        self._relays: tuple[str, ...] = ()
        self._whereabouts = b""
        self.after_event: Callable[[NetEvent], None] = lambda event: None
        """Told of each event after all others were."""
        self._changed = trio.Event()
        self._settled = trio.Event()
        self._switching = trio.Lock()
        self.listening = trio.Event()
        """Set once, when this node first listens."""

    async def run(
        self, listen: Sequence[str], *, any_port: bool, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Be on the network in lan and online mode, off it in offline mode, until cancelled.

        any_port: the port is no wish of the owner's; take another one when it is not to be had. Raises ListenError
        when not one of the addresses can be listened on at the start; a later switch then ends in offline mode.
        """
        self._listen = self._wanted = tuple(listen)
        self._any_port = any_port
        task_status.started()
        while True:
            changed = self._changed
            if self.mode == "offline":
                self.stage = "ready"
                self._settled.set()
                await changed.wait()
            elif self._network is None:
                await self._load()
            else:
                await self._serve(self._network)

    async def _load(self) -> None:
        """Import the network library in a thread: it takes seconds, and status must answer meanwhile."""
        network, self._links_class = await trio.to_thread.run_sync(_import_network)
        self._network = network(
            self._identity.seed, self._gate, self._on_stream, self._on_event, relay=self._relay)

    async def _serve(self, network: "Network") -> None:
        with trio.CancelScope() as session:
            self._session = session
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                await nursery.start(network.serve, ())
                problem = await self._listen_where_possible(network)
                if problem is None:
                    await self._call_peers(network, nursery)
                elif not self._switching.locked():
                    raise problem
                else:  # a switch that cannot be made: back to offline, and the one who switched is told
                    self.mode, self._failure = "offline", problem
                    nursery.cancel_scope.cancel()
        self._links = self._session = self._nursery = None

    async def _call_peers(self, network: "Network", nursery: trio.Nursery) -> None:
        self.listening.set()
        self._links = self._links_class(network, self.open_channel, self._wiring.hello, self._on_event, self._entropy)
        for peer_id, known in self._wiring.known():
            self.know(peer_id, known)
        network.known_addresses = self._links.addresses
        self._links.relocate(self._whereabouts)
        await nursery.start(self._links.run)
        self.stage = "ready"
        self._settled.set()

    async def _listen_where_possible(self, network: "Network") -> ListenError | None:
        """Listen on every address that this machine still has; one that is gone is no reason to be unreachable. What
        is wrong comes back when there is none."""
        problems = await self._add_listeners(network, self._listen)
        if not network.addresses() and self._any_port:
            anywhere = [f"{address.rpartition('/')[0]}/0" for address in self._listen]
            problems += await self._add_listeners(network, anywhere)
        if not network.addresses():
            return problems[0] if problems else ListenError("No address to listen on is configured.")
        self._listen = tuple(network.addresses())  # ports that were chosen are kept over mode changes
        return None

    async def _add_listeners(self, network: "Network", addresses: Sequence[str]) -> list[ListenError]:
        problems = []
        for address in addresses:
            try:
                await network.add_listener(address)
            except ListenError as error:
                log.warning("not listening on %s: %s", address, error.text)
                problems.append(error)
        return problems

    def _on_event(self, event: NetEvent) -> None:
        """Pass an event on; in lan mode a connection from elsewhere is closed first."""
        far = isinstance(event, Connected) and not may_reach(self.mode, event.address)
        if far and self._nursery is not None and self._network is not None:
            log.info("closed a connection from outside the local network")
            self._nursery.start_soon(self._network.disconnect, event.peer_id)
        self._wiring.on_event(event)
        self.after_event(event)

    async def set_mode(self, mode: str) -> int:
        """Switch; returns when the sockets are as the mode wants them. How many peers were connected before comes
        back. Raises ListenError when no address can be listened on: the mode is offline then."""
        async with self._switching:
            before = len(self.connected())
            if mode == self.mode:
                return before
            was_on = self.mode != "offline"
            if mode == "offline":
                await self.leave("offline")
            self.mode = mode
            if was_on and mode != "offline":
                for peer_id, known in self._wiring.known():
                    self.know(peer_id, known)
                self.use_relays(self._relays)
                await self._close_far()
                return before
            self._settled = trio.Event()
            if self._session is not None:
                self._session.cancel()
            self._changed.set()
            self._changed = trio.Event()
            await self._settled.wait()
            failure, self._failure = self._failure, None
            if failure is not None:
                free = "See what holds it with: ss -ltnp; when it is free: "
                hint = f"{free if isinstance(failure, AddressInUse) else ''}kith mode {mode}"
                raise type(failure)(f"{failure.text} The mode stays offline.", hint=hint)
            return before

    async def _close_far(self) -> None:
        """End what the mode allows no longer."""
        network = self._network
        for peer_id in self.connected() if network is not None else ():
            live = network.connection(peer_id) if network is not None else None
            if live is not None and network is not None and not may_reach(self.mode, live.address):
                await network.disconnect(peer_id)

    async def refresh(self, addresses: frozenset[str]) -> None:
        """The machine has these addresses now (loopback not among them): listen on those of the configured ones that
        came, no longer on those that are gone, and call every absent peer at once."""
        async with self._switching:
            network, session = self._network, self._session
            if network is None or session is None or self._links is None:
                return
            now = {parse(one).host: one for one in network.addresses()}
            for host, address in now.items():
                if not is_everywhere(host) and host not in addresses:
                    await network.remove_listener(address)
                    log.info("no longer listening on %s: this machine has it no more", address)
            port = parse(next(iter(now.values()))).port if now else 0
            wanted = [one.host for one in map(parse, self._wanted)]
            await self._add_listeners(network, [
                f"/ip{6 if ':' in host else 4}/{host}/tcp/{port}" for host in hosts_to_add(wanted, now, addresses)
            ])
            dropped = network.drop_stale(addresses)
            if dropped:
                gone = counted(dropped, "connection")
                log.info("dropped %s from addresses that this machine has no more", gone)
            self._links.wake()

    async def leave(self, code: Any) -> None:
        """Say goodbye on every link; bounded."""
        if self._links is not None:
            await self._links.leave_all(code)

    # -- peers --

    def know(self, peer_id: str, addresses: Sequence[str]) -> None:
        """Admit a peer and keep a link to it."""
        self._gate.allow(peer_id)
        if self._links is not None:
            self._links.know(peer_id, [one for one in addresses if may_reach(self.mode, one)])

    async def forget(self, peer_id: str) -> None:
        """End the link, cut every stream and admit the peer no more."""
        if self._links is not None:
            await self._links.forget(peer_id)
        self._gate.forbid(peer_id)

    def wake(self, peer_id: str) -> None:
        """Call this peer now instead of at the next try."""
        if self._links is not None:
            self._links.wake(peer_id)

    def wake_all(self) -> None:
        """Call every peer that is away now instead of at its next try."""
        if self._links is not None:
            self._links.wake()

    def regreet(self, peer_id: str, *, only_outdated: bool = False) -> None:
        """Greet a present peer with what it is granted now; its connection and streams stay. only_outdated: not when it
        was greeted with that already."""
        if self._links is not None:
            self._links.regreet(peer_id, only_outdated=only_outdated)

    async def ping(self, peer_id: str, *, timeout_s: float) -> tuple[float, str]:
        """A round trip measured now, in ms, and the address it took. Raises PeerUnreachable."""
        if self._links is None:
            self._running()
            raise PeerUnreachable(f"This node is {self.stage}.", hint="See: kith status")
        found = await self._links.ping(peer_id, timeout_s=timeout_s)
        return found.rtt_ms, found.address

    async def disconnect(self, peer_id: str) -> None:
        """Close every connection to this peer; the links call it again and greet anew."""
        if self._network is not None:
            await self._network.disconnect(peer_id)

    def readvertise(self, peer_id: str | None = None) -> None:
        """Tell every present peer, or this one, what is served to it now, and how busy this node is (`load`)."""
        if self._links is not None:
            self._links.readvertise(self.load, peer_id=peer_id)

    def regrant(self, peer_id: str) -> None:
        """Tell a present peer what it is granted now; its connection and streams stay."""
        if self._links is not None:
            self._links.regrant(peer_id)
            self.readvertise(peer_id)

    def connected(self) -> set[str]:
        """Peers with a live connection."""
        return self._network.connected() if self._network is not None else set()

    def addresses(self) -> list[str]:
        """Addresses listened on now."""
        return self._network.addresses() if self._network is not None and self._session is not None else []

    async def add_listener(self, address: str) -> str:
        """Listen on one more address; the real one comes back."""
        real = await self._running().add_listener(address)
        self._listen, self._wanted = (*self._listen, real), (*self._wanted, real)
        return real

    async def remove_listener(self, address: str) -> None:
        """Listen on an address no longer."""
        await self._running().remove_listener(address)
        self._listen = tuple(one for one in self._listen if one != address)
        self._wanted = tuple(one for one in self._wanted if one != address)

    async def meet(self, addresses: Sequence[str], *, peer_id: str | None, timeout_s: float) -> str:
        """Connect to a peer that is to be paired; its proven id comes back. Needs the gate's meeting."""
        network = self._running()
        if not any(may_reach(self.mode, one) for one in addresses):
            raise PeerUnreachable("That address is not on the local network.", hint="Allow it with: kith mode online")
        if peer_id is not None:
            return (await network.connect(peer_id, addresses, timeout_s=timeout_s)).peer_id
        return (await network.meet(addresses, timeout_s=timeout_s)).peer_id

    # -- ways --

    def use_relays(self, relays: Sequence[str]) -> None:
        """These present peers carry for this node; they are used in mode online."""
        self._relays = tuple(relays)
        if self._network is not None and self._session is not None:
            self._network.guest.use(self._relays if self.mode == "online" else ())

    def observe(self, addresses: Sequence[Address]) -> None:
        """Where others see this node's calls come from."""
        if self._network is not None:
            self._network.observed = tuple(addresses)

    def improve(self, peer_id: str) -> None:
        """Something new is known of where this peer is: if it is reached through a relay, try better ways soon."""
        if self._network is not None:
            self._network.improver.nudge(peer_id)

    def hint(self, peer_id: str, addresses: Sequence[str]) -> None:
        """A peer may be at these addresses; nobody has proven it."""
        if self._links is not None:
            self._links.hint(peer_id, [one for one in addresses if may_reach(self.mode, one)])

    def relocate(self, addresses: bytes) -> None:
        """Tell every present peer where this node can be reached now, and each that comes."""
        self._whereabouts = addresses
        if self._links is not None:
            self._links.relocate(addresses)

    def reroute(self, peer_id: str) -> None:
        """Move the link of a peer to its better connection."""
        if self._links is not None:
            self._links.reroute(peer_id)

    def parts(self) -> "tuple[Network, Links] | None":
        """What runs now, to be looked at; None while there is no network."""
        return None if self._network is None or self._links is None else (self._network, self._links)

    # -- channels --

    async def open_channel(self, peer_id: str, protocol: str) -> FrameChannel:
        """A guarded channel on the live connection to this peer. Raises PeerUnreachable or NotPaired."""
        stream = await self._running().open(peer_id, protocol, timeout_s=OPEN_TIMEOUT_S)
        channel: FrameChannel = self._egress.channel(stream)
        return channel

    async def serve_link(self, channel: FrameChannel) -> None:
        """Keep the link that a peer opened."""
        if self._links is None:
            await channel.reset()
        else:
            await self._links.serve(channel)

    async def _on_stream(self, stream: "PeerStream") -> None:
        channel: FrameChannel = self._egress.channel(stream)
        await self._wiring.on_channel(channel)

    def _running(self) -> "Network":
        if self._network is None or self._session is None:
            state = "offline" if self.mode == "offline" else self.stage
            raise PeerUnreachable(f"This node is {state}.", hint="See: kith status, kith mode")
        return self._network


def _import_network() -> tuple[Any, Any]:
    from node.net.host import Network
    from node.net.links import Links

    return Network, Links
