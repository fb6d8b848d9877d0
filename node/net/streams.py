"""One stream to one peer for one protocol: bytes with deadlines, and an honest end. Must not know frames or what they
say.

Only an END frame of the protocol above is an end. This layer tells apart what it can: ChannelClosed means that the
peer's FIN arrived after its last byte (it stopped sending on purpose, perhaps in the middle of a sentence); ChannelLost
means a reset, a crash or a dead link. A peer that dies never reads as ChannelClosed.
"""

import trio
from libp2p.stream_muxer.exceptions import MuxedStreamClosed, MuxedStreamEOF, MuxedStreamError, MuxedStreamReset

from node.net import yamux
from node.net.limits import NetLimits
from node.net.muxstream import MuxStream
from protocol.errors import ChannelClosed, ChannelLost, DeadlinePassed

__all__ = ["PeerStream"]

_DRAIN_BYTES = 1 << 20


class PeerStream:
    """A stream whose peer is proven and whose protocol is agreed. One reader; writers take turns, whole writes at a
    time."""

    def __init__(self, stream: MuxStream, *, peer_id: str, protocol: str, limits: NetLimits) -> None:
        self.peer_id = peer_id
        self.protocol = protocol
        self._stream = stream
        self._limits = limits
        self._turn = trio.StrictFIFOLock()

    async def write(self, data: bytes) -> None:
        """Hand over all of data. That it returns proves nothing about the peer: only an answer does.

        Raises ChannelLost when the stream broke, ChannelClosed after close_write(), DeadlinePassed when the peer took
        nothing for limits.write_stall_s. A write that was cancelled or timed out after its first byte resets the
        stream, since the peer would wait for the rest for ever; the connection and its other streams are not touched.
        """
        async with self._turn:
            torn = True
            try:
                view = memoryview(data)
                while view:
                    chunk = view[: yamux.MAX_PAYLOAD_BYTES]
                    with trio.move_on_after(self._limits.write_stall_s) as stall:
                        await self._stream.write(chunk)
                    if stall.cancelled_caught:
                        raise DeadlinePassed("The peer takes no more data.")
                    view = view[len(chunk):]
                torn = False
            except MuxedStreamClosed as error:
                torn = False
                raise ChannelClosed("This side of the stream was already ended.") from error
            except MuxedStreamError as error:
                raise ChannelLost(str(error)) from error
            finally:
                if torn:
                    self._stream.abort("a write was cut short")

    async def read(self, max_bytes: int, *, deadline_s: float) -> bytes:
        """1 to max_bytes bytes, as soon as any are there; never b"".

        Raises ChannelClosed at the peer's clean end, ChannelLost at any other, DeadlinePassed after deadline_s seconds
        without a byte. Cancelling a read loses nothing.
        """
        try:
            with trio.fail_after(deadline_s):
                return await self._stream.read(max_bytes)
        except trio.TooSlowError:
            raise DeadlinePassed(f"Nothing came for {deadline_s:g} s.") from None
        except MuxedStreamEOF as error:
            raise ChannelClosed from error
        except MuxedStreamReset as error:
            raise ChannelLost(str(error)) from error

    async def close_write(self) -> None:
        """End our side cleanly after what was written; reading goes on. Fine on a stream that is over."""
        async with self._turn:
            self._stream.end()

    async def reset(self) -> None:
        """Drop the stream in both directions at once; the peer reads ChannelLost. Never raises, fine when it is
        over."""
        self.abort("reset by this side")

    def abort(self, why: str) -> None:
        """reset() for code that cannot wait."""
        self._stream.abort(why)

    async def linger(self, timeout_s: float) -> None:
        """End our side and give the peer timeout_s to end its own, reading at most 1 MiB of what it still sends; then
        reset.

        For the end of a handler: a reset at once would take the last answer out of the peer's hands.
        """
        await self.close_write()
        seen = 0
        try:
            with trio.move_on_after(timeout_s):
                while seen < _DRAIN_BYTES:
                    seen += len(await self._stream.read(_DRAIN_BYTES))
        except MuxedStreamError:
            return  # the peer ended its side, or broke off: either way it is over
        finally:
            self._stream.abort("the handler is done")
