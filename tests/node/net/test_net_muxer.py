"""The multiplexer over memory: windows that grow within a pool, ends, floods, and libp2p's own at the other end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import trio
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.peer.id import ID
from libp2p.stream_muxer.exceptions import MuxedConnUnavailable, MuxedStreamClosed, MuxedStreamEOF, MuxedStreamReset
from libp2p.stream_muxer.yamux.yamux import Yamux
from netpair import seed_of, until

from node.net import yamux
from node.net.limits import MuxLimits
from node.net.muxer import Muxer
from node.net.muxstream import MuxStream

PEER = ID.from_pubkey(create_new_key_pair(seed_of("peer")).public_key)


class Wire:
    """What a muxer needs of a secured connection, over a memory stream; a message is at most 64 KiB, as Noise's are."""

    def __init__(self, stream: Any, *, is_initiator: bool) -> None:
        self._stream = stream
        self.is_initiator = is_initiator

    async def read(self, n: int | None = None) -> bytes:
        data: bytes = await self._stream.receive_some(n or 65519)
        return data

    async def write(self, data: bytes) -> None:
        await self._stream.send_all(data)

    async def close(self) -> None:
        await self._stream.aclose()

    def get_remote_address(self) -> None:
        return None

    def get_transport_addresses(self) -> list[object]:
        return []


@asynccontextmanager
async def pair(limits: MuxLimits | None = None, *, reference: bool = False) -> AsyncIterator[tuple[Any, Any]]:
    """(initiator, responder), both running; the responder is libp2p's own when reference is set."""
    left, right = trio.testing.memory_stream_pair()
    near = Muxer(Wire(left, is_initiator=True), PEER, is_initiator=True, limits=limits)
    far: Any = Wire(right, is_initiator=False)
    far = Yamux(far, PEER, is_initiator=False) if reference else Muxer(far, PEER, is_initiator=False, limits=limits)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(near.start)
        nursery.start_soon(far.start)
        await near.event_started.wait()
        await far.event_started.wait()
        yield near, far
        await near.close()
        await far.close()
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def scripted(limits: MuxLimits | None = None) -> AsyncIterator[tuple[Muxer, Any]]:
    """A responder of ours, and the raw end of its peer."""
    left, right = trio.testing.memory_stream_pair()
    muxer = Muxer(Wire(right, is_initiator=False), PEER, is_initiator=False, limits=limits)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(muxer.start)
        await muxer.event_started.wait()
        yield muxer, left
        await muxer.close()
        nursery.cancel_scope.cancel()


async def copy(source: Any, total: int) -> int:
    seen = 0
    while seen < total:
        seen += len(await source.read(1 << 20))
    return seen


@pytest.mark.parametrize("reference", [False, True])
async def test_large_data_both_ways_at_once(reference: bool) -> None:
    total = 3 << 20
    async with pair(reference=reference) as (near, far):
        ours = await near.open_stream()
        theirs = await far.accept_stream()
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ours.write, b"a" * total)
                nursery.start_soon(theirs.write, b"b" * total)
                nursery.start_soon(copy, ours, total)
                assert await copy(theirs, total) == total
            await ours.close()
            with pytest.raises(MuxedStreamEOF):
                await theirs.read(1)
            await theirs.close()
            with pytest.raises(MuxedStreamEOF):
                await ours.read(1)
        assert near.open_streams == 0


@pytest.mark.parametrize("reference", [False, True])
async def test_streams_opened_by_the_other_side(reference: bool) -> None:
    async with pair(reference=reference) as (near, far):
        for _ in range(100):
            theirs = await far.open_stream()
            await theirs.write(b"hello")
            ours = await near.accept_stream()
            assert await ours.read(100) == b"hello"
            await ours.write(b"back")
            assert await theirs.read(100) == b"back"
            await ours.close()
            await theirs.close()
        await until(lambda: near.open_streams == 0)


async def test_a_reset_is_told_and_keeps_what_came_before_it() -> None:
    async with pair() as (near, far):
        ours = await near.open_stream()
        await ours.write(b"before")
        await ours.reset()
        theirs = await far.accept_stream()
        assert await theirs.read(100) == b"before"
        with pytest.raises(MuxedStreamReset):
            await theirs.read(1)
        with pytest.raises(MuxedStreamReset):
            await theirs.write(b"x")
        with pytest.raises(MuxedStreamReset):
            await ours.read(1)


async def test_writing_after_the_end_is_refused() -> None:
    async with pair() as (near, _far):
        ours = await near.open_stream()
        await ours.close()
        with pytest.raises(MuxedStreamClosed):
            await ours.write(b"x")


async def test_everything_ends_with_the_connection() -> None:
    async with pair() as (near, far):
        ours = await near.open_stream()
        await ours.write(b"last words")
        theirs = await far.accept_stream()
        await near.close()
        await near.close()
        await until(lambda: far.is_closed)
        assert far.end_reason == "the peer went away (code 0)"
        assert await theirs.read(100) == b"last words"
        with pytest.raises(MuxedStreamReset):  # no FIN came: not a clean end
            await theirs.read(1)
        with pytest.raises(MuxedConnUnavailable):
            await near.open_stream()
        with pytest.raises(MuxedConnUnavailable):
            await far.accept_stream()
        assert not near.is_established


async def test_an_unread_stream_holds_its_writer_and_nobody_else() -> None:
    async with pair() as (near, far):
        stuck, lively = await near.open_stream(), await near.open_stream()
        await far.accept_stream()
        other = await far.accept_stream()
        with trio.move_on_after(0.2) as scope:
            await stuck.write(b"x" * (1 << 20))
        assert scope.cancelled_caught
        await lively.write(b"through")
        assert await other.read(100) == b"through"


async def test_windows_grow_up_to_their_limit_and_the_pool_and_give_it_back() -> None:
    limits = MuxLimits(growth_pool_bytes=1 << 20)  # one stream may take 768 KiB, the next finds 256 KiB
    async with pair(limits) as (near, far):
        near._rtt_s = far._rtt_s = 10.0  # a long way: windows are what holds the peer back
        taken = []
        for _ in range(3):
            ours = await near.open_stream()
            theirs = await far.accept_stream()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ours.write, b"x" * (4 << 20))
                await copy(theirs, 4 << 20)
            taken.append((theirs, theirs.pool_taken_bytes))
        assert [size >> 10 for _, size in taken] == [768, 256, 0]
        for theirs, _ in taken:
            await theirs.reset()
        assert far._pool_bytes == limits.growth_pool_bytes


async def test_the_peer_can_never_have_more_in_flight_than_the_window() -> None:
    async with scripted() as (muxer, raw):
        await raw.send_all(yamux.encode(yamux.WINDOW_UPDATE, yamux.SYN, 1, 0))
        stream: Any = await muxer.accept_stream()
        body = b"x" * yamux.INITIAL_WINDOW_BYTES
        await raw.send_all(yamux.encode(yamux.DATA, 0, 1, len(body)) + body)
        await until(lambda: stream.credit == 0)
        assert not muxer.is_closed
        await raw.send_all(yamux.encode(yamux.DATA, 0, 1, 1))
        await until(lambda: muxer.is_closed)
        assert muxer.end_reason == "1 bytes on stream 1, over its window of 0"
        seen = b""
        with trio.fail_after(5):
            while yamux.encode(yamux.GO_AWAY, 0, 0, yamux.GO_AWAY_PROTOCOL_ERROR) not in seen:
                seen += await raw.receive_some(1000)


async def test_an_end_that_rides_on_data_comes_after_it() -> None:
    async with scripted() as (muxer, raw):
        wire = yamux.encode(yamux.DATA, yamux.SYN | yamux.FIN, 1, 10) + b"0123456789"
        for byte in wire:
            await raw.send_all(bytes([byte]))
        stream = await muxer.accept_stream()
        seen = b""
        while len(seen) < 10:
            seen += await stream.read(3)
        assert seen == b"0123456789"
        with pytest.raises(MuxedStreamEOF):
            await stream.read(3)


async def test_data_for_a_stream_we_reset_is_dropped() -> None:
    async with scripted() as (muxer, raw):
        await raw.send_all(yamux.encode(yamux.WINDOW_UPDATE, yamux.SYN, 1, 0))
        stream = await muxer.accept_stream()
        await stream.reset()
        body = b"x" * 100_000
        await raw.send_all(yamux.encode(yamux.DATA, 0, 1, len(body)) + body)
        await raw.send_all(yamux.encode(yamux.PING, yamux.SYN, 0, 77))
        seen = b""
        with trio.fail_after(5):
            while yamux.encode(yamux.PING, yamux.ACK, 0, 77) not in seen:
                seen += await raw.receive_some(1000)
        assert muxer.open_streams == 0


async def test_a_peer_that_stops_answering_pings_and_sends_nothing_is_dead(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with scripted() as (muxer, _raw):
        await trio.sleep(MuxLimits().ping_every_s + 1)
        assert muxer.end_reason == "the peer stopped answering"


async def test_a_peer_that_answers_pings_stays(autojump_clock: trio.testing.MockClock) -> None:
    async with pair() as (near, far):
        await trio.sleep(600)
        assert not near.is_closed
        assert not far.is_closed


async def test_a_socket_that_takes_nothing_is_dead(autojump_clock: trio.testing.MockClock) -> None:
    left, _right = trio.testing.lockstep_stream_pair()  # a write waits for its reader
    muxer = Muxer(Wire(left, is_initiator=True), PEER, is_initiator=True, limits=MuxLimits())
    await muxer.start()
    assert muxer.end_reason == "the peer takes no data"


async def test_our_own_small_writes_never_count_as_a_flood() -> None:
    limits = replace(MuxLimits(), max_queued_frames=64)
    async with pair(limits) as (near, far):
        ours = await near.open_stream()
        theirs = await far.accept_stream()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(copy, theirs, 5000)
            for _ in range(5000):
                await ours.write(b"x")
        assert not near.is_closed


async def test_a_stream_is_what_libp2p_expects() -> None:
    async with pair() as (near, _far):
        stream = await near.open_stream()
        assert isinstance(stream, MuxStream)
        assert stream.muxed_conn is near
        assert stream.get_remote_address() is None
        with pytest.raises(NotImplementedError):
            stream.set_deadline(1)
        async with stream:
            pass
        assert stream.fin_sent


async def test_an_error_at_the_moment_of_a_cancellation_stays_inside() -> None:
    """Together they make a group that is no Exception; it would pass every handler and end the host."""

    class Sour(Wire):
        async def write(self, data: bytes) -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise ConnectionResetError

        async def read(self, n: int | None = None) -> bytes:
            try:
                await trio.sleep_forever()
            finally:
                raise ConnectionResetError

    left, _right = trio.testing.memory_stream_pair()
    muxer = Muxer(Sour(left, is_initiator=True), PEER, is_initiator=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(muxer.start)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert muxer.is_closed
