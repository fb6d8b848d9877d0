"""One message behind its length as a varint, on a stream of ours: read to the byte, so that what follows it is left.

Must not know what a message says. Every failure is a ProtocolError of the stream or a BadRelayMessage.
"""

import trio

from node.net.relay_messages import MAX_MESSAGE_BYTES, BadRelayMessage
from node.net.streams import PeerStream
from protocol.errors import DeadlinePassed

__all__ = ["receive", "send"]


async def send(stream: PeerStream, message: bytes) -> None:
    """Write one message. Raises ProtocolError as the stream does, ValueError for one that is too long."""
    size = len(message)
    if size > MAX_MESSAGE_BYTES:
        raise ValueError("a message for a relay is too long")
    prefix = bytes((size,)) if size < 0x80 else bytes((size & 0x7F | 0x80, size >> 7))
    await stream.write(prefix + message)


async def receive(stream: PeerStream, *, deadline_s: float) -> bytes:
    """The next message. Raises BadRelayMessage, DeadlinePassed, or as the stream does."""
    with trio.move_on_after(deadline_s):
        size = await _byte(stream)
        if size & 0x80:
            size = size & 0x7F | await _byte(stream) << 7
        if size > MAX_MESSAGE_BYTES:
            raise BadRelayMessage(f"a message of {size} bytes was announced")
        data = b""
        while len(data) < size:
            data += await stream.read(size - len(data), deadline_s=deadline_s)
        return data
    raise DeadlinePassed("no whole message came in time")


async def _byte(stream: PeerStream) -> int:
    return (await stream.read(1, deadline_s=60.0))[0]
