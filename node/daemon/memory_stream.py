"""Two ends of a byte stream inside this process, with the manners of a stream to a peer: deadlines, and an honest end.

Implements node.privacy.channel.ByteStream. Must not know frames or who is at either end.
"""

from dataclasses import dataclass

import trio

from protocol.errors import ChannelClosed, ChannelLost, DeadlinePassed

__all__ = ["StreamEnd", "stream_pair"]

_PIECES_LIMIT = 64
_WRITE_DEADLINE_S = 30.0


@dataclass(slots=True)
class _Road:
    """What both ends share."""

    lost: bool = False


class StreamEnd:
    """One end. One reader; writers take turns."""

    def __init__(
        self, peer_id: str, protocol: str, outgoing: trio.MemorySendChannel[bytes],
        incoming: trio.MemoryReceiveChannel[bytes], road: _Road,
    ) -> None:
        self.peer_id = peer_id
        self.protocol = protocol
        self._outgoing = outgoing
        self._incoming = incoming
        self._road = road
        self._left = b""

    async def write(self, data: bytes) -> None:
        """Hand over all of data. Raises ChannelLost, ChannelClosed after close_write(), DeadlinePassed."""
        try:
            with trio.fail_after(_WRITE_DEADLINE_S):
                await self._outgoing.send(bytes(data))
        except trio.ClosedResourceError as error:
            raise (ChannelLost("reset") if self._road.lost else ChannelClosed("already ended")) from error
        except trio.BrokenResourceError as error:
            raise ChannelLost("the other end is gone") from error
        except trio.TooSlowError as error:
            raise DeadlinePassed("the other end takes no more data") from error

    async def read(self, max_bytes: int, *, deadline_s: float) -> bytes:
        """1 to max_bytes bytes. Raises ChannelClosed at a clean end, ChannelLost after a reset, DeadlinePassed."""
        while not self._left:
            try:
                with trio.fail_after(deadline_s):
                    self._left = await self._incoming.receive()
            except (trio.EndOfChannel, trio.ClosedResourceError) as error:
                raise (ChannelLost("reset") if self._road.lost else ChannelClosed("ended")) from error
            except trio.TooSlowError as error:
                raise DeadlinePassed(f"nothing came for {deadline_s:g} s") from error
        data, self._left = self._left[:max_bytes], self._left[max_bytes:]
        return data

    async def close_write(self) -> None:
        """End this side; reading goes on."""
        self._outgoing.close()
        await trio.lowlevel.checkpoint()

    async def reset(self) -> None:
        """Drop both directions. Never raises."""
        self.drop()

    def drop(self) -> None:
        """reset() for code that can't wait."""
        self._road.lost = True
        self._left = b""
        self._outgoing.close()
        self._incoming.close()


def stream_pair(protocol: str, *, near_sees: str, far_sees: str) -> tuple[StreamEnd, StreamEnd]:
    """Both ends; near_sees is the peer id that the near one talks to."""
    there, at_far = trio.open_memory_channel[bytes](_PIECES_LIMIT)
    back, at_near = trio.open_memory_channel[bytes](_PIECES_LIMIT)
    road = _Road()
    return StreamEnd(near_sees, protocol, there, at_near, road), StreamEnd(far_sees, protocol, back, at_far, road)
