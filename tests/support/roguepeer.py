"""A peer that breaks rules: it dials, proves its key, and then writes whatever bytes a test wants at any layer."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.peer.id import ID
from netpair import HANG_S, port_of, seed_of

from node.net import negotiate, yamux
from node.net.noise import NOISE_ID, GatedNoise
from node.net.rawconn import TcpConnection, wrap


def peer_id_of(name: str) -> str:
    return str(ID.from_pubkey(create_new_key_pair(seed_of(name)).public_key))


@asynccontextmanager
async def raw(address: str, local: str | None = None) -> AsyncIterator[TcpConnection]:
    """A bare TCP connection, closed abruptly at the end. local: the address that it comes from."""
    host = address.split("/")[2]
    tcp = TcpConnection(await trio.open_tcp_stream(host, port_of(address), local_address=local))
    try:
        yield tcp
    finally:
        tcp.abort()


@asynccontextmanager
async def secured(address: str, name: str, local: str | None = None) -> AsyncIterator[Any]:
    """A Noise connection as this name's key; no multiplexer yet."""
    async with raw(address, local) as tcp:
        conn = wrap(tcp, dialled=True)
        with trio.fail_after(HANG_S):
            await negotiate.ask(conn, NOISE_ID)
            yield await GatedNoise(create_new_key_pair(seed_of(name)), lambda _: True).secure_anyone(conn)


@asynccontextmanager
async def muxed(address: str, name: str) -> AsyncIterator[Any]:
    """A Noise connection on which Yamux was agreed: the test writes the frames itself."""
    async with raw(address) as tcp:
        conn = wrap(tcp, dialled=True)
        with trio.fail_after(HANG_S):
            await negotiate.ask(conn, NOISE_ID)
            session = await GatedNoise(create_new_key_pair(seed_of(name)), lambda _: True).secure_anyone(conn)
            await negotiate.ask(session, yamux.PROTOCOL_ID)
        yield session


async def knock(address: str, local: str, enough: Callable[[], bool], counts: Counter[str]) -> None:
    """Strangers with real keys call, one after the other, as fast as they can. counts: how many were "proven", which is
    after the node has made its part of the handshake, how many "turned away"; "late" ones tell nothing."""
    number = 0
    while not enough():
        number += 1
        try:
            with trio.fail_after(10):
                async with secured(address, f"stranger {number % 8}", local):
                    counts["proven"] += 1
        except trio.TooSlowError:
            counts["late"] += 1
        except (Exception, ExceptionGroup):
            counts["turned away"] += 1


def token(text: bytes) -> bytes:
    """A multistream token, whatever its bytes."""
    size = len(text) + 1
    return (bytes((size,)) if size < 128 else bytes((size & 127 | 128, size >> 7))) + text + b"\n"


HELLO = token(b"/multistream/1.0.0")


def syn(stream_id: int) -> bytes:
    return yamux.encode(yamux.WINDOW_UPDATE, yamux.SYN, stream_id, 0)


def data(stream_id: int, body: bytes, flags: int = 0) -> bytes:
    return yamux.encode(yamux.DATA, flags, stream_id, len(body)) + body
