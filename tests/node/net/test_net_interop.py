"""Our node and libp2p as it comes understand each other, whoever dials."""

import stockpeer
import trio
from libp2p.peer.id import ID
from multiaddr import Multiaddr
from netpair import ECHO, make, say, serving

from node.net.errors import ProtocolNotServed


async def test_we_dial_a_stock_host() -> None:
    ours, server = make("ours"), stockpeer.stock_host("server")
    ours.gate.allow(str(server.get_id()))
    async with stockpeer.running(server) as address, serving(ours):
        await ours.network.connect(str(server.get_id()), [address], timeout_s=5)
        for size in (10, 200_000, 2_000_000):
            stream = await ours.network.open(str(server.get_id()), ECHO, timeout_s=5)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stream.write, b"x" * size)
                seen = 0
                while seen < size:
                    seen += len(await stream.read(1 << 20, deadline_s=5))
            await stream.close_write()
        try:
            await ours.network.open(str(server.get_id()), "/test/none/1", timeout_s=5)
        except ProtocolNotServed:
            pass
        else:
            raise AssertionError("a stock host does not serve this")
        stream = await ours.network.open(str(server.get_id()), ECHO, timeout_s=5)
        assert await say(stream, b"still there") == b"still there"


async def test_a_stock_host_dials_us() -> None:
    ours, client = make("ours"), stockpeer.stock_host("client")
    ours.gate.allow(str(client.get_id()))
    async with stockpeer.running(client), serving(ours):
        connection = await client.get_network().dial_addr(Multiaddr(ours.addresses[0]), ID.from_string(ours.peer_id))
        with trio.fail_after(10):
            for _ in range(3):
                stream = await client.new_stream(ID.from_string(ours.peer_id), [ECHO])
                await stream.write(b"y" * 100_000)
                seen = b""
                while len(seen) < 100_000:
                    seen += await stream.read(1 << 16)
                await stream.close()
        assert ours.network.connected() == {str(client.get_id())}
        await connection.close()
