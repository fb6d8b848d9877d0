"""This machine's addresses change: connections from an address that is gone are dropped at once, hints are tried."""

import trio
import trio.testing
from linknode import LinkNode
from netpair import HANG_S, echoes, know_each_other, linked_pair, make, serving, until

from node.net.events import Disconnected
from node.net.limits import NetLimits


async def test_connections_from_an_address_that_is_gone_are_dropped_at_once() -> None:
    async with linked_pair() as (a, b):
        session = b.network._session
        assert session is not None
        (connection,) = session.table.all()
        connection.local_ip = "192.168.1.7"  # as if it had been made from there
        assert b.network.drop_stale({"192.168.1.7", "10.0.0.1"}) == 0
        assert b.network.drop_stale({"192.168.1.8"}) == 1
        assert b.network.connection(a.peer_id) is None  # not used from this instant on
        await until(lambda: bool(b.seen(Disconnected)))


async def test_loopback_stays_whatever_comes_and_goes() -> None:
    async with linked_pair() as (a, b):
        assert b.network.drop_stale(set()) == 0
        assert b.network.connection(a.peer_id) is not None


async def test_a_hint_is_tried_and_a_known_address_stays_known() -> None:
    near, far = LinkNode("near"), LinkNode("far")
    async with trio.open_nursery() as nursery:
        for node in (near, far):
            await nursery.start(node.run, ["/ip4/127.0.0.1/tcp/0"])
        near.gate.allow(far.peer_id)
        far.gate.allow(near.peer_id)
        far.links.know(near.peer_id, [])
        near.links.know(far.peer_id, ["/ip4/127.0.0.1/tcp/9"])  # nobody there
        await until(lambda: "does not answer" in near.links.failure(far.peer_id))
        assert far.peer_id not in near.links.present()
        near.links.hint(far.peer_id, far.addresses)
        await until(lambda: far.peer_id in near.links.present())
        assert near.links.failure(far.peer_id) == ""
        assert list(near.links.addresses(far.peer_id)) == [*far.addresses, "/ip4/127.0.0.1/tcp/9"]
        nursery.cancel_scope.cancel()


async def test_hints_are_few_and_only_for_peers_that_are_known() -> None:
    node = LinkNode("near")
    node.links.hint("12D3KooWnobody", ["/ip4/10.0.0.1/tcp/1"])
    assert list(node.links.addresses("12D3KooWnobody")) == []
    node.links.know("bea", ["/ip4/10.0.0.9/tcp/1"])
    for number in range(40):
        node.links.hint("bea", [f"/ip4/10.0.{number}.{place}/tcp/1" for place in range(40)])
    assert len(node.links.addresses("bea")) <= 16


async def test_invented_hints_do_not_drive_a_known_address_out(autojump_clock: trio.testing.MockClock) -> None:
    """Whoever heard a peer announce itself can say the same with other addresses, again and again."""
    node = LinkNode("near")
    node.links.know("bea", ["/ip4/10.0.0.9/tcp/1"])
    heard = set()
    for number in range(40):
        node.links.hint("bea", [f"/ip4/10.0.{number}.{place}/tcp/1" for place in range(4)])
        assert "/ip4/10.0.0.9/tcp/1" in node.links.addresses("bea")
        heard.add(node.links.addresses("bea"))
        await trio.sleep(0.1)
    assert len(heard) == 4  # one a second


async def test_known_anew_a_peer_is_called_at_no_hint_any_more() -> None:
    node = LinkNode("near")
    node.links.know("bea", ["/ip4/10.0.0.9/tcp/1"])
    node.links.hint("bea", ["/ip4/10.0.0.7/tcp/1"])
    assert list(node.links.addresses("bea")) == ["/ip4/10.0.0.7/tcp/1", "/ip4/10.0.0.9/tcp/1"]
    node.links.know("bea", ["/ip4/10.0.0.9/tcp/1"])
    assert list(node.links.addresses("bea")) == ["/ip4/10.0.0.9/tcp/1"]


async def test_a_stranger_that_is_met_at_many_addresses_is_connected_once_and_stays_so() -> None:
    """For pairing: calls that all get through must not close each other at the other end."""
    a, b = make("a"), make("b")
    async with serving(a, listen=["/ip4/127.0.0.1/tcp/0"] * 6), serving(b, listen=()):
        for _ in range(5):
            a.gate.open_pairing()
            with b.gate.meeting():
                await b.network.meet(a.addresses, timeout_s=5)
                for _ in range(3):
                    assert await echoes(b, a.peer_id, protocol="/kith/pair/1")
                session = a.network._session
                assert session is not None
                assert len(session.table.of(b.peer_id)) <= 2
            a.gate.close_pairing()
            await until(lambda: not a.network.connected())


async def test_paired_peers_are_still_called_everywhere_at_once() -> None:
    a, b = make("a"), make("b", NetLimits(stagger_s=10.0))
    know_each_other(a, b)
    async with serving(a), serving(b):
        dead = [f"/ip4/127.0.0.{n}/tcp/9" for n in range(1, 13)]
        with trio.fail_after(HANG_S):  # a dozen refused addresses before the good one, one after the other, take longer
            await b.network.connect(a.peer_id, [*dead, *a.addresses], timeout_s=HANG_S)
