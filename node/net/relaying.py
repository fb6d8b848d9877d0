"""This node as a guest of relays: places kept at paired peers, calls through them, and calls that come in that way.

What a call yields is a stream to the relay; the session runs the same gate, Noise and multiplexer in it as on a TCP
connection. Must not know frames, links, or why a relay is used.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

import trio

from node.errors import KithError, PeerUnreachable
from node.net import delimited
from node.net.errors import WireError, reason_of
from node.net.limits import RelayLimits
from node.net.relay_messages import (
    HOP,
    HopRequest,
    Status,
    decode_hop_reply,
    decode_stop,
    encode_hop,
    encode_stop_reply,
)
from node.net.streams import PeerStream
from protocol.errors import ProtocolError

__all__ = ["RelayGuest"]

_log = logging.getLogger(__name__)
_RETRY_S = 15.0
_WORDS = {
    Status.RESERVATION_REFUSED: "it has no place left",
    Status.RESOURCE_LIMIT_EXCEEDED: "it carries all that it may",
    Status.PERMISSION_DENIED: "it does not carry for this node",
    Status.CONNECTION_FAILED: "it does not reach the peer either",
    Status.NO_RESERVATION: "the peer holds no place there",
}


class RelayGuest:
    """The relays that this node may use now, and the places it holds. run() keeps the places."""

    def __init__(
        self, open_stream: Callable[[str, str], Awaitable[PeerStream]], limits: RelayLimits,
        knows: Callable[[str], bool], is_direct: Callable[[str], bool],
    ) -> None:
        """open_stream(peer_id, protocol): a stream on the live direct connection to a peer. knows(peer_id): whether
        this peer may connect. is_direct(peer_id): whether there is a direct connection to it."""
        self._open_stream = open_stream
        self._limits = limits
        self._knows = knows
        self._is_direct = is_direct
        self._relays: tuple[str, ...] = ()
        self._places: dict[str, float] = {}
        self._changed = trio.Event()
        self.problems: dict[str, str] = {}
        """Relay -> why it keeps no place for this node."""
        self.called = 0

    @property
    def relays(self) -> tuple[str, ...]:
        """Relays that may be tried for a call: those with a place first, those that refused one last."""
        ranked = sorted(self._relays, key=lambda one: (one not in self._places, one in self.problems))
        return tuple(ranked[: self._limits.max_used])

    @property
    def places(self) -> frozenset[str]:
        """Relays at which this node can be called."""
        return frozenset(self._places)

    def use(self, relays: Sequence[str]) -> None:
        """These peers are here and carry for this node, best first; no others do. A relay that comes back is asked for
        a place anew."""
        if tuple(relays) == self._relays:
            return
        self._relays = tuple(relays)
        for gone in self._places.keys() - set(relays):
            del self._places[gone]
        self.problems = {relay: text for relay, text in self.problems.items() if relay in relays}
        self._changed.set()
        self._changed = trio.Event()

    async def run(self) -> None:
        """Hold places at up to max_used relays, and renew each after half its time, until cancelled."""
        while True:
            changed = self._changed
            failed = False
            for relay in self._relays:
                due = self._places.get(relay, 0.0) <= trio.current_time() and self._is_direct(relay)
                if due and (relay in self._places or len(self._places) < self._limits.max_used):
                    failed = not await self._reserve(relay) or failed
            wake_s = min(self._places.values(), default=trio.current_time() + self._limits.reservation_s)
            if failed or not all(map(self._is_direct, self._relays)):
                wake_s = min(wake_s, trio.current_time() + _RETRY_S)
            with trio.CancelScope(deadline=max(wake_s, trio.current_time() + 1.0)):
                await changed.wait()

    async def _reserve(self, relay: str) -> bool:
        """Ask one relay for a place; whether it keeps one."""
        self._places.pop(relay, None)
        try:
            stream = await self._asked(relay, HopRequest("reserve"))
        except (KithError, ProtocolError) as error:
            self.problems[relay] = reason_of(error)
            _log.info("no place at the relay %s: %s", relay, reason_of(error))
            return False
        await stream.close_write()
        stream.abort("the place is kept")
        if relay in self._relays:
            self._places[relay] = trio.current_time() + self._limits.reservation_s / 2
            self.problems.pop(relay, None)
        return True

    async def call(self, relay: str, peer_id: str) -> PeerStream:
        """A circuit to the peer: a stream whose other end it holds. Raises PeerUnreachable with the relay's reason,
        ProtocolError when the stream breaks."""
        return await self._asked(relay, HopRequest("connect", peer_id))

    async def _asked(self, relay: str, request: HopRequest) -> PeerStream:
        stream = await self._open_stream(relay, HOP)
        agreed = False
        try:
            await delimited.send(stream, encode_hop(request))
            # the relay may wait as long for the peer that is called, so it gets twice the time
            reply = decode_hop_reply(await delimited.receive(stream, deadline_s=2 * self._limits.message_s))
            if reply.status is not Status.OK:
                raise PeerUnreachable(f"A relay was asked, and {_WORDS.get(reply.status, 'it refused')}.")
            agreed = True
        except WireError as error:
            raise PeerUnreachable("A relay gave no proper answer.") from error
        finally:
            if not agreed:
                stream.abort("the relay did not agree")
        return stream

    async def answer(self, stream: PeerStream) -> bool:
        """Look at a call that a relay brings; whether it was taken: then the peer's handshake follows on the stream,
        and the caller takes it off `called` at its end.

        Taken only from a relay that keeps a place for this node, for a peer that may connect, within limits. Raises
        ProtocolError when the relay's stream breaks.
        """
        status = Status.OK
        try:
            call = decode_stop(await delimited.receive(stream, deadline_s=self._limits.message_s))
            if stream.peer_id not in self._places or not self._knows(call.peer_id):
                status = Status.PERMISSION_DENIED
            elif self.called >= self._limits.max_called:
                status = Status.RESOURCE_LIMIT_EXCEEDED
        except WireError as error:
            _log.info("a call through %s was refused: %s", stream.peer_id, reason_of(error))
            status = Status.MALFORMED_MESSAGE
        taken = status is Status.OK
        self.called += taken  # before anything is waited for: calls that come at one moment count each other
        told = False
        try:
            await delimited.send(stream, encode_stop_reply(status))
            told = True
        finally:
            self.called -= taken and not told
        return taken
