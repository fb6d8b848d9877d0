"""libp2p as it comes, without any of our fixes: what the negative controls run against, and what interop is shown
with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from libp2p import new_host
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.crypto.x25519 import create_new_key_pair as new_noise_pair
from libp2p.network.config import ConnectionConfig
from libp2p.security.noise.transport import PROTOCOL_ID as NOISE
from libp2p.security.noise.transport import Transport
from libp2p.stream_muxer.yamux.yamux import PROTOCOL_ID as YAMUX
from libp2p.stream_muxer.yamux.yamux import Yamux
from multiaddr import Multiaddr
from netpair import ECHO, SINK, seed_of


def stock_host(name: str, *, plain_defaults: bool = False, muxer: type = Yamux, **config: Any) -> Any:
    """A libp2p host: Noise and Yamux only, or with every default."""
    pair = create_new_key_pair(seed_of(name))
    if plain_defaults:
        host = new_host(key_pair=pair)
    else:
        host = new_host(
            key_pair=pair,
            sec_opt={NOISE: Transport(pair, noise_privkey=new_noise_pair().private_key)},
            muxer_opt={YAMUX: muxer},
            connection_config=ConnectionConfig(**config) if config else None,
        )
    host.set_stream_handler(ECHO, echo)
    host.set_stream_handler(SINK, sink)
    return host


async def echo(stream: Any) -> None:
    try:
        while True:
            await stream.write(await stream.read(1 << 16))
    except Exception:
        await stream.reset()


async def sink(stream: Any) -> None:
    await trio.sleep_forever()


@asynccontextmanager
async def running(host: Any, listen: str = "/ip4/127.0.0.1/tcp/0") -> AsyncIterator[str]:
    """The host, serving; yields its address without the peer id."""
    async with host.run([Multiaddr(listen)]):
        try:
            yield str(host.get_network().listeners[listen].get_addrs()[0])
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(3):
                await host.close()
