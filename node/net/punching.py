"""Hole punching: over a relayed connection the two ends tell each other where relays see them, then dial at once.

A NAT lets a call in when a call to its origin has just left; two calls that meet are one TCP connection (simultaneous
open, RFC 9293 section 3.5). A NAT that shows another port to each other end (symmetric) can't be passed so; the peers
stay relayed. The side that was called through the relay begins, as in the libp2p specification relay/DCUtR.md. Must not
know where the addresses come from.
"""

import ipaddress
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import trio

from node.errors import KithError
from node.net import delimited
from node.net.addresses import Address
from node.net.connections import Connection
from node.net.dial import race
from node.net.errors import WireError, reason_of
from node.net.limits import RelayLimits
from node.net.relay_messages import BadRelayMessage, Punch, decode_punch, encode_punch
from node.net.streams import PeerStream
from protocol.errors import ProtocolError

__all__ = ["Puncher"]

_log = logging.getLogger(__name__)
_AGAIN_S = 0.1


class Punching(Protocol):
    """What the puncher needs of the session."""

    async def punch(self, address: Address, peer_id: str, *, begins: bool) -> Connection:
        """Dial at the same moment as the other side."""
        ...

    def discard(self, connection: Connection) -> None:
        """Close a connection that nobody needs."""
        ...


class Puncher:
    """Both sides of the exchange."""

    def __init__(self, observed: Callable[[], Sequence[Address]], limits: RelayLimits) -> None:
        """observed: where others see this node's calls come from."""
        self._observed = observed
        self._limits = limits
        self._busy: set[str] = set()
        self.problems: dict[str, str] = {}
        """Peer -> why the last try to reach it directly failed."""

    async def begin(
        self, session: Punching, peer_id: str, open_stream: Callable[[], Awaitable[PeerStream]]
    ) -> bool:
        """One try from the side that was called; whether a direct connection came of it. Never raises for what the
        peer does. open_stream: on the relayed connection."""
        ours = self._worth_telling()
        if peer_id in self._busy:
            return False  # a try is under way, and says itself what came of it
        if not ours:
            self.problems[peer_id] = "no other node has told yet where it sees this one"
            return False
        self._busy.add(peer_id)
        try:
            stream = await open_stream()
            try:
                theirs = await self._agree(stream, ours)
                return await self._dial(session, peer_id, theirs, begins=True)
            finally:
                stream.abort("the exchange is over")
        except (KithError, ProtocolError, WireError) as error:
            self.problems[peer_id] = reason_of(error)
            _log.info("no hole punched to %s: %s", peer_id, reason_of(error))
            return False
        finally:
            self._busy.discard(peer_id)

    async def _agree(self, stream: PeerStream, ours: tuple[Address, ...]) -> tuple[Address, ...]:
        """Exchange addresses and send the word to start; back when it is time to dial."""
        wait_s = self._limits.message_s
        asked_s = trio.current_time()
        await delimited.send(stream, encode_punch(Punch("connect", ours)))
        reply = decode_punch(await delimited.receive(stream, deadline_s=wait_s))
        round_trip_s = trio.current_time() - asked_s
        if reply.kind != "connect":
            raise BadRelayMessage("an answer out of order")
        await delimited.send(stream, encode_punch(Punch("sync")))
        await trio.sleep(min(round_trip_s / 2, wait_s))
        return reply.addresses

    async def answer(self, session: Punching, stream: PeerStream) -> None:
        """One exchange from the side that called. Raises ProtocolError when the peer's stream breaks."""
        if stream.peer_id in self._busy:
            return
        self._busy.add(stream.peer_id)
        wait_s = self._limits.message_s
        try:
            theirs = decode_punch(await delimited.receive(stream, deadline_s=wait_s))
            await delimited.send(stream, encode_punch(Punch("connect", self._worth_telling())))
            word = decode_punch(await delimited.receive(stream, deadline_s=wait_s))
            if (theirs.kind, word.kind) == ("connect", "sync"):
                await self._dial(session, stream.peer_id, theirs.addresses, begins=False)
        except WireError as error:
            _log.info("%s broke off hole punching: %s", stream.peer_id, reason_of(error))
        finally:
            self._busy.discard(stream.peer_id)

    async def _dial(self, session: Punching, peer_id: str, theirs: Sequence[Address], *, begins: bool) -> bool:
        targets = [one for one in theirs if _may_be_dialled(one)][: self._limits.punch_addresses]

        async def reach(address: Address) -> Connection:
            while True:  # a call that comes too early is refused by some NATs; the next one may fit
                try:
                    return await session.punch(address, peer_id, begins=begins)
                except OSError:
                    await trio.sleep(_AGAIN_S)

        try:
            await race(
                targets, reach, each_s=self._limits.punch_s, timeout_s=self._limits.punch_s, discard=session.discard
            )
        except KithError as error:
            self.problems[peer_id] = error.text
            _log.info("no hole punched to %s: %s", peer_id, error.code)
            return False
        self.problems.pop(peer_id, None)
        return True

    def _worth_telling(self) -> tuple[Address, ...]:
        return tuple(one for one in self._observed() if _may_be_dialled(one))[: self._limits.punch_addresses]


def _may_be_dialled(address: Address) -> bool:
    """A peer chooses these: no names, nothing on this machine, no groups."""
    if address.is_name or not address.port:
        return False
    ip = ipaddress.ip_address(address.host)
    return not (ip.is_loopback or ip.is_multicast or ip.is_unspecified or ip.is_link_local)
