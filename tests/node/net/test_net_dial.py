"""Reaching peers: every address is tried at once, each with its reason, within our own time; nothing else ever."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest
import stockpeer
import trio
from libp2p.peer.peerinfo import PeerInfo
from multiaddr import Multiaddr
from netpair import HANG_S, LOOPBACK, LOOPBACK6, echoes, know_each_other, make, serving, until

from node.net.addresses import parse
from node.net.dial import race
from node.net.errors import DialFailed, NotConnected, reason_of, root_cause
from node.net.events import Connected
from node.net.limits import NetLimits


@asynccontextmanager
async def black_hole() -> AsyncIterator[tuple[str, list[int]]]:
    """An address that takes connections and never says a word, and a count of those it took."""
    taken = [0]

    async def swallow(stream: trio.SocketStream) -> None:
        taken[0] += 1
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, swallow, 0, host="127.0.0.1"))
        yield f"/ip4/127.0.0.1/tcp/{listener.socket.getsockname()[1]}", taken
        nursery.cancel_scope.cancel()


def dead_port() -> str:
    return "/ip4/127.0.0.1/tcp/1"


async def test_every_address_is_dialled_and_the_first_that_works_wins() -> None:
    a, b = make("a"), make("b", NetLimits(dial_s=2 * HANG_S))
    know_each_other(a, b)
    async with serving(a, b, listen=[LOOPBACK6]), black_hole() as (silent, taken):
        with trio.fail_after(HANG_S):   # the silent one alone would take until the deadline
            info = await b.network.connect(a.peer_id, [silent, dead_port(), a.addresses[0]], timeout_s=2 * HANG_S)
        assert info.address == a.addresses[0]
        assert info.dialled
        assert taken == [1]
        assert await echoes(b, a.peer_id)


async def test_control_stock_dials_one_of_the_addresses() -> None:
    server, client = stockpeer.stock_host("server"), stockpeer.stock_host("client")
    client.get_network().retry_config.max_retries = 0
    async with (
        stockpeer.running(server, LOOPBACK6) as address, stockpeer.running(client), black_hole() as (silent, taken),
    ):
        with trio.move_on_after(3), suppress(Exception):  # its own timeout is 10 s and more
            await client.connect(PeerInfo(server.get_id(), [Multiaddr(silent), Multiaddr(address)]))
        assert taken == [1]
        assert server.get_connected_peers() == []


async def test_after_a_race_one_connection_is_left_on_both_sides() -> None:
    a, b = make("a"), make("b")
    know_each_other(a, b)
    async with serving(a, b, listen=[LOOPBACK, LOOPBACK6, "/ip4/127.0.0.2/tcp/0"]):
        for _ in range(10):
            await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
            assert await echoes(b, a.peer_id)
            for node, peer in ((a, b), (b, a)):
                session = node.network._session
                assert session is not None
                await until(lambda: len(session.table.of(peer.peer_id)) == 1)  # noqa: B023
            await b.network.disconnect(a.peer_id)
            await until(lambda: a.network.connected() == set())


async def test_callers_at_the_same_time_share_one_dial() -> None:
    a, b = make("a"), make("b")
    know_each_other(a, b)
    async with serving(a, b):
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(partial(b.network.connect, a.peer_id, a.addresses, timeout_s=5))
        assert len(a.seen(Connected)) == len(b.seen(Connected)) == 1
        assert b.network._dialling == {}


async def test_when_all_fail_each_address_has_its_reason_in_time() -> None:
    a, b = make("a", NetLimits(dial_s=0.3)), make("b")
    know_each_other(a, b)
    async with serving(a), black_hole() as (silent, _taken):
        with pytest.raises(DialFailed) as failure, trio.fail_after(HANG_S):
            await a.network.connect(b.peer_id, [silent, dead_port()], timeout_s=2 * HANG_S)
        assert failure.value.reasons == {
            silent: "no answer in time", dead_port(): "Connection refused",
        }
        assert dead_port() in failure.value.text
        with pytest.raises(DialFailed):
            await a.network.connect(b.peer_id, [], timeout_s=5)


async def test_addresses_that_name_another_peer_or_nothing_are_passed_over() -> None:
    a, b, c = make("a"), make("b"), make("c")
    know_each_other(a, b, c)
    async with serving(a, b):
        useless = ["nonsense", f"{a.addresses[0]}/p2p/{c.peer_id}", "/ip4/127.0.0.1/udp/1/quic-v1"]
        with pytest.raises(DialFailed):
            await b.network.connect(a.peer_id, useless, timeout_s=5)
        assert a.seen(Connected) == []
        await b.network.connect(a.peer_id, [*useless, f"{a.addresses[0]}/p2p/{a.peer_id}"], timeout_s=5)
        assert await echoes(b, a.peer_id)


async def test_a_name_is_looked_up() -> None:
    a, b = make("a"), make("b")
    know_each_other(a, b)
    async with serving(a, b):
        by_name = a.addresses[0].replace("/ip4/127.0.0.1/", "/dns4/localhost/")
        assert (await b.network.connect(a.peer_id, [by_name], timeout_s=5)).address == a.addresses[0]


async def test_open_never_dials_and_says_not_connected() -> None:
    a, b = make("a"), make("b")
    know_each_other(a, b)
    async with serving(a, b):
        with pytest.raises(NotConnected):
            await b.network.open(a.peer_id, "/test/echo/1", timeout_s=5)
        await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
        await b.network.disconnect(a.peer_id)
        with pytest.raises(NotConnected):
            await b.network.open(a.peer_id, "/test/echo/1", timeout_s=5)


async def test_an_address_that_a_peer_announced_is_not_dialled() -> None:
    a, b = make("a"), make("b")
    know_each_other(a, b)
    async with serving(a, b), black_hole() as (trap, taken):
        await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
        session = b.network._session
        assert session is not None
        peer = session.table.of(a.peer_id)[0].muxer.peer_id
        session.swarm.peerstore.add_addrs(peer, [Multiaddr(trap)], 3600)  # as libp2p's identify would
        await b.network.disconnect(a.peer_id)
        for dial in (session.swarm.dial_peer, session.swarm.new_stream):
            with trio.move_on_after(1), suppress(Exception):
                await dial(peer)
        assert taken == [0]


async def test_control_stock_dials_an_address_that_a_peer_announced() -> None:
    server, client = stockpeer.stock_host("server"), stockpeer.stock_host("client")
    async with stockpeer.running(server), stockpeer.running(client), black_hole() as (trap, taken):
        client.get_peerstore().add_addrs(server.get_id(), [Multiaddr(trap)], 3600)
        with trio.move_on_after(1):
            await client.new_stream(server.get_id(), ["/test/echo/1"])
        assert taken[0] >= 1


async def test_streams_go_to_the_newest_connection_not_to_a_dead_one() -> None:
    """The old path is frozen, the peer has dialled again: every stream opens on the new one at once."""
    a, b = make("a", NetLimits(race_s=0)), make("b", NetLimits(race_s=0))
    know_each_other(a, b)
    async with serving(a, b), frozen_path(a.addresses[0]) as (through, freeze):
        await b.network.connect(a.peer_id, [through], timeout_s=5)
        assert await echoes(b, a.peer_id)
        freeze()
        session = a.network._session
        assert session is not None
        await session.reach(parse(b.addresses[0]), b.peer_id)
        await until(lambda: b.network.connection(a.peer_id).dialled is False)  # type: ignore[union-attr]
        for _ in range(3):
            with trio.fail_after(HANG_S):
                assert await echoes(b, a.peer_id)


@asynccontextmanager
async def frozen_path(address: str) -> AsyncIterator[tuple[str, object]]:
    """A way to address that can be frozen: its connections stay open and nothing moves any more."""
    moving = [True]

    async def forward(source: trio.SocketStream, target: trio.SocketStream) -> None:
        async for data in source:
            if not moving[0]:
                await trio.sleep_forever()
            await target.send_all(data)

    async def carry(near: trio.SocketStream) -> None:
        far = await trio.open_tcp_stream("127.0.0.1", int(address.split("/")[4]))
        async with far, trio.open_nursery() as nursery:
            nursery.start_soon(forward, near, far)
            await forward(far, near)

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, carry, 0, host="127.0.0.1"))
        yield f"/ip4/127.0.0.1/tcp/{listener.socket.getsockname()[1]}", lambda: moving.__setitem__(0, False)
        nursery.cancel_scope.cancel()


async def test_both_sides_dialling_at_once_keep_the_same_connection() -> None:
    for round_number in range(10):
        a, b = make(f"left{round_number}"), make(f"right{round_number}")
        know_each_other(a, b)
        async with serving(a, b):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(a.network.connect, b.peer_id, b.addresses, timeout_s=5))
                nursery.start_soon(partial(b.network.connect, a.peer_id, a.addresses, timeout_s=5))
            for node, peer in ((a, b), (b, a)):
                session = node.network._session
                assert session is not None
                await until(lambda: len(session.table.of(peer.peer_id)) == 1)  # noqa: B023
            kept_a, kept_b = a.network.connection(b.peer_id), b.network.connection(a.peer_id)
            assert kept_a is not None
            assert kept_b is not None
            assert kept_a.dialled != kept_b.dialled
            assert await echoes(a, b.peer_id)
            assert await echoes(b, a.peer_id)


async def test_a_swarm_that_starts_nothing_any_more_holds_no_dial() -> None:
    a, b = make("a"), make("b", NetLimits(upgrade_s=0.2))
    know_each_other(a, b)
    async with serving(a, b):
        session = b.network._session
        assert session is not None

        async def never(*_args: object, **_more: object) -> None:
            await trio.sleep_forever()

        session.swarm.add_conn = never
        with pytest.raises(DialFailed), trio.fail_after(HANG_S):
            await b.network.connect(a.peer_id, a.addresses, timeout_s=2)


async def test_the_race_alone_discards_late_winners() -> None:
    discarded: list[str] = []

    async def reach(address: object) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(0.01)
        return str(address)

    won = await race([parse(LOOPBACK), parse(LOOPBACK6)], reach, each_s=1, timeout_s=1, discard=discarded.append)
    assert sorted([won, *discarded]) == sorted([LOOPBACK, LOOPBACK6])


def test_causes_are_found_under_groups_and_chains() -> None:
    leaf = ValueError("the  leaf\nitself")
    middle = RuntimeError("wrapped")
    middle.__cause__ = leaf
    error: BaseException = middle
    for _ in range(5):
        error = ExceptionGroup("nursery", [error])
    assert root_cause(error) is leaf
    assert reason_of(error) == "ValueError: the leaf itself"
    assert reason_of(KeyError()) == "KeyError"
    said = DialFailed("said")
    said.__cause__ = leaf
    assert root_cause(ExceptionGroup("x", [said])) is said
