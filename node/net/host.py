"""The node's network: serve, connect to peers, open streams, and be told what happens. The face of this package.

Peers are ids and addresses are text; nothing of libp2p shows. Restartable: serve() may be called again after it ended,
and each call is a new session. It must not know frames, links or what a protocol means.
"""

import ipaddress
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

import trio
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.peer.id import ID
from libp2p.stream_muxer.exceptions import MuxedConnError, MuxedStreamError

from node.errors import KithError, NotPaired
from node.net import addresses, dial, negotiate
from node.net.circuit import circuit_address
from node.net.connections import Connection
from node.net.errors import (
    BadAddress,
    NegotiationFailed,
    NetworkStopped,
    NotConnected,
    OpenFailed,
    ProtocolNotServed,
    root_cause,
)
from node.net.events import Disconnected, NetEvent, NotServed
from node.net.gate import Gate
from node.net.guard import StreamGuard
from node.net.improving import Improver
from node.net.limits import NetLimits
from node.net.pace import CallPace
from node.net.punching import Puncher
from node.net.relay_hop import RelayPolicy, RelayService
from node.net.relay_messages import DCUTR, HOP, STOP
from node.net.relaying import RelayGuest
from node.net.session import Session
from node.net.streams import PeerStream
from node.net.turned_away import LATELY_S, TurnedAway
from protocol.names import PROTOCOLS

__all__ = ["ConnectionInfo", "Network"]

_log = logging.getLogger(__name__)
_MAX_DIRECT = 13  # a race takes 16 ways, up to 3 of them through relays


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """A live connection. dialled: this side made it. address: where the peer really is. via: the relay that carries
    it."""

    peer_id: str
    address: str
    dialled: bool
    via: str | None = None


@dataclass(frozen=True, slots=True)
class _Via:
    """The way to a peer through a relay."""

    relay_id: str

    def __str__(self) -> str:
        return circuit_address(self.relay_id)


class Network:
    """One libp2p node: TCP, Noise and Yamux only, ed25519 only, closed to everyone the gate does not know."""

    def __init__(
        self,
        seed: bytes,
        gate: Gate,
        on_stream: Callable[[PeerStream], Awaitable[None]],
        on_event: Callable[[NetEvent], None],
        *,
        protocols: Collection[str] = PROTOCOLS,
        limits: NetLimits | None = None,
        relay: RelayPolicy | None = None,
    ) -> None:
        """seed: 32 bytes of the device's Ed25519 key. on_stream serves each inbound stream of the given protocols in a
        task of its own and may raise; on_event is called in order, must not block and must not raise. relay: whom this
        node carries circuits for; None speaks no relay protocol at all."""
        self._key_pair = create_new_key_pair(seed)
        self._gate = gate
        self._on_stream = on_stream
        self._on_event = on_event
        self._limits = limits or NetLimits()
        self.pace = CallPace(self._limits.pace, trio.current_time)
        own = (HOP, STOP, DCUTR) if relay is not None else ()
        self._guard = StreamGuard(
            gate, (*protocols, *own), self._serve_stream, self._limits, lambda *asked: self._tell(NotServed(*asked)))
        self.relay = RelayService(relay, self._open_direct, self._limits.relay) if relay is not None else None
        self.guest = RelayGuest(
            self._open_direct, self._limits.relay, lambda peer_id: peer_id in gate.allowed, self._is_direct
        )
        self.observed: tuple[addresses.Address, ...] = ()
        """Where other nodes see this one's calls come from."""
        self.known_addresses: Callable[[str], Sequence[str]] = lambda _peer_id: ()
        """Where a peer may be called; asked for peers that are connected through a relay only."""
        self.puncher = Puncher(lambda: self.observed, self._limits.relay)
        self.improver = Improver(self._relayed, self._improve, self._limits.relay)
        self._session: Session | None = None
        self._dialling: dict[str, trio.Lock] = {}
        self.peer_id = str(ID.from_pubkey(self._key_pair.public_key))
        gate.on_cut(self._cut)

    @property
    def caught(self) -> int:
        """Inbound streams that failed or were refused so far."""
        return self._guard.caught

    def turned_away(self) -> TurnedAway:
        """What was not let in so far."""
        at_s = self.pace.refused_at_s
        lately = at_s is not None and trio.current_time() - at_s <= LATELY_S
        return TurnedAway(self.pace.refused, self._gate.refused, self._guard.pace.refused, lately)

    async def serve(
        self, listen: Sequence[str], *, task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Be on the network until cancelled; task_status gets the real addresses. Afterwards every port is refused and
        every connection closed. Raises ListenError or BadAddress before it starts; RuntimeError when already
        serving."""
        if self._session is not None:
            raise RuntimeError("the network is already serving")
        session = Session(self._key_pair, self._gate, self._guard, self._tell, self._limits, self.pace)
        self._session = session
        try:
            await session.run(listen, lambda: self._started(session, task_status))
        finally:
            self._session = None
            self.guest.use(())

    def _started(self, session: Session, task_status: trio.TaskStatus[list[str]]) -> None:
        session.nursery.start_soon(self.guest.run)
        session.nursery.start_soon(self.improver.run)
        task_status.started(self.addresses())

    def _tell(self, event: NetEvent) -> None:
        if isinstance(event, Disconnected) and self.relay is not None:
            self.relay.leave(event.peer_id)
        try:
            self._on_event(event)
        except Exception as error:  # a listener's bug must not end the network
            _log.error("a listener failed on %s: %s", type(event).__name__, type(root_cause(error)).__name__)

    # -- listening --

    def addresses(self) -> list[str]:
        """The addresses listened on now, with real ports."""
        return sorted(self._session.listeners) if self._session is not None else []

    async def add_listener(self, multiaddr: str) -> str:
        """Listen on one more address; returns the real one. Raises ListenError, BadAddress, NetworkStopped."""
        return await self._running().add_listener(multiaddr)

    async def remove_listener(self, multiaddr: str) -> None:
        """Stop listening on an address, as asked for or as it really is. Standing connections stay."""
        self._running().remove_listener(multiaddr)
        await trio.lowlevel.checkpoint()

    # -- connections --

    def connected(self) -> set[str]:
        """The peers with a live connection."""
        return self._session.table.peers() if self._session is not None else set()

    def connection(self, peer_id: str) -> ConnectionInfo | None:
        """The live connection to this peer, or None."""
        best = self._session.table.best(peer_id) if self._session is not None else None
        return _info(best) if best is not None else None

    async def connect(self, peer_id: str, addresses: Sequence[str], *, timeout_s: float) -> ConnectionInfo:
        """The live connection to this peer; dials all addresses at once when there is none, and a moment later tries
        the relays. Callers at the same time share one dial. Addresses that do not parse or name another peer are passed
        over.

        Raises NotPaired (the gate does not admit the peer), RefusedByPeer, DialFailed with a reason per address,
        NetworkStopped.
        """
        session = self._running()
        turn = self._dialling.setdefault(peer_id, trio.Lock())
        try:
            async with turn:
                live = session.table.best(peer_id)
                if live is None:
                    live = await self._dial(session, peer_id, addresses, timeout_s)
                return _info(live)
        finally:
            if not turn.statistics().tasks_waiting and not turn.locked():
                self._dialling.pop(peer_id, None)

    async def meet(self, addresses: Sequence[str], *, timeout_s: float) -> ConnectionInfo:
        """A connection to whoever answers at these addresses first, for pairing by address: needs the gate's
        meeting.

        The peer's key is proven, but whose key it is must be shown by the pairing. Raises as connect() does.
        """
        session = self._running()
        if not self._gate.is_meeting:
            raise NotPaired("This device calls an unknown one only to pair with it.")
        return _info(await self._race(session, None, addresses, timeout_s))

    async def _dial(self, session: Session, peer_id: str, addresses: Sequence[str], timeout_s: float) -> Connection:
        if not self._gate.admit(peer_id, dialled=True):
            raise NotPaired
        try:
            return await self._race(session, peer_id, addresses, timeout_s)
        finally:
            if session.table.best(peer_id) is None:
                self._gate.leave(peer_id)

    async def _race(
        self, session: Session, peer_id: str | None, texts: Sequence[str], timeout_s: float
    ) -> Connection:
        direct = _usable(texts, peer_id)[:_MAX_DIRECT]
        relays = self._ways_through(peer_id) if peer_id is not None else []

        # A stranger may hold few connections, and the oldest gives way: calls that all get through would close each
        # other at its end. So it is called at one address after the other, a moment apart.
        apart_s = 0.0 if peer_id in self._gate.allowed else self._limits.stagger_s

        async def reach(way: addresses.Address | _Via) -> Connection:
            if isinstance(way, addresses.Address):
                await trio.sleep(apart_s * direct.index(way))
                return await session.reach(way, peer_id or way.peer_id)
            assert peer_id is not None
            if direct:
                await trio.sleep(self._limits.relay.after_direct_s)
            return await session.reach_through(await self.guest.call(way.relay_id, peer_id), peer_id)

        ways: list[addresses.Address | _Via] = [*direct, *relays]
        return await dial.race(
            ways, reach, each_s=self._limits.dial_s + apart_s * len(direct), timeout_s=timeout_s,
            discard=session.discard,
        )

    def _ways_through(self, peer_id: str) -> list[_Via]:
        """Relays that this node is connected to, itself through none."""
        return [_Via(relay) for relay in self.guest.relays if relay != peer_id and self._is_direct(relay)]

    def _is_direct(self, peer_id: str) -> bool:
        best = self._session.table.best(peer_id) if self._session is not None else None
        return best is not None and best.via is None

    async def disconnect(self, peer_id: str) -> None:
        """Close every connection to this peer and return once they are closed. Fine when there is none."""
        session = self._session
        if session is None:
            return
        gone = session.table.of(peer_id)
        session.cut(peer_id)
        for connection in gone:
            await connection.muxer.event_closed.wait()

    def drop_stale(self, here: Collection[str]) -> int:
        """Close every connection from an address that is not among `here` any more, in the background; how many. What
        leaves such a socket arrives nowhere, and only silence would tell."""
        table = self._session.table if self._session is not None else None
        stale = [one for one in table.all() if _is_stale(one.local_ip, here)] if table is not None else []
        for connection in stale:
            if self._session is not None and not connection.losing:
                self._session.discard(connection)
        return len(stale)

    def _cut(self, peer_id: str) -> None:
        if self._session is not None:
            self._session.cut(peer_id)

    # -- streams --

    async def open(self, peer_id: str, protocol: str, *, timeout_s: float) -> PeerStream:
        """A new stream on the live connection to this peer; never dials.

        Raises NotConnected, OpenFailed (no answer in time, or the connection broke), ProtocolNotServed (either side
        does not allow it), NetworkStopped.
        """
        connection = self._running().table.best(peer_id)
        if connection is None:
            raise NotConnected
        return await self._open_on(connection, protocol, timeout_s)

    async def _open_direct(self, peer_id: str, protocol: str) -> PeerStream:
        """A stream for the relay protocols: these never go through another relay."""
        connection = self._running().table.best(peer_id)
        if connection is None or connection.via is not None:
            raise NotConnected
        return await self._open_on(connection, protocol, self._limits.relay.message_s)

    async def _open_on(self, connection: Connection, protocol: str, timeout_s: float) -> PeerStream:
        peer_id = connection.peer_id
        if not self._gate.may(peer_id, protocol):
            raise ProtocolNotServed("This device does not allow this service with this peer.")
        stream = None
        agreed = False
        try:
            with trio.fail_after(timeout_s):
                stream = await connection.muxer.open_stream()
                await negotiate.ask(stream, protocol)
            agreed = True
        except trio.TooSlowError:
            raise OpenFailed from None
        except NegotiationFailed as error:
            raise ProtocolNotServed(f"The peer does not offer {protocol} to this device.") from error
        except (MuxedStreamError, MuxedConnError) as error:
            raise OpenFailed(f"The peer opened no stream: {error}.") from error
        finally:
            if not agreed and stream is not None:
                stream.abort("the peer did not agree in time")
        return PeerStream(stream, peer_id=peer_id, protocol=protocol, limits=self._limits)

    async def _serve_stream(self, stream: PeerStream) -> None:
        """One inbound stream: the relay's own protocols are served here, all others by whoever made this network."""
        if stream.protocol == HOP and self.relay is not None:
            await self.relay.serve(stream)
        elif stream.protocol == STOP:
            await self._answer_call(stream)
        elif stream.protocol == DCUTR:
            if stream.peer_id in self._relayed():
                await self.puncher.answer(self._running(), stream)
        else:
            await self._on_stream(stream)

    async def _answer_call(self, stream: PeerStream) -> None:
        if not await self.guest.answer(stream):
            return
        try:
            await self._running().accept_circuit(stream)
        finally:
            self.guest.called -= 1

    # -- better than a relay --

    def _relayed(self) -> set[str]:
        """Peers that are connected through a relay only."""
        table = self._running().table
        found = ((peer_id, table.best(peer_id)) for peer_id in table.peers())
        return {peer_id for peer_id, best in found if best is not None and best.via is not None}

    async def _improve(self, peer_id: str) -> None:
        """One try to get a direct connection to a peer that has a relayed one: its known addresses are called, and the
        side that was called through the relay begins to punch a hole, at the same time."""
        session = self._running()
        best = session.table.best(peer_id)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._call_known, session, peer_id)
            if best is not None and best.via is not None and not best.dialled:
                nursery.start_soon(
                    self.puncher.begin, session, peer_id,
                    lambda: self._open_on(best, DCUTR, self._limits.relay.message_s),
                )

    async def _call_known(self, session: Session, peer_id: str) -> None:
        known = _usable(self.known_addresses(peer_id), peer_id)[:_MAX_DIRECT]
        try:
            await dial.race(
                known, lambda address: session.reach(address, peer_id), each_s=self._limits.dial_s,
                timeout_s=self._limits.dial_s, discard=session.discard,
            )
        except KithError as error:
            _log.debug("%s is not reached directly: %s", peer_id, error.code)

    def _running(self) -> Session:
        if self._session is None:
            raise NetworkStopped
        return self._session


def _is_stale(local_ip: str, here: Collection[str]) -> bool:
    if not local_ip or local_ip in here:
        return False
    ip = ipaddress.ip_address(local_ip.partition("%")[0])
    return not (ip.is_loopback or ip.is_link_local)


def _info(connection: Connection) -> ConnectionInfo:
    return ConnectionInfo(connection.peer_id, connection.address, connection.dialled, connection.via)


def _usable(texts: Sequence[str], peer_id: str | None) -> list[addresses.Address]:
    usable: dict[addresses.Address, None] = {}
    for text in texts:
        try:
            address = addresses.parse(text)
        except BadAddress as error:
            _log.info("address passed over: %s", error.text)
            continue
        if peer_id is None or address.peer_id in (None, peer_id):
            usable[address] = None
    return list(usable)
