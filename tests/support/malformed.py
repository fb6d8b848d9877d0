"""Malformed input of many kinds for any node's address: raw TCP, Noise, Yamux and stream level. Reproducible by seed.

A stranger's key gets no further than the Noise level (the node hangs up there, which is the point); a key that the node
knows reaches all levels. Nothing here raises: what a node does to a bad peer is the node's business, and the test's
question is only whether the node still serves honest peers.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import roguepeer
import trio

from node.net import yamux

__all__ = ["KINDS", "LEVELS", "Malformed", "malformed_inputs", "throw", "throw_at"]

LEVELS = ("tcp", "noise", "yamux", "stream")
_GRACE_S = 0.02


@dataclass(frozen=True)
class Malformed:
    """One input: at which level, what kind, which bytes, and whether the connection ends with RST or half-closed."""

    level: str
    kind: str
    payload: bytes


def _tokens(rng: Random) -> bytes:
    return roguepeer.HELLO + roguepeer.token(rng.choice((b"ls", b"na", b"", b"/noise/9", b"/plaintext/2.0.0")))


def _header(rng: Random) -> bytes:
    length = rng.choice((0, 1, 300, 1 << 20, 0xFFFFFFFF))
    return yamux.encode(rng.randrange(6), rng.randrange(32), rng.randrange(6), length)


def _stream(first: bytes) -> bytes:
    return roguepeer.syn(1) + roguepeer.data(1, first)


def _frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def _to(protocol: bytes, first: bytes) -> bytes:
    return _stream(roguepeer.HELLO + roguepeer.token(protocol) + first)


_PROTOCOLS = (b"/test/echo/1", b"/test/broken/1", b"/kith/link/1", b"/kith/pair/1", b"/kith/infer/1", b"/kith/mail/1")

_MAKERS: dict[str, dict[str, Callable[[Random], bytes]]] = {
    "tcp": {
        "nothing": lambda rng: b"",
        "garbage": lambda rng: rng.randbytes(rng.randrange(1, 2000)),
        "half a hello": lambda rng: roguepeer.HELLO[: rng.randrange(1, len(roguepeer.HELLO))],
        "huge varint": lambda rng: b"\xff" * rng.randrange(2, 40),
        "a token of 256 MiB": lambda rng: b"\x80\x80\x80\x80\x01" + rng.randbytes(100),
        "a name that is no text": lambda rng: roguepeer.HELLO + roguepeer.token(b"/\xff\xfe" + rng.randbytes(20)),
        "other protocols": _tokens,
        "a token without its end": lambda rng: roguepeer.HELLO + b"\x07/noise!",
        "an http request": lambda rng: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    },
    "noise": {
        "garbage for a handshake": lambda rng: roguepeer.HELLO + roguepeer.token(b"/noise") + rng.randbytes(300),
        "a first message of nothing": lambda rng: roguepeer.HELLO + roguepeer.token(b"/noise") + b"\x00\x00",
        "a first message that never comes": lambda rng: roguepeer.HELLO + roguepeer.token(b"/noise") + b"\xff\xff",
        "a zero key": lambda rng: roguepeer.HELLO + roguepeer.token(b"/noise") + b"\x00\x20" + bytes(32),
    },
    "yamux": {
        "garbage for frames": lambda rng: rng.randbytes(rng.randrange(1, 3000)),
        "odd headers": lambda rng: b"".join(_header(rng) for _ in range(rng.randrange(1, 30))),
        "half a header": lambda rng: roguepeer.syn(1)[: rng.randrange(1, 12)],
        "half a body": lambda rng: roguepeer.syn(1) + yamux.encode(yamux.DATA, 0, 1, 5000) + rng.randbytes(100),
        "over the window": lambda rng: roguepeer.syn(1) + yamux.encode(yamux.DATA, 0, 1, 1 << 22) + rng.randbytes(100),
        "opened and reset": lambda rng: b"".join(
            roguepeer.syn(2 * n + 1) + yamux.encode(yamux.WINDOW_UPDATE, yamux.RST, 2 * n + 1, 0) for n in range(50)),
    },
    "stream": {
        "garbage for a protocol": lambda rng: _stream(rng.randbytes(rng.randrange(1, 500))),
        "a protocol that is no text": lambda rng: _stream(
            roguepeer.HELLO + roguepeer.token(b"/\xc3\x28" + rng.randbytes(9))),
        "huge varint for a protocol": lambda rng: _stream(roguepeer.HELLO + b"\xff" * 30),
        "an endless row of protocols": lambda rng: _stream(roguepeer.HELLO + roguepeer.token(b"/x/1") * 50),
        "half a protocol and the end": lambda rng: _stream(roguepeer.HELLO + b"\x0e/te")
        + yamux.encode(yamux.WINDOW_UPDATE, yamux.FIN, 1, 0),
        "garbage after the protocol": lambda rng: _to(rng.choice(_PROTOCOLS), rng.randbytes(rng.randrange(1, 3000))),
        "a frame of 4 GiB": lambda rng: _to(rng.choice(_PROTOCOLS), b"\xff\xff\xff\xff" + rng.randbytes(50)),
        "frames of bad msgpack": lambda rng: _to(rng.choice(_PROTOCOLS), _frame(b"\xc1") + _frame(rng.randbytes(20))),
        "deep msgpack": lambda rng: _to(rng.choice(_PROTOCOLS), _frame(b"\x91" * 2000 + b"\xc0")),
        "half a frame and a reset": lambda rng: _to(rng.choice(_PROTOCOLS), b"\x00\x00\x10\x00" + rng.randbytes(9))
        + yamux.encode(yamux.WINDOW_UPDATE, yamux.RST, 1, 0),
    },
}

KINDS = tuple(f"{level}: {kind}" for level in LEVELS for kind in _MAKERS[level])


def malformed_inputs(count: int, seed: int = 1, levels: tuple[str, ...] = LEVELS) -> Iterator[Malformed]:
    """count inputs, all kinds of these levels in turn, different each time."""
    rng = Random(seed)
    kinds = [(level, kind) for level in levels for kind in _MAKERS[level]]
    for number in range(count):
        level, kind = kinds[number % len(kinds)]
        yield Malformed(level, kind, _MAKERS[level][kind](rng))


async def throw(address: str, item: Malformed, *, name: str) -> None:
    """Send one input to the node at this address, as the key of this name; wait a moment for what it does; hang up."""
    with trio.move_on_after(5):
        try:
            if item.level in ("tcp", "noise"):
                async with roguepeer.raw(address) as tcp:
                    await tcp.write(item.payload)
                    await _linger(tcp)
            else:
                async with roguepeer.muxed(address, name) as session:
                    await session.write(item.payload)
                    await _linger(session)
        except Exception:
            pass


async def _linger(conn: object) -> None:
    with trio.move_on_after(_GRACE_S):
        while await conn.read(1024):  # type: ignore[attr-defined]
            pass


async def throw_at(
    address: str, *, count: int, name: str, seed: int = 1, levels: tuple[str, ...] = LEVELS, at_once: int = 8
) -> Counter[str]:
    """Throw count inputs at a node, at_once at a time; returns how many of each kind were thrown."""
    thrown: Counter[str] = Counter()
    slots = trio.CapacityLimiter(at_once)

    async def one(item: Malformed) -> None:
        async with slots:
            await throw(address, item, name=name)
            thrown[f"{item.level}: {item.kind}"] += 1

    async with trio.open_nursery() as nursery:
        for item in malformed_inputs(count, seed, levels):
            nursery.start_soon(one, item)
    return thrown
