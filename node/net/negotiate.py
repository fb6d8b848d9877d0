"""Agreeing on a protocol: multistream-select 1.0 over any reader and writer. Must not know what is negotiated, or with
whom.

Everything is compared as bytes and bounded before it is read: the library's own version decodes what the peer sends
(bytes that are no UTF-8 raise out of it) and reads whatever length it announces. Every call needs a deadline from its
caller. Source: the multistream-select specification (varint length, text, newline).
"""

from collections.abc import Callable
from typing import Protocol

from node.net.errors import NegotiationFailed

__all__ = ["Duplex", "answer", "ask"]

_HELLO = b"/multistream/1.0.0"
_NOT_AVAILABLE = b"na"
_MAX_TOKEN_BYTES = 1024
_MAX_TRIES = 8


class Duplex(Protocol):
    """Anything that reads and writes bytes."""

    async def read(self, n: int | None = None) -> bytes:
        """1 to n bytes; b"" or an exception at the end."""
        ...

    async def write(self, data: bytes) -> None:
        """Send all of data."""
        ...


async def ask(conn: Duplex, protocol: str) -> None:
    """Return once the peer has agreed to speak protocol. Raises NegotiationFailed when it does not, or talks
    nonsense."""
    wanted = protocol.encode()
    # both tokens at once: a peer that follows the specification reads them one by one, and a round trip is saved
    await conn.write(_token(_HELLO) + _token(wanted))
    if await _read_token(conn) != _HELLO:
        raise NegotiationFailed("the peer does not speak multistream-select")
    reply = await _read_token(conn)
    if reply != wanted:
        refused = "does not serve" if reply == _NOT_AVAILABLE else "gave no proper answer for"
        raise NegotiationFailed(f"the peer {refused} {protocol}")


async def answer(conn: Duplex, serves: Callable[[str], bool]) -> str:
    """The first protocol the peer asks for that serves() says yes to. Raises NegotiationFailed after 8 tries or
    nonsense.

    A listing ("ls") is answered as not available: what a node serves is nobody's business before it is asked for.
    """
    await conn.write(_token(_HELLO))
    if await _read_token(conn) != _HELLO:
        raise NegotiationFailed("the peer does not speak multistream-select")
    for _ in range(_MAX_TRIES):
        token = await _read_token(conn)
        protocol = token.decode("ascii", "replace")
        if token.isascii() and token != _NOT_AVAILABLE and serves(protocol):
            await conn.write(_token(token))
            return protocol
        await conn.write(_token(_NOT_AVAILABLE))
    raise NegotiationFailed("the peer asked for nothing that is served here")


def _token(text: bytes) -> bytes:
    size = len(text) + 1
    if size >= _MAX_TOKEN_BYTES:
        raise NegotiationFailed("a protocol name is too long")
    prefix = bytes((size,)) if size < 0x80 else bytes((size & 0x7F | 0x80, size >> 7))
    return prefix + text + b"\n"


async def _read_token(conn: Duplex) -> bytes:
    size = (await _exactly(conn, 1))[0]
    if size & 0x80:
        high = (await _exactly(conn, 1))[0]
        size = size & 0x7F | high << 7
    if not 1 <= size <= _MAX_TOKEN_BYTES:
        raise NegotiationFailed(f"the peer announced a name of {size} bytes")
    token = await _exactly(conn, size)
    if token[-1:] != b"\n":
        raise NegotiationFailed("the peer sent a name without its end")
    return token[:-1]


async def _exactly(conn: Duplex, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = await conn.read(size - len(data))
        if not piece:
            raise NegotiationFailed("the peer hung up")
        data += piece
    return bytes(data)
