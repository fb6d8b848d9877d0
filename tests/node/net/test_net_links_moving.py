"""The link of a peer moves from a relayed connection to a direct one without the peer being absent for a moment."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from linknode import LinkNode
from netpair import LOOPBACK, until
from netrelay import KeptPolicy

from node.net.events import AddressesTold, LinkDown, LinkUp, Rerouted
from node.net.limits import NetLimits, RelayLimits

QUICK = NetLimits(retire_s=0.05, relay=dataclasses.replace(RelayLimits(), after_direct_s=0.0))


@asynccontextmanager
async def relayed_link() -> AsyncIterator[tuple[LinkNode, LinkNode, LinkNode, KeptPolicy]]:
    """near and far are linked through relay, and know no address of each other."""
    policy = KeptPolicy()
    relay, near, far = (LinkNode(name, QUICK, relay=policy) for name in ("relay", "near", "far"))
    policy.carries |= {near.peer_id, far.peer_id}
    async with trio.open_nursery() as nursery:
        for node in (relay, near, far):
            await nursery.start(node.run, [LOOPBACK])
        for node, other in ((near, far), (far, near)):
            relay.meet(node)
            node.meet(relay)
            node.gate.allow(other.peer_id)
        await until(lambda: {near.peer_id, far.peer_id} <= relay.links.present().keys())
        far.network.guest.use([relay.peer_id])
        await until(lambda: bool(far.network.guest.places))
        near.network.guest.use([relay.peer_id])
        await near.network.connect(far.peer_id, [], timeout_s=5)  # only one of them calls: one circuit
        await until(lambda: near.peer_id in far.network.connected())
        far.links.know(near.peer_id, [])
        near.links.know(far.peer_id, [])
        await until(lambda: far.peer_id in near.links.present() and near.peer_id in far.links.present())
        yield relay, near, far, policy
        nursery.cancel_scope.cancel()


async def test_links_are_kept_through_a_relay_and_say_so() -> None:
    async with relayed_link() as (relay, near, far, _):
        assert near.links.present()[far.peer_id].address == f"/p2p/{relay.peer_id}/p2p-circuit"
        pong = await near.links.ping(far.peer_id, timeout_s=5)
        assert pong.rtt_ms > 0


async def test_the_link_moves_and_the_peer_stays_present() -> None:
    async with relayed_link() as (relay, near, far, policy):
        before = (len(near.events), len(far.events))
        await near.network._session.reach(_parsed(far.addresses[0]), far.peer_id)
        for node in (near, far):
            await until(lambda node=node: any(isinstance(event, Rerouted) for event in node.events))
        near.links.reroute(far.peer_id)  # what the daemon does with the event; only the opener acts
        far.links.reroute(near.peer_id)
        await until(lambda: policy.accounts[0].outcome is not None)  # nothing runs through the relay any more
        assert near.links.present()[far.peer_id].address == far.addresses[0]
        for node, count in ((near, before[0]), (far, before[1])):
            assert not [event for event in node.events[count:] if isinstance(event, LinkDown | LinkUp)]
        assert relay.links.present().keys() == {near.peer_id, far.peer_id}


async def test_control_without_a_move_the_relay_is_kept_busy() -> None:
    async with relayed_link() as (_, near, far, policy):
        await near.network._session.reach(_parsed(far.addresses[0]), far.peer_id)
        await trio.sleep(0.5)
        assert policy.accounts[0].outcome is None


async def test_both_are_told_where_the_other_can_be_reached_and_is_seen() -> None:
    async with relayed_link() as (relay, near, far, _):
        relay.links.relocate(b"the relay's addresses")
        near.links.relocate(b"near's addresses")
        # what the relay says is there sooner than what goes through it
        await until(lambda: bool(_told(near)) and near.peer_id in {event.peer_id for event in _told(far)})
        (seen,) = _told(near)
        assert (seen.peer_id, seen.addresses) == (relay.peer_id, b"the relay's addresses")
        assert seen.seen_at is not None  # near called the relay, so the relay sees where near's call comes from
        assert seen.seen_at.startswith("/ip4/127.0.0.1/tcp/")
        await until(lambda: bool(_told(relay)))
        assert _told(relay)[0].seen_at is None  # near made the connection: it sees no address of a call
        through = [event for event in _told(far) if event.peer_id == near.peer_id]
        assert [event.seen_at for event in through] == [None]  # nobody sees anything through a relay


def _told(node: LinkNode) -> list[AddressesTold]:
    return [event for event in node.events if isinstance(event, AddressesTold)]


def _parsed(text: str) -> object:
    from node.net.addresses import parse

    return parse(text)
