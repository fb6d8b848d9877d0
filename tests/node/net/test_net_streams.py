"""Writes that a cancel cannot tear, and ends that are told apart."""

import signal
from typing import Any

import pytest
import roguepeer
import stockpeer
import trio
from libp2p.network.stream.exceptions import StreamEOF
from multiaddr import Multiaddr
from netpair import ECHO, HELD, SINK, SOURCE, echoes, linked_pair, make, read_all, say, serving
from netprocess import child

from node.net.limits import NetLimits
from protocol.errors import ChannelClosed, ChannelLost, DeadlinePassed

BIG = b"b" * (8 << 20)


async def test_25_cancels_in_the_middle_of_large_writes_harm_no_other_stream() -> None:
    async with linked_pair() as (a, b):
        witness = await b.network.open(a.peer_id, ECHO, timeout_s=5)
        connection = b.network.connection(a.peer_id)
        cut = lost = 0
        for attempt in range(25):
            stream = await b.network.open(a.peer_id, SINK, timeout_s=5)
            with trio.move_on_after(0.002 + 0.004 * attempt) as scope:
                while True:
                    await stream.write(BIG)
            cut += scope.cancelled_caught
            try:
                await stream.write(b"more")
            except ChannelLost:     # its own stream sent half a message: it is gone, and says so
                lost += 1
            else:                   # cancelled before the first byte of one, as a busy machine may have it
                await stream.reset()
            assert await say(witness, b"%d" % attempt) == b"%d" % attempt
            assert await echoes(b, a.peer_id)
        assert cut == 25
        assert lost > 12    # most were in the middle of one
        assert b.network.connection(a.peer_id) == connection


async def test_control_a_cancelled_write_kills_a_stock_connection() -> None:
    server, client = stockpeer.stock_host("server"), stockpeer.stock_host("client")

    async def swallow(stream: Any) -> None:
        while True:
            await stream.read(1 << 16)

    server.set_stream_handler(SINK, swallow)
    survived = 0
    try:
        async with stockpeer.running(server) as address, stockpeer.running(client):
            await client.get_network().dial_addr(Multiaddr(address), server.get_id())
            for attempt in range(25):
                with trio.fail_after(10):
                    stream = await client.new_stream(server.get_id(), [SINK])
                with trio.move_on_after(0.002 + 0.004 * attempt):
                    await stream.write(BIG)
                survived += 1
    except BaseExceptionGroup:
        pass  # the host died of it as well
    except Exception:
        assert survived < 25
    assert survived < 25


async def test_a_clean_end_comes_after_the_last_byte() -> None:
    async with linked_pair() as (a, b):
        stream = await b.network.open(a.peer_id, ECHO, timeout_s=5)
        await stream.write(b"x" * 200_000)
        await stream.close_write()
        assert await read_all(stream) == (200_000, ChannelClosed)


async def test_a_reset_is_never_a_clean_end() -> None:
    async with linked_pair() as (a, b):
        stream = await b.network.open(a.peer_id, SOURCE, timeout_s=5)  # sends 1 MiB, then its handler dies
        total, end = await read_all(stream)
        assert end is ChannelLost
        assert total <= 1 << 20


async def test_control_a_lost_connection_reads_as_a_clean_end_on_stock() -> None:
    server, client = stockpeer.stock_host("server"), stockpeer.stock_host("client")

    async def part(stream: Any) -> None:
        await stream.write(b"half of it")
        await trio.sleep(0.2)
        await server.disconnect(client.get_id())

    server.set_stream_handler(SOURCE, part)
    async with stockpeer.running(server) as address, stockpeer.running(client):
        await client.get_network().dial_addr(Multiaddr(address), server.get_id())
        stream = await client.new_stream(server.get_id(), [SOURCE])
        assert await stream.read(100) == b"half of it"
        with pytest.raises(StreamEOF), trio.fail_after(5):  # what a finished transfer looks like
            await stream.read(100)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_killed_peer_is_never_a_clean_end(how: signal.Signals) -> None:
    b = make("b")
    async with serving(b), child("kith", "a", b.peer_id) as a:
        b.gate.allow(a.peer_id)
        await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
        stream = await b.network.open(a.peer_id, ECHO, timeout_s=5)
        assert await say(stream, b"x" * 50_000) == b"x" * 50_000
        await stream.write(b"y" * 100_000)
        await stream.read(1, deadline_s=5)
        a.signal(how)
        total, end = await read_all(stream)
        assert end is ChannelLost
        assert total < 100_000


async def test_going_offline_in_the_middle_is_never_a_clean_end() -> None:
    a, b = make("a"), make("b")
    a.gate.allow(b.peer_id)
    b.gate.allow(a.peer_id)
    async with serving(b):
        async with serving(a):
            await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
            stream = await b.network.open(a.peer_id, ECHO, timeout_s=5)
            assert await say(stream, b"hello") == b"hello"
        assert await read_all(stream) == (0, ChannelLost)


async def test_reads_have_deadlines_and_lose_nothing_when_cancelled() -> None:
    async with linked_pair() as (a, b):
        stream = await b.network.open(a.peer_id, ECHO, timeout_s=5)
        with pytest.raises(DeadlinePassed):
            await stream.read(10, deadline_s=0.05)
        for _ in range(20):
            with trio.move_on_after(0.001):
                await stream.read(10, deadline_s=5)
        assert await say(stream, b"0123456789") == b"0123456789"


async def test_a_peer_that_takes_nothing_ends_the_stream_not_the_connection() -> None:
    async with linked_pair(NetLimits(write_stall_s=0.3)) as (a, b):
        stuck = await b.network.open(a.peer_id, HELD, timeout_s=5)
        with pytest.raises(DeadlinePassed):
            await stuck.write(BIG)
        with pytest.raises(ChannelLost):
            await stuck.write(b"x")
        assert await echoes(b, a.peer_id)


async def test_concurrent_writers_take_turns() -> None:
    async with linked_pair() as (a, b):
        stream = await b.network.open(a.peer_id, ECHO, timeout_s=5)
        async with trio.open_nursery() as nursery:
            for letter in b"abcdef":
                nursery.start_soon(stream.write, bytes([letter]) * 300_000)
            answer = b""
            while len(answer) < 1_800_000:
                answer += await stream.read(1 << 20, deadline_s=5)
        blocks = [answer[at : at + 300_000] for at in range(0, len(answer), 300_000)]
        assert sorted({block[0] for block in blocks}) == list(b"abcdef")
        assert all(len(set(block)) == 1 for block in blocks)


async def test_after_our_end_we_read_on_and_write_no_more() -> None:
    async with linked_pair() as (a, b):
        stream = await b.network.open(a.peer_id, ECHO, timeout_s=5)
        await stream.write(b"last")
        await stream.close_write()
        await stream.close_write()
        with pytest.raises(ChannelClosed):
            await stream.write(b"more")
        assert await read_all(stream) == (4, ChannelClosed)
        await stream.reset()
        await stream.reset()


async def test_streams_that_are_over_are_forgotten() -> None:
    async with linked_pair() as (a, b):
        for _ in range(300):
            assert await echoes(b, a.peer_id)
        with trio.fail_after(5):
            while any(node.network._session.table.best(peer.peer_id).muxer.open_streams  # type: ignore[union-attr]
                      for node, peer in ((a, b), (b, a))):
                await trio.sleep(0.01)


async def test_an_answer_on_a_finished_stream_is_not_torn_by_the_handlers_end() -> None:
    """The handler returns right after its last write: everything must still arrive."""
    a = make("a", handler=lambda stream: stream.write(b"z" * 150_000))
    b = make("b")
    a.gate.allow(b.peer_id)
    b.gate.allow(a.peer_id)
    async with serving(a, b):
        await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
        for _ in range(10):
            stream = await b.network.open(a.peer_id, ECHO, timeout_s=5)
            assert await read_all(stream) == (150_000, ChannelClosed)
            await stream.close_write()


async def test_roguepeers_key_is_what_tests_think() -> None:
    assert roguepeer.peer_id_of("a") == make("a").peer_id
