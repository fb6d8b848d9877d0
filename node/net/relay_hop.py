"""The relay's side of circuit relay v2: keeps places for paired peers and carries circuits between them, within limits.

What passes is ciphertext of the two ends: it is counted and handed on, never looked at. Both ends must be paired with
this node; the one that asks, and the one that holds a place, must be granted the service. Source: libp2p specification
relay/circuit-v2.md.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import trio

from node.errors import KithError
from node.net import delimited
from node.net.errors import WireError, reason_of
from node.net.limits import RelayLimits
from node.net.relay_messages import (
    STOP,
    HopReply,
    HopRequest,
    Status,
    StopRequest,
    decode_hop,
    decode_stop_reply,
    encode_hop_reply,
    encode_stop,
)
from node.net.streams import PeerStream
from protocol.errors import ChannelClosed, ProtocolError

__all__ = ["Account", "CircuitSeen", "RelayPolicy", "RelayService"]

_log = logging.getLogger(__name__)
_CHUNK_BYTES = 1 << 16


class Account(Protocol):
    """Where one circuit's bytes are counted."""

    def add(self, data: bytes) -> None:
        """Bytes were handed on, in either direction; never blocks."""
        ...

    async def close(self, outcome: str) -> None:
        """The circuit is over: end, limit or lost."""
        ...


class RelayPolicy(Protocol):
    """What the owner of the relay allows, and how it is accounted."""

    def carries_for(self, peer_id: str) -> bool:
        """Whether this peer may use this node as a relay now."""
        ...

    def now_s(self) -> int:
        """UTC seconds."""
        ...

    async def account(self, caller: str, called: str) -> Account:
        """A new circuit's account, entered before its first byte is carried. May raise KithError: then there is no
        circuit."""
        ...


@dataclass(frozen=True, slots=True)
class CircuitSeen:
    """A circuit that is being carried."""

    caller: str
    called: str


class RelayService:
    """One node's relay. open_stream(peer_id, protocol): a stream on the live direct connection to a peer."""

    def __init__(
        self, policy: RelayPolicy, open_stream: Callable[[str, str], Awaitable[PeerStream]], limits: RelayLimits
    ) -> None:
        self._policy = policy
        self._open_stream = open_stream
        self._limits = limits
        self._places: dict[str, float] = {}
        self._circuits: dict[CircuitSeen, int] = {}
        self._ends: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    @property
    def reservations(self) -> frozenset[str]:
        """Peers that hold a place."""
        return frozenset(peer_id for peer_id, until_s in self._places.items() if until_s > trio.current_time())

    @property
    def circuits(self) -> int:
        """Circuits that are carried now."""
        return sum(self._circuits.values())

    def leave(self, peer_id: str) -> None:
        """A peer is gone or no longer allowed: its place is given up. Its circuits end with its connection."""
        self._places.pop(peer_id, None)

    async def serve(self, stream: PeerStream) -> None:
        """One request of a peer, to its end. Raises ProtocolError when the peer's stream breaks."""
        try:
            request = decode_hop(await delimited.receive(stream, deadline_s=self._limits.message_s))
        except WireError as error:
            _log.info("a request to carry was refused: %s", reason_of(error))
            await self._answer(stream, HopReply(Status.MALFORMED_MESSAGE))
            return
        if not self._policy.carries_for(stream.peer_id):
            await self._answer(stream, HopReply(Status.PERMISSION_DENIED))
        elif request.kind == "reserve":
            await self._answer(stream, self._reserve(stream.peer_id))
        else:
            await self._connect(stream, request)

    async def _answer(self, stream: PeerStream, reply: HopReply) -> None:
        if reply.status is not Status.OK:
            self.refused[reply.status.name.lower()] += 1
        await delimited.send(stream, encode_hop_reply(reply))

    def _reserve(self, peer_id: str) -> HopReply:
        live = self.reservations
        self._places = {one: until_s for one, until_s in self._places.items() if one in live}
        if peer_id not in live and len(live) >= self._limits.max_reservations:
            return HopReply(Status.RESERVATION_REFUSED)
        self._places[peer_id] = trio.current_time() + self._limits.reservation_s
        return HopReply(
            Status.OK, self._policy.now_s() + self._limits.reservation_s, self._limits.circuit_s,
            self._limits.circuit_bytes,
        )

    async def _connect(self, stream: PeerStream, request: HopRequest) -> None:
        caller, called = stream.peer_id, request.peer_id
        if called == caller or called not in self.reservations or not self._policy.carries_for(called):
            await self._answer(stream, HopReply(Status.NO_RESERVATION))
            return
        most = self._limits.max_circuits_per_peer
        if self.circuits >= self._limits.max_circuits or self._ends[caller] >= most or self._ends[called] >= most:
            await self._answer(stream, HopReply(Status.RESOURCE_LIMIT_EXCEEDED))
            return
        seen = CircuitSeen(caller, called)
        self._count(seen, 1)
        try:
            await self._carry(stream, seen)
        finally:
            self._count(seen, -1)

    def _count(self, seen: CircuitSeen, step: int) -> None:
        self._circuits[seen] = self._circuits.get(seen, 0) + step
        self._ends[seen.caller] += step
        self._ends[seen.called] += step
        if not self._circuits[seen]:
            del self._circuits[seen]
        self._ends = +self._ends

    async def _carry(self, stream: PeerStream, seen: CircuitSeen) -> None:
        limits = self._limits
        far: PeerStream | None = None
        try:
            account = await self._policy.account(seen.caller, seen.called)
        except KithError as error:
            _log.error("no circuit is carried, for it cannot be accounted: %s", error.code)
            await self._answer(stream, HopReply(Status.CONNECTION_FAILED))
            return
        outcome = "failed"
        try:
            far = await self._call(seen)
            if far is None:
                await self._answer(stream, HopReply(Status.CONNECTION_FAILED))
                return
            await self._answer(
                stream, HopReply(Status.OK, duration_s=limits.circuit_s, data_bytes=limits.circuit_bytes)
            )
            outcome = await _Carrier(stream, far, account, limits, lambda: self._may_go_on(seen)).run()
        finally:
            if far is not None:
                far.abort("the circuit is over")
            with trio.CancelScope(shield=True):
                await account.close(outcome)

    def _may_go_on(self, seen: CircuitSeen) -> bool:
        return self._policy.carries_for(seen.caller) and self._policy.carries_for(seen.called)

    async def _call(self, seen: CircuitSeen) -> PeerStream | None:
        """The stream to the peer that is called, once it has agreed; None when it has not."""
        far: PeerStream | None = None
        agreed = False
        try:
            far = await self._open_stream(seen.called, STOP)
            call = StopRequest(seen.caller, self._limits.circuit_s, self._limits.circuit_bytes)
            await delimited.send(far, encode_stop(call))
            answer = decode_stop_reply(await delimited.receive(far, deadline_s=self._limits.message_s))
            agreed = answer is Status.OK
        except (KithError, ProtocolError, WireError) as error:
            _log.info("a call through this node failed: %s", reason_of(error))
        finally:
            if far is not None and not agreed:
                far.abort("the call failed")
        return far if agreed else None


class _Carrier:
    """Two streams, joined until either end is done, a limit is reached, or an end may not use this relay any more."""

    def __init__(
        self, near: PeerStream, far: PeerStream, account: Account, limits: RelayLimits, may_go_on: Callable[[], bool]
    ) -> None:
        self._near = near
        self._far = far
        self._account = account
        self._limits = limits
        self._may_go_on = may_go_on
        self._left_bytes = limits.circuit_bytes
        self._outcome = "end"
        self._ending = False
        self._copying = 2

    async def run(self) -> str:
        with trio.move_on_after(self._limits.circuit_s) as whole:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._copy, self._near, self._far, nursery.cancel_scope)
                nursery.start_soon(self._copy, self._far, self._near, nursery.cancel_scope)
                nursery.start_soon(self._watch, nursery.cancel_scope)
        if whole.cancelled_caught:
            self._outcome = "limit"
        if self._outcome != "end":
            self._near.abort("the circuit is over")
            self._far.abort("the circuit is over")
        return self._outcome

    async def _watch(self, scope: trio.CancelScope) -> None:
        """A grant that is taken back ends a circuit that carries nothing just now, too."""
        while self._may_go_on() and self._copying:  # noqa: ASYNC110 - grants and clocks announce nothing
            await trio.sleep(self._limits.review_s)
        if self._copying:
            self._outcome = "revoked"
        scope.cancel()

    async def _copy(self, source: PeerStream, sink: PeerStream, scope: trio.CancelScope) -> None:
        try:
            while self._left_bytes > 0:
                data = await source.read(_CHUNK_BYTES, deadline_s=self._limits.idle_s)
                data = data[: max(0, self._left_bytes)]  # the other direction may have used it up meanwhile
                self._left_bytes -= len(data)
                if not self._may_go_on():
                    self._outcome = "revoked"
                    scope.cancel()
                    return
                await sink.write(data)
                self._account.add(data)
            self._outcome = "limit"
        except ChannelClosed:
            self._ending = True
            self._copying -= 1
            with suppress(ProtocolError):
                await sink.close_write()
            if not self._copying:
                scope.cancel()
            return  # the other direction may go on
        except ProtocolError:
            self._outcome = "end" if self._ending else "lost"
        scope.cancel()
