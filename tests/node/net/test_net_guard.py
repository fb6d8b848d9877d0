"""A bad stream or handler never ends the host (libp2p's does: the controls show it)."""

import logging

import pytest
import roguepeer
import stockpeer
import trio
from multiaddr import Multiaddr
from netpair import BROKEN, ECHO, echoes, know_each_other, linked_pair, make, read_all, say, serving, until

from node.net.errors import ProtocolNotServed
from node.net.limits import NetLimits
from node.net.streams import PeerStream
from protocol.errors import ChannelLost

BAD_NAME = roguepeer.HELLO + roguepeer.token(b"/\xff\xfe\x80/1")


async def speak_bad_name(address: str) -> None:
    async with roguepeer.muxed(address, "rogue") as session:
        await session.write(roguepeer.syn(1) + roguepeer.data(1, BAD_NAME))
        await trio.sleep(0.2)


async def test_a_name_that_is_no_text_harms_nobody() -> None:
    async with linked_pair() as (a, b):
        a.gate.allow(roguepeer.peer_id_of("rogue"))
        before = await b.network.open(a.peer_id, ECHO, timeout_s=5)
        await speak_bad_name(a.addresses[0])
        assert await say(before, b"opened before") == b"opened before"
        assert await echoes(b, a.peer_id)


async def test_control_a_name_that_is_no_text_ends_a_stock_host() -> None:
    ended = trio.Event()

    async def host() -> None:
        try:
            async with stockpeer.running(stockpeer.stock_host("stock")) as address:
                nursery.start_soon(speak_bad_name, address)
                await trio.sleep(5)
        except* UnicodeDecodeError:
            ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(host)
        with trio.fail_after(10):
            await ended.wait()
        nursery.cancel_scope.cancel()


async def test_a_failing_handler_resets_its_own_stream_only() -> None:
    async with linked_pair() as (a, b):
        before = await b.network.open(a.peer_id, ECHO, timeout_s=5)
        for _ in range(3):
            stream = await b.network.open(a.peer_id, BROKEN, timeout_s=5)
            try:
                await stream.read(1, deadline_s=5)
            except ChannelLost:
                pass
            else:
                raise AssertionError("a failed handler must read as a lost channel")
        assert a.network.caught == 3
        assert await say(before, b"opened before") == b"opened before"
        assert await echoes(b, a.peer_id)


async def test_control_a_failing_handler_ends_a_stock_host() -> None:
    ended = trio.Event()

    async def fail(_stream: object) -> None:
        raise KeyError("as planned")

    async def host() -> None:
        server, client = stockpeer.stock_host("stock"), stockpeer.stock_host("client")
        server.set_stream_handler(BROKEN, fail)
        try:
            async with stockpeer.running(client), stockpeer.running(server) as address:
                await client.get_network().dial_addr(Multiaddr(address), server.get_id())
                await client.new_stream(server.get_id(), [BROKEN])
                await trio.sleep(5)
        except* KeyError:
            ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(host)
        with trio.fail_after(10):
            await ended.wait()
        nursery.cancel_scope.cancel()


async def test_an_unknown_protocol_is_refused_by_name_and_costs_nothing() -> None:
    async with linked_pair() as (a, b):
        for _ in range(3):
            try:
                await b.network.open(a.peer_id, "/kith/admin/1", timeout_s=5)
            except ProtocolNotServed:
                continue
            raise AssertionError("an unserved protocol must be refused")
        assert await echoes(b, a.peer_id)


async def test_a_listing_of_protocols_is_not_given() -> None:
    async with linked_pair() as (a, _b):
        a.gate.allow(roguepeer.peer_id_of("rogue"))
        async with roguepeer.muxed(a.addresses[0], "rogue") as session:
            asked = roguepeer.HELLO + roguepeer.token(b"ls")
            await session.write(roguepeer.syn(1) + roguepeer.data(1, asked))
            seen = b""
            with trio.fail_after(5):
                while b"\x03na\n" not in seen:
                    seen += await session.read(None)
        assert b"/test/" not in seen


async def test_a_stream_that_never_names_a_protocol_is_dropped() -> None:
    a, b = make("a", NetLimits(negotiate_s=0.2)), make("b")
    know_each_other(a, b)
    async with serving(a, b):
        await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
        a.gate.allow(roguepeer.peer_id_of("rogue"))
        async with roguepeer.muxed(a.addresses[0], "rogue") as session:
            await session.write(roguepeer.syn(1))
            await until(lambda: a.network.caught == 1)
        assert await echoes(b, a.peer_id)


async def test_a_handler_that_fails_while_the_node_stops_does_not_disturb_the_stop() -> None:
    async def sour(stream: PeerStream) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise KeyError("in the way out")

    a, b = make("a", handler=sour), make("b")
    know_each_other(a, b)
    async with serving(b):
        async with serving(a):
            await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
            await b.network.open(a.peer_id, ECHO, timeout_s=5)
        assert a.network.caught == 1


async def test_the_text_of_a_handlers_error_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def tell(stream: PeerStream) -> None:
        raise ValueError("Dana's number is 555-0100")

    a, b = make("a", handler=tell), make("b")
    know_each_other(a, b)
    with caplog.at_level(logging.DEBUG, "node.net"):
        async with serving(a, b):
            await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
            stream = await b.network.open(a.peer_id, ECHO, timeout_s=5)
            assert await read_all(stream) == (0, ChannelLost)
    assert "ValueError" in caplog.text
    assert "Dana" not in caplog.text


async def test_a_failing_listener_of_events_harms_nobody() -> None:
    def fail(_event: object) -> None:
        raise KeyError("as planned")

    a, b = make("a"), make("b")
    a.network._on_event = fail
    know_each_other(a, b)
    async with serving(a, b):
        await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
        assert await echoes(b, a.peer_id)
