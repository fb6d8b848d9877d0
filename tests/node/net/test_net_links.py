"""Links without a network: calls, presence, duplicates, wake, forget. A mock clock's time, channels in memory."""

from functools import partial

import pytest
import trio
from linknode import hello
from links_world import FakeRoute, World, other_side, settle, until_opened
from memory_channel import ALICE, BOB, memory_channels

from node.net.errors import NetworkStopped, RefusedByPeer
from node.net.events import LinkDown, LinkUp
from protocol import limits
from protocol.frames.link import Beat
from protocol.names import LINK


async def test_an_absent_peer_is_called_often_at_first_and_rarely_later(autojump_clock: trio.testing.MockClock) -> None:
    world = World()
    world.links.know(BOB, ["/ip4/127.0.0.1/tcp/1"])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await trio.sleep(2)
        assert 4 <= len(world.attempts_s) <= 10
        await trio.sleep(3600)
        pauses = [later - earlier for earlier, later in zip(world.attempts_s, world.attempts_s[1:], strict=False)]
        assert min(pauses) >= 0.08
        assert 45 <= pauses[-1] <= 72
        assert len(world.attempts_s) < 150
        assert world.events == []
        nursery.cancel_scope.cancel()


async def test_wake_calls_at_once_and_starts_short_again(autojump_clock: trio.testing.MockClock) -> None:
    world = World()
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await trio.sleep(3600)
        before = len(world.attempts_s)
        woken_s = trio.current_time()
        world.links.wake(BOB)
        await trio.sleep(0.3)
        assert len(world.attempts_s) >= before + 2
        assert world.attempts_s[before] == woken_s
        world.links.wake()
        world.links.wake("nobody")
        world.links.know(BOB, ["/ip4/127.0.0.2/tcp/1"])  # new addresses are a reason to call, too
        await settle()
        assert world.attempts_s[-1] == trio.current_time()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("failure", "at_least_s"), [
    (RefusedByPeer(), 5.0), (NetworkStopped(), 0.08), (OSError(), 0.08),
])
async def test_failures_of_all_kinds_lead_to_another_call(
    autojump_clock: trio.testing.MockClock, failure: Exception, at_least_s: float,
) -> None:
    world = World(outcome=failure)
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await trio.sleep(60)
        pauses = [later - earlier for earlier, later in zip(world.attempts_s, world.attempts_s[1:], strict=False)]
        assert len(pauses) > 5
        assert min(pauses) >= at_least_s
        nursery.cancel_scope.cancel()


async def test_presence_comes_with_hello_and_an_echo(autojump_clock: trio.testing.MockClock) -> None:
    world, seen_by_bob = World(outcome=FakeRoute()), []
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await until_opened(world)
        assert world.events == []
        bob = other_side(world.answerers[0], seen_by_bob)
        await nursery.start(bob.run)
        nursery.start_soon(bob.serve, world.answerers[0])
        await settle()
        assert world.kinds() == [LinkUp]
        (up,) = world.events
        assert isinstance(up, LinkUp)
        assert (up.peer_id, up.address, up.protocols) == (BOB, "/ip4/127.0.0.1/tcp/1", frozenset({LINK}))
        assert [type(event) for event in seen_by_bob] == [LinkUp]
        await trio.sleep(30)
        assert world.kinds() == [LinkUp]
        assert world.links.present().keys() == {BOB}
        nursery.cancel_scope.cancel()


async def test_a_silent_peer_goes_down_at_the_deadline_and_is_dialled_afresh(
    autojump_clock: trio.testing.MockClock,
) -> None:
    world, seen_by_bob = World(outcome=FakeRoute()), []
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await until_opened(world)
        bob = other_side(world.answerers[0], seen_by_bob)
        await nursery.start(bob.run)
        bob_alive = trio.CancelScope()

        async def serve() -> None:
            with bob_alive:
                await bob.serve(world.answerers[0])

        nursery.start_soon(serve)
        await settle(5)
        silent_s = trio.current_time()
        bob_alive.cancel()  # his process stands still: nothing is closed, nothing comes
        with trio.fail_after(10):
            while LinkDown not in world.kinds():
                await trio.sleep(0.01)
        assert trio.current_time() - silent_s <= limits.LINK_DEAD_S + 0.1
        assert world.events[-1] == LinkDown(BOB, "silent")
        await until_opened(world, 2)
        assert world.disconnects == [BOB]
        assert world.links.present() == {}
        nursery.cancel_scope.cancel()


async def test_a_peer_that_never_says_hello_is_never_present(autojump_clock: trio.testing.MockClock) -> None:
    world = World(outcome=FakeRoute())
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await until_opened(world, 2)
        assert world.events == []
        assert world.disconnects == [BOB]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("bad", [
    [Beat(1)], [hello("bob"), hello("bob")], [hello("bob"), *[Beat(n) for n in range(60)]],
])
async def test_a_peer_that_breaks_the_protocol_is_dropped(
    autojump_clock: trio.testing.MockClock, bad: list[object],
) -> None:
    world = World(outcome=FakeRoute())
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await until_opened(world)
        bob = world.answerers[0]
        with trio.move_on_after(2):
            for frame in bad:
                await bob.send(frame)  # type: ignore[arg-type]
            await bob.receive(deadline_s=1)
        await until_opened(world, 2)
        assert world.disconnects == [BOB]
        assert bob._lost
        nursery.cancel_scope.cancel()


async def test_when_the_peer_dialled_we_wait_for_its_link_and_open_our_own_only_later(
    autojump_clock: trio.testing.MockClock,
) -> None:
    world = World(outcome=FakeRoute(dialled=False))
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await trio.sleep(2)
        assert world.answerers == []
        near, far = memory_channels(LINK, dialler=BOB, answerer=ALICE)
        bob = other_side(near, [])
        nursery.start_soon(world.links.serve, far)
        await nursery.start(bob.run)
        nursery.start_soon(partial(bob._hold, bob._peers[ALICE], near, opened_here=True))
        await trio.sleep(30)
        assert world.kinds() == [LinkUp]
        assert world.answerers == []
        await bob.leave_all("offline")
        await settle()
        assert world.events[-1] == LinkDown(BOB, "bye:offline")
        await until_opened(world)  # nobody opened one: now we do
        nursery.cancel_scope.cancel()


async def test_strangers_and_a_node_that_is_not_running_serve_no_link(autojump_clock: trio.testing.MockClock) -> None:
    world = World()
    near, far = memory_channels(LINK)
    await world.links.serve(near)
    assert far._lost
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        near, far = memory_channels(LINK)
        await world.links.serve(near)
        assert far._lost
        nursery.cancel_scope.cancel()


async def test_forgetting_stops_the_calls(autojump_clock: trio.testing.MockClock) -> None:
    world = World()
    world.links.know(BOB, [])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await trio.sleep(1)
        await world.links.forget(BOB)
        await world.links.forget(BOB)
        count = len(world.attempts_s)
        await trio.sleep(1000)
        assert len(world.attempts_s) == count
        nursery.cancel_scope.cancel()


async def test_links_run_again_after_they_ended(autojump_clock: trio.testing.MockClock) -> None:
    world = World()
    world.links.know(BOB, [])
    for _ in range(2):
        before = len(world.attempts_s)
        async with trio.open_nursery() as nursery:
            await nursery.start(world.links.run)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        assert len(world.attempts_s) > before


async def test_hearing_of_a_dead_peer_does_not_bring_it_back(autojump_clock: trio.testing.MockClock) -> None:
    """What a third node tells - addresses, again and again - is a reason to call, never presence."""
    world = World()
    world.links.know(BOB, ["/ip4/127.0.0.1/tcp/1"])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        for number in range(100):
            world.links.know(BOB, [f"/ip4/127.0.0.1/tcp/{number + 2}"])
            await trio.sleep(30)
        assert world.events == []
        assert world.links.present() == {}
        assert len(world.attempts_s) < 100 * 15     # and each telling costs a few calls, no storm
        world.outcome = FakeRoute()                 # it really answers now: presence follows at once
        answering = World(peer_id=BOB).links
        answering.know(ALICE, [])
        await nursery.start(answering.run)
        world.links.wake(BOB)
        await settle(0.2)
        for channel in world.answerers:
            nursery.start_soon(answering.serve, channel)
        await settle(1.0)
        assert world.kinds() == [LinkUp]
        nursery.cancel_scope.cancel()


async def test_a_night_without_anybody_is_a_call_a_minute(autojump_clock: trio.testing.MockClock) -> None:
    world = World()
    world.links.know(BOB, ["/ip4/127.0.0.1/tcp/1"])
    async with trio.open_nursery() as nursery:
        await nursery.start(world.links.run)
        await trio.sleep(3600)
        before = len(world.attempts_s)
        await trio.sleep(8 * 3600)
        assert 8 * 60 / 1.3 <= len(world.attempts_s) - before <= 8 * 60 * 1.3
        nursery.cancel_scope.cancel()
