"""A FrameChannel straight over a stream: the real framing and encoding, without the egress guard in front."""

import msgspec

from node.net.streams import PeerStream
from protocol import canonical, framing, names
from protocol.channel import Clearance


class PlainChannel:
    """What the guard's channel is, minus the guard. For tests of the layers below it."""

    def __init__(self, stream: PeerStream) -> None:
        self._stream = stream
        self._decoder = framing.FrameDecoder(names.FRAME_LIMITS[stream.protocol])

    @property
    def peer_id(self) -> str:
        return self._stream.peer_id

    @property
    def protocol(self) -> str:
        return self._stream.protocol

    async def send(self, frame: msgspec.Struct) -> None:
        await self._stream.write(framing.encode_frame(canonical.encode(frame)))

    async def send_cleared(self, frame: msgspec.Struct, clearance: Clearance) -> None:
        await self.send(frame)

    async def receive(self, *, deadline_s: float) -> msgspec.Struct:
        while (payload := self._decoder.next_frame()) is None:
            self._decoder.receive_data(await self._stream.read(1 << 16, deadline_s=deadline_s))
        frame: msgspec.Struct = canonical.decode(payload, names.FRAMES[self._stream.protocol])
        return frame

    async def finish(self) -> None:
        await self._stream.close_write()

    async def reset(self) -> None:
        await self._stream.reset()
