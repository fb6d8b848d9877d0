"""Yamux on the wire: headers out, headers and body pieces in. Pure bytes; must not know trio, libp2p or what a stream
is.

Source: the Yamux specification (hashicorp/yamux, spec.md) with its 12-byte header, version 0.
"""

import struct
from dataclasses import dataclass

from node.net.errors import MuxViolation

__all__ = [
    "ACK", "DATA", "FIN", "GO_AWAY", "GO_AWAY_NORMAL", "GO_AWAY_PROTOCOL_ERROR", "HEADER_BYTES", "INITIAL_WINDOW_BYTES",
    "MAX_PAYLOAD_BYTES", "PING", "PROTOCOL_ID", "RST", "SYN", "WINDOW_UPDATE", "FrameParser", "Header", "encode",
]

PROTOCOL_ID = "/yamux/1.0.0"
DATA, WINDOW_UPDATE, PING, GO_AWAY = 0, 1, 2, 3
SYN, ACK, FIN, RST = 1, 2, 4, 8
GO_AWAY_NORMAL, GO_AWAY_PROTOCOL_ERROR = 0, 1
HEADER_BYTES = 12
INITIAL_WINDOW_BYTES = 256 << 10
MAX_PAYLOAD_BYTES = 65535 - 16 - HEADER_BYTES
"""Header and payload of a frame fill one Noise message (65535 bytes with its 16-byte tag) and never spill into a
second."""

_HEADER = struct.Struct("!BBHII")


@dataclass(frozen=True, slots=True)
class Header:
    """One frame's header. length is the body's size for DATA, a credit, an opaque value or a code for the others."""

    kind: int
    flags: int
    stream_id: int
    length: int


def encode(kind: int, flags: int, stream_id: int, length: int) -> bytes:
    """The 12 bytes of a header."""
    return _HEADER.pack(0, kind, flags, stream_id, length)


class FrameParser:
    """Bytes in, headers and body pieces out.

    A header is handed out before a byte of its body is, so that the caller can refuse it; the parser itself never holds
    more than it was fed once.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._body_left = 0

    @property
    def body_left(self) -> int:
        """Bytes of the last DATA header's body that were not handed out yet."""
        return self._body_left

    def feed(self, data: bytes) -> None:
        """Add bytes as they came."""
        self._buffer += data

    def next(self) -> Header | bytes | None:
        """The next header, or the next piece of the last DATA header's body, or None when more bytes are needed.

        Raises MuxViolation for another version or an unknown kind.
        """
        if self._body_left:
            if not self._buffer:
                return None
            piece = bytes(self._buffer[: self._body_left])
            del self._buffer[: len(piece)]
            self._body_left -= len(piece)
            return piece
        if len(self._buffer) < HEADER_BYTES:
            return None
        version, kind, flags, stream_id, length = _HEADER.unpack_from(self._buffer)
        if version != 0 or kind > GO_AWAY:
            raise MuxViolation(f"no Yamux frame: version {version}, kind {kind}")
        del self._buffer[:HEADER_BYTES]
        if kind == DATA:
            self._body_left = length
        return Header(kind, flags, stream_id, length)
