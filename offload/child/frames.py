"""Bytes of the pipe between the daemon and a child, cut into frames and back.

A frame is a little-endian u32 length and that many bytes of msgpack. Works on bytes only, except `BlockingPipe`, the
child's own end. Must not know what the frames mean, trio, or processes.
"""

import os
import select
import struct
import threading
from collections.abc import Iterator

from offload.child.errors import FrameTooLarge

__all__ = ["FRAME_LIMIT_BYTES", "BlockingPipe", "FrameSplitter", "join_frame"]

FRAME_LIMIT_BYTES = 16 * 1024 * 1024
_LENGTH = struct.Struct("<I")
_READ_BYTES = 64 * 1024


def join_frame(payload: bytes, limit_bytes: int = FRAME_LIMIT_BYTES) -> bytes:
    """The payload with its length in front. Raises FrameTooLarge above limit_bytes."""
    if len(payload) > limit_bytes:
        raise FrameTooLarge(f"frame of {len(payload)} bytes, limit {limit_bytes}")
    return _LENGTH.pack(len(payload)) + payload


class FrameSplitter:
    """Payloads out of a byte stream that arrives in any pieces. Holds at most one unfinished frame."""

    def __init__(self, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The payloads that data completes, in order. Raises FrameTooLarge before a body above the limit is read."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > self._limit_bytes:
                raise FrameTooLarge(f"frame of {length} bytes announced, limit {self._limit_bytes}")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[_LENGTH.size:end])
            del self._buffer[:end]
            yield payload

    @property
    def pending_bytes(self) -> int:
        """How much of an unfinished frame is held."""
        return len(self._buffer)


class BlockingPipe:
    """The child's end of the pipe, for plain threads.

    Uses read and write on the descriptor, not send and recv: those still work once the box denies the socket calls.
    """

    def __init__(self, fd: int, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
        self._fd = fd
        self._limit_bytes = limit_bytes
        self._write_lock = threading.Lock()
        self._splitter = FrameSplitter(limit_bytes)

    def write(self, payload: bytes) -> None:
        """Write one frame; blocks while the daemon does not read. Raises BrokenPipeError once the daemon is gone."""
        rest = memoryview(join_frame(payload, self._limit_bytes))
        with self._write_lock:
            while rest:
                rest = rest[os.write(self._fd, rest):]

    def more_waits(self) -> bool:
        """Whether something was read already or can be at once, the end too. For the thread that reads."""
        return bool(self._splitter.pending_bytes or select.select([self._fd], [], [], 0)[0])

    def read_all(self) -> Iterator[bytes]:
        """Payloads until the daemon closes its end. Raises FrameTooLarge."""
        while True:
            try:
                data = os.read(self._fd, _READ_BYTES)
            except ConnectionResetError:
                return
            if not data:
                return
            yield from self._splitter.feed(data)
