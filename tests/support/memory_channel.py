"""A pair of FrameChannels in memory: what one end sends, the other receives, through the real framing and encoding.

Behaves like the real one where drivers can tell: finish() is ChannelClosed at the other end, reset() is ChannelLost at
both, content frames need a clearance that covers their texts. Takes no real time and opens nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import trio

from protocol import canonical, content, framing, names
from protocol.channel import Clearance
from protocol.errors import ChannelClosed, ChannelLost, DeadlinePassed, LocalProtocolError
from protocol.ids import peer_id_from_public_key

__all__ = ["ALICE", "BOB", "MemoryChannel", "TestClearance", "memory_channels"]

ALICE = peer_id_from_public_key(bytes([0xA1]) * 32)
BOB = peer_id_from_public_key(bytes([0xB0]) * 32)

_LOST = object()


@dataclass(frozen=True, slots=True)
class TestClearance:
    """A clearance for exactly these texts."""

    __test__ = False
    texts: tuple[str, ...]


class MemoryChannel:
    """One end. sent holds every frame that left it; cut_after makes the link break after that many sends."""

    def __init__(
        self, peer_id: str, protocol: str, out: trio.MemorySendChannel[object], into: trio.MemoryReceiveChannel[object],
    ) -> None:
        self.peer_id = peer_id
        self.protocol = protocol
        self.sent: list[msgspec.Struct] = []
        self.cut_after: int | None = None
        self.before_send: Callable[[msgspec.Struct], None] | None = None
        self._out = out
        self._into = into
        self._decoder = framing.FrameDecoder(names.FRAME_LIMITS[protocol])
        self._lost = False
        self._finished = False
        self._other: MemoryChannel | None = None

    async def send(self, frame: msgspec.Struct) -> None:
        if type(frame) in names.CONTENT:
            raise LocalProtocolError("a content frame needs a clearance")
        await self._send(frame)

    async def send_cleared(self, frame: msgspec.Struct, clearance: Clearance) -> None:
        if not set(content.content_texts(frame)) <= set(clearance.texts):
            raise LocalProtocolError("a text of this frame is not in the clearance")
        await self._send(frame)

    async def _send(self, frame: msgspec.Struct) -> None:
        if self.before_send is not None:
            self.before_send(frame)
        if self.cut_after is not None and len(self.sent) >= self.cut_after:
            await self.reset()
        if self._lost:
            await trio.lowlevel.checkpoint()
            raise ChannelLost
        if self._finished:
            raise LocalProtocolError("this side is finished")
        data = framing.encode_frame(canonical.encode(frame))
        self.sent.append(frame)
        try:
            await self._out.send(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise ChannelLost from None

    async def send_raw(self, data: bytes) -> None:
        """Put bytes on the wire as a hostile or broken peer would."""
        await self._out.send(data)

    async def receive(self, *, deadline_s: float) -> msgspec.Struct:
        with trio.move_on_after(deadline_s):
            while True:
                payload = self._decoder.next_frame()
                if payload is not None:
                    frame: msgspec.Struct = canonical.decode(payload, names.FRAMES[self.protocol])
                    return frame
                if self._lost:
                    await trio.lowlevel.checkpoint()
                    raise ChannelLost
                try:
                    item = await self._into.receive()
                except trio.EndOfChannel:
                    cut = self._lost or self._decoder.pending_bytes
                    raise (ChannelLost if cut else ChannelClosed) from None
                except trio.ClosedResourceError:
                    raise ChannelLost from None
                if item is _LOST:
                    self._lost = True
                else:
                    assert isinstance(item, bytes)
                    self._decoder.receive_data(item)
        raise DeadlinePassed

    async def finish(self) -> None:
        self._finished = True
        await self._out.aclose()

    async def reset(self) -> None:
        for end in (self, self._other):
            assert end is not None
            end._lost = True
            end._out.close()
            end._into.close()


def memory_channels(
    protocol: str, *, dialler: str = ALICE, answerer: str = BOB, capacity_frames: float = 64,
) -> tuple[MemoryChannel, MemoryChannel]:
    """(the dialler's end, the answerer's end); each end's peer_id is the other's id."""
    there_send, there_receive = trio.open_memory_channel[object](capacity_frames)
    back_send, back_receive = trio.open_memory_channel[object](capacity_frames)
    near = MemoryChannel(answerer, protocol, there_send, back_receive)
    far = MemoryChannel(dialler, protocol, back_send, there_receive)
    near._other, far._other = far, near
    return near, far
