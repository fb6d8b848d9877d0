"""Offline is offline: after the end, however it came, every port refuses and nothing of the network is left."""

import gc
import logging
import os

import pytest
import stockpeer
import trio
from multiaddr import Multiaddr
from netpair import (
    LOOPBACK,
    LOOPBACK6,
    Node,
    echoes,
    know_each_other,
    linked_pair,
    make,
    port_of,
    read_all,
    serving,
    until,
)

from node.net.errors import AddressInUse, BadAddress, ListenError, NetworkStopped
from node.net.events import Disconnected
from protocol.errors import ChannelLost

MULTISTREAM = b"\x13/multistream/1.0.0\n"


async def answers(address: str) -> bool:
    """Whether anything at all says something at this port: a raw TCP connection with a handshake."""
    try:
        stream = await trio.open_tcp_stream(address.split("/")[2], port_of(address))
    except OSError:
        return False
    async with stream:
        with trio.move_on_after(1):
            try:
                await stream.send_all(MULTISTREAM)
                return bool(await stream.receive_some(64))
            except trio.BrokenResourceError:
                return False
    return True  # accepted and silent: the port is not refused


@pytest.mark.parametrize("how", ["stop", "cancelled from outside", "handler running"])
async def test_after_the_end_every_port_refuses_and_the_peer_knows(how: str) -> None:
    a, b = make("a"), make("b")
    know_each_other(a, b)
    async with serving(b):
        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()

            async def life(task_status: trio.TaskStatus[list[str]]) -> None:
                with scope:
                    await a.network.serve([LOOPBACK, LOOPBACK6], task_status=task_status)

            a.addresses = await nursery.start(life)
            await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
            stream = await b.network.open(a.peer_id, "/test/held/1" if how == "handler running" else "/test/echo/1",
                                          timeout_s=5)
            assert [await answers(address) for address in a.addresses] == [True, True]
            if how == "stop":
                scope.cancel()
            else:
                nursery.cancel_scope.cancel()
        assert [await answers(address) for address in a.addresses] == [False, False]
        assert await read_all(stream) == (0, ChannelLost)
        await until(lambda: len(b.seen(Disconnected)) == 1)
        assert a.network.addresses() == []
        assert a.network.connected() == set()
        with pytest.raises(NetworkStopped):
            await a.network.open(b.peer_id, "/test/echo/1", timeout_s=1)
        with pytest.raises(NetworkStopped):
            await a.network.connect(b.peer_id, b.addresses, timeout_s=1)


async def test_control_a_cancelled_stock_host_still_answers() -> None:
    host = stockpeer.stock_host("stock")
    with trio.CancelScope() as scope:
        async with host.run([Multiaddr(LOOPBACK)]):
            listener = host.get_network().listeners[LOOPBACK]
            address = str(listener.get_addrs()[0])
            scope.cancel()
            await trio.sleep_forever()
    try:
        assert await answers(address)
    finally:
        await listener.close()


async def test_the_network_serves_again_on_the_same_port() -> None:
    a, b = make("a"), make("b")
    know_each_other(a, b)
    async with serving(b):
        await toggle(a, b, rounds=5)


@pytest.mark.soak
async def test_fifty_toggles_leak_nothing() -> None:
    a, b = make("a"), make("b")
    know_each_other(a, b)
    async with serving(b):
        await toggle(a, b, rounds=10)
        await trio.sleep(0.5)   # libp2p's own closing takes 0.2 s per connection
        before = traces()
        await toggle(a, b, rounds=40)
        await until(lambda: all(now <= then for now, then in zip(traces(), before, strict=True)))


async def toggle(a: Node, b: Node, *, rounds: int) -> None:
    where = [LOOPBACK, LOOPBACK6]
    for _ in range(rounds):
        async with serving(a, listen=where):
            where = a.addresses
            await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
            assert await echoes(b, a.peer_id, b"x" * 100_000)
        assert [await answers(address) for address in where] == [False, False]
        await until(lambda: b.network.connected() == set())
        await b.network.disconnect(a.peer_id)


def traces() -> tuple[int, int, int]:
    """Open files, tasks and sessions alive."""
    gc.collect()
    sessions = sum(type(thing).__name__ == "Session" for thing in gc.get_objects())
    return len(os.listdir("/proc/self/fd")), trio.lowlevel.current_statistics().tasks_living, sessions


async def test_several_addresses_at_once_with_real_ports() -> None:
    async with linked_pair(listen=[LOOPBACK, LOOPBACK6, "/ip4/127.0.0.2/tcp/0"]) as (a, _b):
        assert len(a.addresses) == 3
        assert all(port_of(address) for address in a.addresses)
        assert a.network.addresses() == a.addresses


async def test_a_listener_can_be_added_and_removed_while_serving() -> None:
    async with linked_pair() as (a, b):
        more = await a.network.add_listener(LOOPBACK6)
        assert more in a.network.addresses()
        with pytest.raises(AddressInUse):
            await a.network.add_listener(more)
        await b.network.disconnect(a.peer_id)
        assert (await b.network.connect(a.peer_id, [more], timeout_s=5)).address == more
        await a.network.remove_listener(more)
        assert not await answers(more)
        assert await answers(a.addresses[0])
        assert await echoes(b, a.peer_id)
        with pytest.raises(ListenError):
            await a.network.remove_listener(more)


async def test_a_port_in_use_is_an_error() -> None:
    a, b = make("a"), make("b")
    async with serving(a):
        with pytest.raises(AddressInUse):
            await b.network.serve(a.addresses)
        assert b.network.addresses() == []


async def test_control_stock_hosts_share_a_port_without_a_word() -> None:
    one, two = stockpeer.stock_host("one"), stockpeer.stock_host("two")
    async with stockpeer.running(one) as address, stockpeer.running(two, address) as same:
        assert same == address


@pytest.mark.parametrize("text", [
    "127.0.0.1:80", "/ip4/127.0.0.1/udp/1", "/ip4/127.0.0.1/tcp/99999", "/ip4/300.0.0.1/tcp/1", "/dns4/localhost/tcp/0",
    "/ip4/127.0.0.1/tcp/1/ws", "", "/ip6/zz/tcp/1", "/ip4/127.0.0.1/tcp/-1",
])
async def test_nonsense_is_not_listened_on(text: str) -> None:
    with pytest.raises(BadAddress):
        await make("a").network.serve([text])


async def test_an_address_of_another_machine_is_a_named_error() -> None:
    with pytest.raises(ListenError):
        await make("a").network.serve(["/ip4/192.0.2.1/tcp/0"])


async def test_serving_twice_at_once_is_a_bug() -> None:
    a = make("a")
    async with serving(a):
        with pytest.raises(RuntimeError):
            await a.network.serve([LOOPBACK])


def test_the_library_is_quiet_about_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async def life() -> None:
            async with linked_pair() as (a, b):
                assert await echoes(b, a.peer_id)
        trio.run(life)
    assert [record.message for record in caplog.records] == []
