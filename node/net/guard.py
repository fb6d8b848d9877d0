"""The one door for streams that a peer opens: agree on a protocol the gate allows, run the handler, survive whatever
happens.

In libp2p an exception in a stream handler, or a protocol name that is no UTF-8, ends the whole host. Nothing gets past
this function but cancellation. Must not know what the handlers do.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Collection

import trio
from libp2p.abc import INetStream

from node.net import negotiate
from node.net.errors import NegotiationFailed, reason_of, root_cause
from node.net.gate import Gate
from node.net.limits import NetLimits
from node.net.muxstream import MuxStream
from node.net.pace import NO_LIMIT, Pace
from node.net.streams import PeerStream
from protocol.errors import ProtocolError

__all__ = ["StreamGuard"]

_log = logging.getLogger(__name__)
_TOLD_EVERY = 100
_NAME = re.compile(r"/[A-Za-z0-9/._-]{1,63}")


class StreamGuard:
    """libp2p's handler for every inbound stream. caught counts streams and handlers that failed. How often a peer may
    open one is limited here, for every service alike."""

    def __init__(
        self,
        gate: Gate,
        protocols: Collection[str],
        on_stream: Callable[[PeerStream], Awaitable[None]],
        limits: NetLimits,
        not_served: Callable[[str, str], None] = lambda peer_id, protocol: None,
    ) -> None:
        """not_served(peer_id, protocol): a peer asked for something that it does not get. Must not block or raise."""
        self._not_served = not_served
        self._gate = gate
        self._protocols = frozenset(protocols)
        self._on_stream = on_stream
        self._limits = limits
        self.pace = Pace(limits.pace.streams, NO_LIMIT, trio.current_time)
        self.caught = 0
        self.spoken: set[str] = set()

    async def __call__(self, net_stream: INetStream) -> None:
        """Serve one inbound stream to its end. Raises nothing but cancellation."""
        stream: MuxStream = net_stream.muxed_stream
        peer_id = str(stream.muxed_conn.peer_id)
        if not self.pace.take(peer_id):
            if self.pace.refused % _TOLD_EVERY == 1:
                _log.warning("%s opens too many streams: %d refused", peer_id, self.pace.refused)
            return stream.abort("too many streams in a short time")
        over = False
        try:
            with trio.fail_after(self._limits.negotiate_s):
                protocol = await negotiate.answer(stream, lambda name: self._serves(peer_id, name))
            self.spoken.add(peer_id)
            over = await self._handle(PeerStream(stream, peer_id=peer_id, protocol=protocol, limits=self._limits))
        except NegotiationFailed as error:
            self.caught += 1
            _log.info("stream of %s refused: %s", peer_id, error)
        except Exception as error:  # a stranger's bytes went through a parser: anything may come out
            self.caught += 1
            _log.info("stream of %s broke: %s", peer_id, reason_of(error))
        finally:
            if not over:
                stream.abort("refused or failed")

    def _serves(self, peer_id: str, protocol: str) -> bool:
        served = protocol in self._protocols and self._gate.may(peer_id, protocol)
        if not served:
            self._not_served(peer_id, protocol if _NAME.fullmatch(protocol) else "?")
        return served

    async def _handle(self, stream: PeerStream) -> bool:
        try:
            await self._on_stream(stream)
        except Exception as error:  # a bug in one handler must not end the node
            self._note(stream.protocol, error)
            return False
        except BaseExceptionGroup as group:  # failed while it was being cancelled: only the cancellation goes on
            errors, rest = group.split(Exception)
            if errors is not None:
                self._note(stream.protocol, errors)
            if rest is None:
                return False
            raise rest from None
        await stream.linger(self._limits.linger_s)
        return True

    def _note(self, protocol: str, error: Exception) -> None:
        cause = root_cause(error)
        if isinstance(cause, ProtocolError):
            _log.info("a stream of %s ended: %s", protocol, cause.code)
            return
        self.caught += 1
        # its text may hold something personal: the type only
        _log.error("the handler of %s failed: %s", protocol, type(cause).__name__)
