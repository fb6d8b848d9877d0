"""Nobody can fill the node: windows, memory, streams, waiting connections, connections per peer and in a life."""

from dataclasses import replace

import pytest
import roguepeer
import stockpeer
import trio
from libp2p.io.trio import TrioTCPStream
from libp2p.stream_muxer.yamux.yamux import PROTOCOL_ID as YAMUX
from libp2p.stream_muxer.yamux.yamux import Yamux
from multiaddr import Multiaddr
from netpair import ANY_PACE, HANG_S, LOOPBACK6, echoes, know_each_other, linked_pair, make, port_of, serving, until
from netprocess import child

from node.net import negotiate, yamux
from node.net.errors import NegotiationFailed
from node.net.events import Connected
from node.net.limits import NetLimits
from node.net.muxer import Muxer

MIB = 1 << 20
HELD_NAME = roguepeer.HELLO + roguepeer.token(b"/test/held/1")
SINK_NAME = roguepeer.HELLO + roguepeer.token(b"/test/sink/1")


async def push(session: object, frame: bytes, total: int) -> int:
    """Send a frame again and again; returns how many bytes went before the other side hung up."""
    sent = 0
    try:
        while sent < total:
            await session.write(frame)  # type: ignore[attr-defined]
            sent += len(frame)
    except Exception:
        pass
    return sent


async def hangs_up(session: object) -> bool:
    """Whether the other side closes the connection."""
    with trio.move_on_after(HANG_S):
        try:
            while True:
                await session.read(None)  # type: ignore[attr-defined]
        except Exception:
            return True
    return False


async def test_a_sender_over_its_window_is_closed_and_its_bytes_are_not_kept() -> None:
    async with child("kith", "a", roguepeer.peer_id_of("rogue")) as a:
        before = a.rss_mib
        async with roguepeer.muxed(a.addresses[0], "rogue") as session:
            await session.write(roguepeer.syn(1) + roguepeer.data(1, HELD_NAME))
            await push(session, roguepeer.data(1, b"f" * 65_000), 80 * MIB)
            assert await hangs_up(session)
        assert a.alive
        assert a.rss_mib - before < 16


async def test_control_stock_keeps_everything_a_sender_pushes_over_its_window() -> None:
    async with child("stock", "a") as a:
        before = a.rss_mib
        async with roguepeer.muxed(a.addresses[0], "rogue") as session:
            await session.write(roguepeer.syn(1) + roguepeer.data(1, SINK_NAME))
            assert await push(session, roguepeer.data(1, b"f" * 65_000), 80 * MIB) >= 80 * MIB
            with trio.move_on_after(10):
                while a.rss_mib - before < 60:
                    await trio.sleep(0.1)
        assert a.rss_mib - before >= 60


@pytest.mark.parametrize(("name", "frames"), [
    ("one frame over the window", roguepeer.syn(1) + yamux.encode(yamux.DATA, 0, 1, 15 * MIB) + b"x" * 1000),
    ("a window's worth in the opening frame, and one byte", roguepeer.data(1, b"x" * (256 << 10) + b"y", yamux.SYN)),
    ("another version", b"\x01" + roguepeer.syn(1)[1:]),
    ("an unknown kind", b"\x00\x09" + bytes(10)),
    ("stream 0", roguepeer.syn(0)),
    ("a number of ours", roguepeer.syn(2)),
    ("opened twice", roguepeer.syn(1) + roguepeer.syn(1)),
    ("a credit beyond any window", roguepeer.syn(1) + yamux.encode(yamux.WINDOW_UPDATE, 0, 1, 0xFFFFFFFF)),
    ("a body for a stream that is not there", yamux.encode(yamux.DATA, 0, 77, 2 * MIB)),
    ("a flood of pings", yamux.encode(yamux.PING, yamux.SYN, 0, 1) * 5000),
    ("a flood of opened streams", b"".join(roguepeer.syn(2 * n + 1) for n in range(5000))),
    ("a flood of empty frames", roguepeer.syn(1) + yamux.encode(yamux.DATA, 0, 1, 0) * 5000),
])
async def test_a_peer_that_breaks_the_multiplexers_rules_is_closed(name: str, frames: bytes) -> None:
    async with linked_pair() as (a, b):
        a.gate.allow(roguepeer.peer_id_of("rogue"))
        async with roguepeer.muxed(a.addresses[0], "rogue") as session:
            await push(session, frames, len(frames))
            assert await hangs_up(session), name
        assert await echoes(b, a.peer_id)
        await until(lambda: a.network.connected() == {b.peer_id})


async def test_streams_beyond_the_limit_are_reset_and_honest_peers_are_served() -> None:
    async with linked_pair() as (a, b):
        a.gate.allow(roguepeer.peer_id_of("rogue"))
        async with roguepeer.muxed(a.addresses[0], "rogue") as session:
            await session.write(b"".join(roguepeer.syn(2 * number + 1) for number in range(200)))
            parser, resets = yamux.FrameParser(), 0
            with trio.fail_after(HANG_S):
                while resets < 200 - NetLimits().mux.max_inbound_streams:
                    parser.feed(await session.read(None))
                    while (event := parser.next()) is not None:
                        resets += isinstance(event, yamux.Header) and bool(event.flags & yamux.RST)
            assert await echoes(b, a.peer_id)
            session_of_a = a.network._session
            assert session_of_a is not None
            best = session_of_a.table.best(roguepeer.peer_id_of("rogue"))
            assert best is not None
            assert best.muxer.open_streams <= NetLimits().mux.max_inbound_streams


async def test_a_peer_that_makes_us_answer_and_never_reads_is_closed() -> None:

    limits = NetLimits()
    limits = replace(limits, mux=replace(limits.mux, max_control_frames=10**9, max_queued_frames=2000))
    async with linked_pair(limits) as (a, b):
        a.gate.allow(roguepeer.peer_id_of("rogue"))
        async with roguepeer.muxed(a.addresses[0], "rogue") as session:
            pings = yamux.encode(yamux.PING, yamux.SYN, 0, 1) * 5000
            with trio.move_on_after(20):
                await push(session, pings, 600 * len(pings))
            await until(lambda: roguepeer.peer_id_of("rogue") not in a.network.connected(), 10)
        assert await echoes(b, a.peer_id)


async def test_our_muxer_is_the_one_that_runs() -> None:
    async with linked_pair() as (a, b):
        for node, peer in ((a, b), (b, a)):
            session = node.network._session
            assert session is not None
            connections = session.swarm.get_connections()
            assert [type(connection.muxed_conn) for connection in connections] == [Muxer]
            assert str(connections[0].muxed_conn.peer_id) == peer.peer_id


async def test_control_stock_ignores_the_muxer_it_is_given() -> None:
    class Ours(Yamux):
        pass

    server, client = stockpeer.stock_host("server", muxer=Ours), stockpeer.stock_host("client", muxer=Ours)
    async with stockpeer.running(server) as address, stockpeer.running(client):
        connection = await client.get_network().dial_addr(Multiaddr(address), server.get_id())
        assert type(connection.muxed_conn) is Yamux
    assert YAMUX == yamux.PROTOCOL_ID


async def test_plaintext_and_all_other_securities_are_refused() -> None:
    async with linked_pair() as (a, b):
        for offered in ("/plaintext/2.0.0", "/secio/1.0.0", "/tls/1.0.0", "/yamux/1.0.0", "/test/echo/1"):
            async with roguepeer.raw(a.addresses[0]) as tcp:
                with pytest.raises(NegotiationFailed, match="does not serve"), trio.fail_after(5):
                    await negotiate.ask(tcp, offered)
        assert await echoes(b, a.peer_id)


async def test_control_stock_defaults_accept_plaintext() -> None:
    host = stockpeer.stock_host("stock", plain_defaults=True)
    async with stockpeer.running(host) as address, roguepeer.raw(address) as tcp:
        with trio.fail_after(5):
            await negotiate.ask(tcp, "/plaintext/2.0.0")


async def test_the_node_hears_after_270_inbound_connections() -> None:
    a, b = make("a", NetLimits(pace=ANY_PACE)), make("b")
    know_each_other(a, b)
    async with serving(a, b):
        for _ in range(270):
            async with roguepeer.raw(a.addresses[0]) as tcp, trio.open_nursery() as nursery:
                nursery.start_soon(negotiate.ask, tcp, "/noise")
        for _ in range(30):
            await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
            await b.network.disconnect(a.peer_id)
        await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
        assert await echoes(b, a.peer_id)
        session = a.network._session
        assert session is not None
        await until(lambda: len(session.admission) == 0)


async def test_control_stock_goes_deaf_after_as_many_connections_as_it_may_hold_at_once() -> None:
    server = stockpeer.stock_host(
        "server", max_connections=10, min_connections=0, low_watermark=0, high_watermark=10, inbound_upgrade_timeout=2.0
    )
    client = stockpeer.stock_host("client")
    async with stockpeer.running(server) as address, stockpeer.running(client):
        served = 0
        for _ in range(12):
            try:
                with trio.fail_after(3):
                    connection = await client.get_network().dial_addr(Multiaddr(address), server.get_id())
            except Exception:
                break
            served += 1
            await connection.close()
        assert served == 10


@pytest.mark.parametrize("idle", [50, 150])
async def test_idle_connections_lock_nobody_out(idle: int) -> None:
    a, b = make("a", NetLimits(upgrade_s=2 * HANG_S)), make("b")     # none of them goes by itself
    know_each_other(a, b)
    async with serving(a, b):
        waiting = [await trio.open_tcp_stream("127.0.0.1", port_of(a.addresses[0])) for _ in range(idle)]
        for _ in range(3):
            await b.network.connect(a.peer_id, a.addresses, timeout_s=HANG_S)
            assert await echoes(b, a.peer_id)
            await b.network.disconnect(a.peer_id)
        session = a.network._session
        assert session is not None
        assert len(session.admission) <= NetLimits().max_waiting_per_ip
        assert session.admission.dropped >= idle - NetLimits().max_waiting_per_ip
        for stream in waiting:
            await stream.aclose()


async def test_idle_connections_are_dropped_at_their_deadline() -> None:
    a = make("a", NetLimits(upgrade_s=0.2))
    async with serving(a), roguepeer.raw(a.addresses[0]) as tcp:
        with trio.fail_after(5):
            assert await tcp.read(64) == roguepeer.HELLO
            with pytest.raises(Exception, match="reset"):
                await tcp.read(64)


async def test_1200_dropped_upgrades_leave_nothing_behind() -> None:
    """Dropped by closing their socket; what a cancelled upgrade leaves behind in libp2p locks a node after 1,000."""
    a, b = make("a", NetLimits(pace=ANY_PACE)), make("b")
    know_each_other(a, b)
    async with serving(a, b):
        for _ in range(40):
            streams = [await trio.open_tcp_stream("127.0.0.1", port_of(a.addresses[0])) for _ in range(30)]
            for stream in streams:
                await stream.send_all(roguepeer.HELLO)
            await trio.sleep(0.01)
            for stream in streams:
                await stream.aclose()
        await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
        assert await echoes(b, a.peer_id)


async def test_one_peer_holds_few_connections_at_once() -> None:
    a, b = make("a"), make("b")
    know_each_other(a, b)
    rogue = roguepeer.peer_id_of("rogue")
    a.gate.allow(rogue)
    async with serving(a, b):
        session = a.network._session
        assert session is not None
        async with trio.open_nursery() as nursery:
            async def hold() -> None:
                async with roguepeer.muxed(a.addresses[0], "rogue") as mine:
                    await hangs_up(mine)

            for _ in range(10):
                nursery.start_soon(hold)
            await until(lambda: len(a.seen(Connected)) == 1)
            await until(lambda: len(session.table.of(rogue)) == NetLimits().max_per_peer)
            await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
            assert await echoes(b, a.peer_id)
            nursery.cancel_scope.cancel()


async def test_control_stock_keeps_more_connections_of_one_peer_than_its_limit() -> None:
    server = stockpeer.stock_host("server", max_connections_per_peer=4)
    async with stockpeer.running(server) as address, trio.open_nursery() as nursery:
        async def hold() -> None:
            async with roguepeer.muxed(address, "rogue") as mine:
                await hangs_up(mine)

        for _ in range(10):
            nursery.start_soon(hold)
        await until(lambda: len(server.get_network().get_connections()) > 4)
        nursery.cancel_scope.cancel()


async def test_the_peers_address_is_known_on_ipv6() -> None:
    async with linked_pair(listen=[LOOPBACK6]) as (a, b):
        (event,) = a.seen(Connected)
        assert event.address.startswith("/ip6/::1/tcp/")  # type: ignore[union-attr]
        info = b.network.connection(a.peer_id)
        assert info is not None
        assert info.address == a.addresses[0]
        session = a.network._session
        assert session is not None
        (connection,) = session.swarm.get_connections()
        assert [str(address) for address in connection.get_transport_addresses()] == [event.address]  # type: ignore[union-attr]


async def test_control_libp2ps_own_stream_has_no_address_on_ipv6() -> None:
    async with (
        linked_pair(listen=[LOOPBACK6]) as (a, _b),
        await trio.open_tcp_stream("::1", port_of(a.addresses[0])) as stream,
    ):
        assert TrioTCPStream(stream).get_remote_address() is None
