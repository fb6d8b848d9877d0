"""Length-prefixed frames: bytes of any chunking in, whole payloads out.

A frame is 4 bytes big-endian length and that many bytes of payload. Must not know what a payload means, nor any stream;
the end of a stream is told by the driver, and `pending_bytes` says whether it came in the middle of a frame.
"""

from protocol import limits
from protocol.errors import BadEncoding, FrameTooLarge, LocalProtocolError, RemoteProtocolError

__all__ = ["FrameDecoder", "encode_frame"]


def encode_frame(payload: bytes) -> bytes:
    """The payload with its length in front. Raises LocalProtocolError when it is empty or above MAX_FRAME_BYTES."""
    if not 0 < len(payload) <= limits.MAX_FRAME_BYTES:
        raise LocalProtocolError(f"a frame of {len(payload)} bytes cannot be sent (limit {limits.MAX_FRAME_BYTES})")
    return len(payload).to_bytes(limits.FRAME_HEADER_BYTES, "big") + payload


class FrameDecoder:
    """Cuts a byte stream into frames. After an error it stays broken: the same error is raised again."""

    def __init__(self, limit_bytes: int) -> None:
        """limit_bytes: the largest payload of this protocol (names.FRAME_LIMITS)."""
        self._limit_bytes = limit_bytes
        self._buffer = bytearray()
        self._broken: RemoteProtocolError | None = None

    @property
    def pending_bytes(self) -> int:
        """Bytes received but not yet returned; above zero at the end of a stream, the last frame was cut off."""
        return len(self._buffer)

    def receive_data(self, data: bytes) -> None:
        """Take the next bytes. Raises FrameTooLarge as soon as the next frame's length is known to be above the
        limit.
        """
        self._raise_if_broken()
        self._buffer += data
        self._next_length()

    def next_frame(self) -> bytes | None:
        """The next whole payload, or None until more bytes came. Raises FrameTooLarge or BadEncoding (an empty
        frame).
        """
        self._raise_if_broken()
        length = self._next_length()
        end = limits.FRAME_HEADER_BYTES + length
        if length == 0 or len(self._buffer) < end:
            return None
        payload = bytes(self._buffer[limits.FRAME_HEADER_BYTES : end])
        del self._buffer[:end]
        return payload

    def _next_length(self) -> int:
        """The announced length of the next frame, 0 while the header is not complete."""
        if len(self._buffer) < limits.FRAME_HEADER_BYTES:
            return 0
        length = int.from_bytes(self._buffer[: limits.FRAME_HEADER_BYTES], "big")
        if length > self._limit_bytes:
            self._fail(FrameTooLarge(f"a frame of {length} bytes was announced (limit {self._limit_bytes})"))
        if length == 0:
            self._fail(BadEncoding("an empty frame"))
        return length

    def _fail(self, error: RemoteProtocolError) -> None:
        self._broken = error
        self._buffer.clear()  # nothing of a hostile stream is kept
        raise error

    def _raise_if_broken(self) -> None:
        if self._broken is not None:
            raise self._broken
