"""One life of the network, from going online to going offline: listeners, connections and the swarm that runs them.

Everything lives in one shielded task, so that the end has an order: refuse new connections, say goodbye on all
connections at once, then stop. Dropping a connection is closing its socket, never cancelling an upgrade. The swarm has
no transport of its own: it cannot dial, least of all an address that a peer has announced.
"""

import logging
from collections.abc import Callable, Sequence

import trio
from libp2p.crypto.keys import KeyPair
from libp2p.network.auto_connector import AutoConnector
from libp2p.network.config import ConnectionConfig
from libp2p.network.swarm import Swarm
from libp2p.peer.id import ID
from libp2p.peer.peerstore import PeerStore
from libp2p.tools.anyio_service import background_trio_service
from libp2p.transport.exceptions import MuxerUpgradeFailure

from node.errors import KithError, NotPaired
from node.net.addresses import Address
from node.net.admission import Admission
from node.net.circuit import Circuit, wrap_circuit
from node.net.connections import Connection, ConnectionTable
from node.net.dial import open_tcp
from node.net.errors import (
    GateRefused,
    ListenError,
    NegotiationFailed,
    NetworkStopped,
    RefusedByPeer,
    reason_of,
    root_cause,
)
from node.net.events import Connected, Disconnected, NetEvent, Refused, Rerouted
from node.net.gate import Gate
from node.net.guard import StreamGuard
from node.net.limits import NetLimits
from node.net.listener import Listener, bind
from node.net.muxer import Muxer
from node.net.noise import GatedNoise
from node.net.outgoing import OutgoingPort
from node.net.pace import CallPace, source_of
from node.net.rawconn import TcpConnection, wrap
from node.net.streams import PeerStream
from node.net.upgrade import Upgrader

__all__ = ["Session"]

_log = logging.getLogger(__name__)
# libp2p warns, with tracebacks, of what any peer can cause: what matters of it is told by this package
_library_log = logging.getLogger("libp2p")
_library_log.setLevel(logging.ERROR)
_library_log.propagate = True  # the import cuts it off from the node's log and its redaction


class _CallsNobody(AutoConnector):  # type: ignore[misc]  # libp2p is untyped to mypy
    """libp2p wants to keep up a number of connections by dialling whom it has heard of; a node of ours never does."""

    async def run_background_task(self, nursery: trio.Nursery) -> None:
        """Look for nobody from time to time."""

    async def maybe_connect(self) -> None:
        """Nor when a peer has left."""


class Session:
    """Made and run once by Network.serve(); a closed one cannot be run again."""

    def __init__(
        self, key_pair: KeyPair, gate: Gate, guard: StreamGuard, emit: Callable[[NetEvent], None], limits: NetLimits,
        pace: CallPace,
    ) -> None:
        own = ID.from_pubkey(key_pair.public_key)
        self.gate = gate
        self.limits = limits
        self.guard = guard
        self.table = ConnectionTable(str(own), race_s=limits.race_s)
        self.admission = Admission(total=limits.max_waiting, per_ip=limits.max_waiting_per_ip)
        self._emit = emit
        self._pace = pace
        self._upgrader = Upgrader(
            GatedNoise(key_pair, gate.admit), limits.mux, lambda raw: pace.proofs.take(_source(raw.stream)))
        store = PeerStore()
        store.add_key_pair(own, key_pair)
        count = limits.max_connections
        self.swarm = Swarm(own, store, self._upgrader, transports=[], connection_config=ConnectionConfig(
            max_connections=count, min_connections=0, low_watermark=0, high_watermark=count,
            max_connections_per_peer=count,
        ))
        self.swarm.auto_connector = _CallsNobody(self.swarm)
        self.swarm.set_stream_handler(guard)
        self.listeners: dict[str, Listener] = {}
        self.outgoing = OutgoingPort()
        self._nursery: trio.Nursery | None = None
        self._scope = trio.CancelScope(shield=True)

    # -- life --

    async def run(self, listen: Sequence[str], started: Callable[[], None]) -> None:
        """Serve until cancelled. Raises ListenError before started() when an address cannot be listened on."""
        failure: KithError | None = None
        async with trio.open_nursery() as outer:
            try:
                live = trio.Event()
                outer.start_soon(self._live, live)
                await live.wait()
                try:
                    for address in listen:
                        await self.add_listener(address)
                except KithError as error:
                    failure = error  # raised outside the nursery, which would wrap it in groups
                else:
                    started()
                    await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await self._end()
        if failure is not None:
            raise failure

    async def _live(self, live: trio.Event) -> None:
        with self._scope:
            async with background_trio_service(self.swarm), trio.open_nursery() as nursery:
                self._nursery = nursery
                live.set()
                await trio.sleep_forever()

    async def _end(self) -> None:
        for listener in self.listeners.values():
            listener.close()
        self.listeners.clear()
        self.outgoing.close()
        with trio.move_on_after(self.limits.close_s):
            async with trio.open_nursery() as goodbyes:
                for connection in self.table.all():
                    goodbyes.start_soon(connection.muxer.close)
        self._scope.cancel()
        last = self.table.all()
        for peer_id in {connection.peer_id for connection in last}:
            self.gate.leave(peer_id)
            self._emit(Disconnected(peer_id, "the network was switched off"))
        for connection in last:
            self.table.remove(connection)
        self._nursery = None

    @property
    def nursery(self) -> trio.Nursery:
        """Where this session's background work runs; NetworkStopped when it is over."""
        if self._nursery is None:
            raise NetworkStopped
        return self._nursery

    # -- listening --

    async def add_listener(self, text: str) -> str:
        """Listen on one more address; returns the real one, with its port."""
        nursery = self.nursery
        listener = await bind(text)
        if listener.address in self.listeners:
            listener.close()
            raise ListenError(f"{listener.address} is already listened on.")
        self.listeners[listener.address] = listener
        nursery.start_soon(listener.serve, self._accept, nursery)
        return listener.address

    def remove_listener(self, text: str) -> None:
        """Refuse new connections on this address (as asked for, or as it really is); standing ones stay."""
        for address, listener in list(self.listeners.items()):
            if text in (address, listener.asked):
                listener.close()
                del self.listeners[address]
                return
        raise ListenError(f"{text} is not listened on.")

    async def _accept(self, stream: trio.SocketStream) -> None:
        try:
            tcp = TcpConnection(stream)
        except OSError:
            return  # the other end was gone before we looked
        if not self._pace.calls.take(_source(tcp)):
            return tcp.abort()
        self.admission.enter(tcp)
        try:
            with trio.fail_after(self.limits.upgrade_s):
                connection = await self._establish(tcp, None, dialled=False)
        except Exception as error:  # a stranger's bytes went through the handshake: anything may come out
            tcp.abort()
            cause = root_cause(error)
            if isinstance(cause, GateRefused):
                self._emit(Refused(str(cause), tcp.address))
            _log.debug("inbound connection from %s dropped: %s", tcp.ip, reason_of(error))
            return
        finally:
            self.admission.leave(tcp)
        try:
            await connection.muxer.event_closed.wait()
        finally:
            tcp.abort()

    # -- dialling --

    async def reach(self, address: Address, peer_id: str | None) -> Connection:
        """Dial one address and enter the connection. peer_id None takes whoever answers, if the gate admits it.

        Raises OSError, RefusedByPeer when the peer proved itself and hung up, or what the upgrade raises.
        """
        return await self._call(TcpConnection(await open_tcp(address, self.outgoing)), peer_id)

    async def punch(self, address: Address, peer_id: str, *, begins: bool) -> Connection:
        """Dial an address at the moment at which its owner dials ours, from the port that its NAT and ours know: two
        calls that meet become one connection. begins: this side starts the handshakes. Raises as reach() does."""
        stream = await self.outgoing.connect(address.family, (address.host, address.port), exactly=True)
        tcp = TcpConnection(stream)
        if begins:
            return await self._call(tcp, peer_id)
        connection: Connection | None = None
        try:
            with trio.fail_after(self.limits.upgrade_s):
                connection = await self._establish(tcp, None, dialled=False)
            if connection.peer_id != peer_id:
                self.discard(connection)
                raise NotPaired("Somebody else answered where the peer was called.")
            return connection
        finally:
            if connection is None:
                tcp.abort()

    async def reach_through(self, stream: PeerStream, peer_id: str) -> Connection:
        """Enter the connection that a circuit to this peer becomes. Raises as reach() does."""
        return await self._call(Circuit(stream), peer_id)

    async def _call(self, carrier: TcpConnection | Circuit, peer_id: str | None) -> Connection:
        upgraded = False
        try:
            connection = await self._establish(carrier, ID.from_string(peer_id) if peer_id else None, dialled=True)
            upgraded = True
            return connection
        except MuxerUpgradeFailure as error:
            if isinstance(error.__cause__, NegotiationFailed):
                raise
            raise RefusedByPeer from error
        finally:
            if not upgraded:
                carrier.abort()

    async def accept_circuit(self, stream: PeerStream) -> None:
        """Answer a call that came through a relay, and return when the connection is over. Never raises for what the
        peer does."""
        circuit = Circuit(stream)
        if not self._pace.calls.take(_source(circuit)):
            return circuit.abort()
        try:
            with trio.fail_after(self.limits.upgrade_s):
                connection = await self._establish(circuit, None, dialled=False)
        except Exception as error:  # a stranger's bytes went through the handshake: anything may come out
            circuit.abort()
            cause = root_cause(error)
            if isinstance(cause, GateRefused):
                self._emit(Refused(str(cause), circuit.address))
            _log.debug("a call through %s dropped: %s", stream.peer_id, reason_of(error))
            return
        try:
            await connection.muxer.event_closed.wait()
        finally:
            circuit.abort()

    # -- connections --

    async def _establish(
        self, carrier: TcpConnection | Circuit, expected: ID | None, *, dialled: bool
    ) -> Connection:
        raw = wrap_circuit(carrier, dialled=dialled) if isinstance(carrier, Circuit) else wrap(carrier, dialled=dialled)
        secured = await self._upgrader.upgrade_security(raw, dialled, expected)
        peer_id = str(secured.get_remote_peer())
        if dialled and not self.gate.admit(peer_id, dialled=True):
            raise NotPaired("The node that answers there is not paired with this device.")
        try:
            muxer = await self._upgrader.upgrade_connection(secured, secured.get_remote_peer())
            assert isinstance(muxer, Muxer)
            return await self._register(muxer, carrier, dialled=dialled)
        except BaseException:
            if not self.table.of(peer_id):
                self.gate.leave(peer_id)  # a stranger that got no connection takes no place
            raise

    async def _register(self, muxer: Muxer, carrier: TcpConnection | Circuit, *, dialled: bool) -> Connection:
        nursery, peer_id = self.nursery, str(muxer.peer_id)
        # shielded: a lost race cancelled in here would cost libp2p's slow close on the caller's time
        handle = None
        with trio.move_on_after(self.limits.upgrade_s, shield=True):
            handle = await self.swarm.add_conn(muxer, direction="outbound" if dialled else "inbound")
        if handle is None:
            raise NetworkStopped  # a swarm that is ending starts nothing any more, and waits for it for ever
        known = peer_id in self.gate.allowed
        before = self.table.best(peer_id)
        first = not self.table.of(peer_id)
        connection = Connection(
            peer_id, carrier.address, dialled, trio.current_time(), muxer, handle, carrier.via, carrier.local_ip
        )
        nursery.start_soon(self._watch, connection)
        most = self.limits.max_per_peer if known else self.limits.max_per_stranger
        losers = self.table.add(connection, max_per_peer=most)
        if not known and peer_id not in self.gate.strangers:
            losers.append(connection)  # forbidden while the handshake ran
            connection.losing = True
        for loser in losers:
            nursery.start_soon(loser.muxer.close)
        if first:
            self._emit(Connected(peer_id, carrier.address, dialled, stranger=not known))
        elif before is not None and before.via is not None and connection.via is None and not connection.losing:
            self._emit(Rerouted(peer_id, connection.address, dialled))
        if any(one.via is not None for one in self.table.of(peer_id)):
            nursery.start_soon(self._retire, peer_id)
        if known and not dialled:
            self._pace.proven(_source(carrier), peer_id)
        if not known and not dialled:
            nursery.start_soon(self._expire_stranger, connection)
        return connection

    async def _watch(self, connection: Connection) -> None:
        await connection.muxer.event_closed.wait()
        if self.table.remove(connection):
            self.gate.leave(connection.peer_id)
            self.guard.spoken.discard(connection.peer_id)
            self._emit(Disconnected(connection.peer_id, connection.muxer.end_reason or "closed"))

    async def _retire(self, peer_id: str) -> None:
        """Close relayed connections once a direct one has replaced them and their last stream is over."""
        while True:
            await trio.sleep(self.limits.retire_s)
            best = self.table.best(peer_id)
            relayed = [one for one in self.table.of(peer_id) if one.via is not None and not one.losing]
            if best is None or best.via is not None or not relayed:
                return  # there is nothing better yet, or nothing left; the next connection looks again
            for one in relayed:
                if not one.muxer.open_streams:
                    self.discard(one)

    async def _expire_stranger(self, connection: Connection) -> None:
        await trio.sleep(self.limits.stranger_idle_s)
        if connection.peer_id not in self.gate.allowed and connection.peer_id not in self.guard.spoken:
            await connection.muxer.close()

    def discard(self, connection: Connection) -> None:
        """Close a connection that nobody needs, in the background."""
        connection.losing = True
        if self._nursery is not None:
            self._nursery.start_soon(connection.muxer.close)

    def cut(self, peer_id: str) -> None:
        """Close every connection of this peer, in the background; it is not used from this instant on."""
        for connection in self.table.of(peer_id):
            if not connection.losing:
                self.discard(connection)


def _source(carrier: TcpConnection | Circuit) -> str:
    """Who counts as one caller: where it calls from, or the relay that brings it."""
    return carrier.via if isinstance(carrier, Circuit) and carrier.via else source_of(carrier.ip)
