"""What is told on links, which of two stays, greeting anew, pings. A mock clock's time, channels in memory."""

from functools import partial

import pytest
import trio
from links_world import FakeRoute, World, other_side, settle, until_opened
from memory_channel import ALICE, BOB, memory_channels

from node.errors import PeerUnreachable
from node.net.events import GrantReceived, LinkDown, LinkUp, ModelsAdvertised, NetEvent
from protocol.frames.link import Echo, Load, ModelAdvert
from protocol.names import LINK


@pytest.mark.parametrize("own", [ALICE, BOB])
async def test_of_two_links_the_one_opened_by_the_smaller_id_stays(
    autojump_clock: trio.testing.MockClock, own: str,
) -> None:
    peer = BOB if own == ALICE else ALICE
    world = World(outcome=FakeRoute(), peer_id=own)
    world.links.know(peer, [])
    far_world = World(peer_id=peer)
    far_world.links.know(own, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await nursery.start(far_world.links.run)
        await until_opened(world)
        theirs, ours = memory_channels(LINK, dialler=peer, answerer=own)
        nursery.start_soon(world.links.serve, ours)
        nursery.start_soon(far_world.links.serve, world.answerers[0])
        nursery.start_soon(partial(far_world.links._hold, far_world.links._peers[own], theirs, opened_here=True))
        await trio.sleep(10)
        for side, opened_here in ((world, own < peer), (far_world, peer < own)):
            (kept,) = next(iter(side.links._peers.values())).links
            assert kept.opened_here == opened_here
            assert side.kinds() == [LinkUp]
        nursery.cancel_scope.cancel()


async def test_new_models_are_told_to_present_peers(autojump_clock: trio.testing.MockClock) -> None:
    world, seen_by_bob = World(outcome=FakeRoute()), []
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await until_opened(world)
        bob = other_side(world.answerers[0], seen_by_bob)
        await nursery.start(bob.run)
        nursery.start_soon(bob.serve, world.answerers[0])
        await settle()
        world.models = (ModelAdvert(name="tiny", digest="0" * 64, context_tokens=512, warm=True),)
        world.links.readvertise()
        await settle()
        assert seen_by_bob[-1] == ModelsAdvertised(ALICE, world.models)
        nursery.cancel_scope.cancel()


async def test_a_new_grant_is_told_on_the_live_link(autojump_clock: trio.testing.MockClock) -> None:
    world, seen_by_bob = World(outcome=FakeRoute()), []
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await until_opened(world)
        world.grant, world.capabilities = b"before the greeting is over", ("infer",)
        world.links.regrant(BOB)
        world.links.readvertise(Load(1, 2, 3000))
        bob = other_side(world.answerers[0], seen_by_bob)
        await nursery.start(bob.run)
        nursery.start_soon(bob.serve, world.answerers[0])
        await settle()
        # presence comes first, whatever was told before the first echo
        assert theirs_kinds(seen_by_bob) == [LinkUp, GrantReceived, ModelsAdvertised]
        assert seen_by_bob[1:] == [GrantReceived(ALICE, world.grant), ModelsAdvertised(ALICE, (), Load(1, 2, 3000))]
        world.grant = b""
        world.links.regrant(BOB)
        world.links.regrant("nobody")
        await settle()
        assert seen_by_bob[-1] == GrantReceived(ALICE, b"")
        assert len(world.links.present()) == 1 and world.disconnects == []
        world.capabilities = ()
        world.links.readvertise(Load(5, 0, 9000))  # whoever may not ask learns nothing of what others ask
        await settle()
        assert seen_by_bob[-1] == ModelsAdvertised(ALICE, (), Load())
        nursery.cancel_scope.cancel()


async def test_ping_measures_anew_and_an_absent_peer_is_unreachable(autojump_clock: trio.testing.MockClock) -> None:
    world, theirs = World(), []
    world.links.know(BOB, ["/ip4/127.0.0.1/tcp/1"])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        begun_s = trio.current_time()
        with pytest.raises(PeerUnreachable):
            await world.links.ping(BOB, timeout_s=3)
        assert trio.current_time() == begun_s + 3
        with pytest.raises(PeerUnreachable):
            await world.links.ping("nobody", timeout_s=3)
        world.outcome = FakeRoute()
        world.links.wake(BOB)
        await settle()
        other = other_side(world.answerers[0], theirs)
        await nursery.start(other.run)
        nursery.start_soon(other.serve, world.answerers[0])
        await settle(0.3)
        begun_s = trio.current_time()
        for _ in range(20):
            found = await world.links.ping(BOB, timeout_s=3)
            assert (found.peer_id, found.address) == (BOB, "/ip4/127.0.0.1/tcp/1") and found.rtt_ms < 1
        assert 1.8 <= trio.current_time() - begun_s <= 2.1  # twenty of them, a tenth of a second apart
        echoes = [frame for frame in world.answerers[0].sent if isinstance(frame, Echo)]
        assert len(echoes) >= 20  # each was a beat of its own; the link's own rhythm makes three in that time
        assert world.kinds() == [LinkUp]
        nursery.cancel_scope.cancel()


async def test_many_pings_at_once_do_not_break_the_link(autojump_clock: trio.testing.MockClock) -> None:
    world, theirs = World(outcome=FakeRoute()), []
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await settle()
        other = other_side(world.answerers[0], theirs)
        await nursery.start(other.run)
        nursery.start_soon(other.serve, world.answerers[0])
        await settle(0.3)
        async with trio.open_nursery() as pings:
            for _ in range(200):
                pings.start_soon(partial(world.links.ping, BOB, timeout_s=30))
        await settle(2)
        assert world.kinds() == theirs_kinds(theirs) == [LinkUp]
        nursery.cancel_scope.cancel()


def theirs_kinds(events: list[NetEvent]) -> list[type]:
    return [type(event) for event in events]


async def test_greeting_anew_keeps_the_connection(autojump_clock: trio.testing.MockClock) -> None:
    world, theirs = World(outcome=FakeRoute()), []
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await settle()
        other = other_side(world.answerers[0], theirs)
        await nursery.start(other.run)
        nursery.start_soon(other.serve, world.answerers[0])
        await settle(6)
        world.models = (ModelAdvert("new", "ab" * 32, 4096, True),)
        world.links.regreet(BOB)
        world.links.regreet("nobody")
        await settle(1)
        nursery.start_soon(other.serve, world.answerers[1])
        await settle(0.5)
        ups = [event for event in theirs if isinstance(event, LinkUp)]
        assert [len(event.hello.models) for event in ups] == [0, 1]
        assert [event.reason for event in theirs if isinstance(event, LinkDown)] == ["bye:idle"]
        assert world.disconnects == []
        nursery.cancel_scope.cancel()


async def test_only_a_greeting_that_is_outdated_is_made_anew(autojump_clock: trio.testing.MockClock) -> None:
    world, theirs = World(outcome=FakeRoute()), []
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await settle()
        other = other_side(world.answerers[0], theirs)
        await nursery.start(other.run)
        nursery.start_soon(other.serve, world.answerers[0])
        await settle(6)
        world.links.regreet(BOB, only_outdated=True)
        await settle(6)
        assert theirs_kinds(theirs) == [LinkUp]
        world.models = (ModelAdvert("new", "ab" * 32, 4096, True),)  # models and load are told by adverts
        world.links.regreet(BOB, only_outdated=True)
        await settle(6)
        assert theirs_kinds(theirs) == [LinkUp]
        world.grant = b"new"
        world.links.regreet(BOB, only_outdated=True)
        await settle(1)
        nursery.start_soon(other.serve, world.answerers[1])
        await settle(0.5)
        assert theirs_kinds(theirs) == [LinkUp, LinkDown, LinkUp]
        nursery.cancel_scope.cancel()


async def test_a_second_link_that_greets_with_something_else_is_told(autojump_clock: trio.testing.MockClock) -> None:
    world = World(outcome=FakeRoute())
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        for models in ((), (ModelAdvert("new", "ab" * 32, 4096, True),)):
            near, far = memory_channels(LINK, dialler=BOB, answerer=ALICE)
            nursery.start_soon(world.links.serve, far)
            bob = World(peer_id=BOB, models=models)
            bob.links.know(ALICE, [])
            await nursery.start(bob.links.run)
            nursery.start_soon(bob.links.serve, near)
            await settle(0.5)
        ups = [event for event in world.events if isinstance(event, LinkUp)]
        assert [len(event.hello.models) for event in ups][:1] == [0]
        assert len(ups[-1].hello.models) == 1
        nursery.cancel_scope.cancel()
