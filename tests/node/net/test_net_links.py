"""Links without a network: calls, presence, duplicates, wake, forget. A mock clock's time, channels in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest
import trio
from fixed import SeededEntropy
from linknode import hello
from memory_channel import ALICE, BOB, MemoryChannel, memory_channels

from node.errors import PeerUnreachable
from node.net.errors import DialFailed, NetworkStopped, RefusedByPeer
from node.net.events import GrantReceived, LinkDown, LinkUp, ModelsAdvertised, NetEvent
from node.net.links import Links
from protocol import limits
from protocol.frames.link import Beat, Echo, Hello, Load, ModelAdvert
from protocol.names import LINK


@dataclass(frozen=True)
class FakeRoute:
    address: str = "/ip4/127.0.0.1/tcp/1"
    dialled: bool = True
    via: str | None = None


@dataclass
class World:
    """A network that connects to nobody until told to, for the node ALICE; answerers holds BOB's ends of its links."""

    outcome: Exception | FakeRoute = field(default_factory=lambda: DialFailed("nobody there"))
    attempts_s: list[float] = field(default_factory=list)
    disconnects: list[str] = field(default_factory=list)
    events: list[NetEvent] = field(default_factory=list)
    answerers: list[MemoryChannel] = field(default_factory=list)
    models: tuple[ModelAdvert, ...] = ()
    grant: bytes = b""
    capabilities: tuple[str, ...] = ()
    peer_id: str = ALICE

    def __post_init__(self) -> None:
        self.links = Links(self, self.open_channel, self.hello, self.events.append, SeededEntropy())

    def hello(self, _peer: str) -> Hello:
        return Hello(
            node_name="alice", software="0.1.0", versions=(LINK,), capabilities=self.capabilities, models=self.models,
            grant=self.grant)

    async def connect(self, peer_id: str, addresses: Sequence[str], *, timeout_s: float) -> FakeRoute:
        await trio.lowlevel.checkpoint()
        self.attempts_s.append(trio.current_time())
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def connection(self, peer_id: str) -> FakeRoute | None:
        return self.outcome if isinstance(self.outcome, FakeRoute) else None

    async def disconnect(self, peer_id: str) -> None:
        await trio.lowlevel.checkpoint()
        self.disconnects.append(peer_id)

    async def open_channel(self, peer_id: str, protocol: str) -> MemoryChannel:
        await trio.lowlevel.checkpoint()
        near, far = memory_channels(protocol, dialler=self.peer_id, answerer=peer_id)
        self.answerers.append(far)
        return near

    def kinds(self) -> list[type]:
        return [type(event) for event in self.events]


def other_side(channel: MemoryChannel, events: list[NetEvent]) -> Links:
    """BOB's links, which know ALICE but cannot call."""
    world = World(peer_id=BOB, events=events)
    world.links.know(ALICE, [])
    return world.links


async def settle(seconds: float = 0.0) -> None:
    await trio.sleep(seconds)
    await trio.testing.wait_all_tasks_blocked()


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


async def until_opened(world: World, count: int = 1) -> None:
    with trio.fail_after(60):
        while len(world.answerers) < count:
            await trio.sleep(0.01)


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
