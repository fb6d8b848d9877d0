"""The keeper under a mock clock: what it opens and tells, how often it looks, and that offline is left alone."""

from collections.abc import Callable

import pytest
import trio
from fixed import FixedClock

from node.modes.facts import Facts, Mode, Policy
from node.modes.keeper import LOOK_S, Change, ModeKeeper
from node.modes.machine import SETTLE_S
from node.net.errors import AddressInUse

UNASKED = Policy()
HOME = Facts(addresses=frozenset({"192.168.1.7"}))
AWAY = Facts(addresses=frozenset({"10.0.0.9"}))


class FakeSockets:
    """Remembers what it was told; fails while the port is taken."""

    def __init__(self) -> None:
        self.modes: list[str] = []
        self.refreshed: list[frozenset[str]] = []
        self.taken = False

    async def set_mode(self, mode: str) -> int:
        await trio.lowlevel.checkpoint()
        if self.taken and mode != "offline":
            raise AddressInUse("/ip4/127.0.0.1/tcp/1 is in use by another program.")
        self.modes.append(str(mode))
        return 3

    async def refresh(self, addresses: frozenset[str]) -> None:
        await trio.lowlevel.checkpoint()
        self.refreshed.append(addresses)


class Scene:
    """One keeper over injected facts."""

    def __init__(self, chosen: Mode, policy: Policy = UNASKED) -> None:
        self.facts: Facts | Callable[[], Facts] = HOME
        self.looks = 0
        self.told: list[Change] = []
        self.sockets = FakeSockets()
        self.keeper = ModeKeeper(
            self.sockets, chosen, policy, self.look, lambda: (0, 0), FixedClock(), self.told.append)

    def look(self) -> Facts:
        self.looks += 1
        return self.facts() if callable(self.facts) else self.facts


@pytest.fixture
def clock(autojump_clock: trio.testing.MockClock) -> trio.testing.MockClock:
    """A look is a real thread, and time jumps only when it is done."""
    return autojump_clock


async def test_offline_looks_at_nothing(clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    scene = Scene(Mode.OFFLINE)
    nursery.start_soon(scene.keeper.run)
    await trio.sleep(3600)
    assert (scene.looks, scene.sockets.modes, scene.told) == (0, [], [])


async def test_the_switch_opens_closes_and_tells(clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    scene = Scene(Mode.LAN)
    nursery.start_soon(scene.keeper.run)
    for mode in (Mode.OFFLINE, Mode.ONLINE, Mode.LAN):
        assert await scene.keeper.choose(mode) == 3
    assert scene.sockets.modes == ["offline", "online", "lan"]
    assert [change.state.effective for change in scene.told] == ["offline", "online", "lan"]
    assert list(scene.keeper.changes) == scene.told
    assert await scene.keeper.choose(Mode.LAN) == 0
    assert len(scene.told) == 3


async def test_a_taken_port_leaves_it_offline_and_the_next_try_may_work(
    clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    scene = Scene(Mode.OFFLINE)
    nursery.start_soon(scene.keeper.run)
    scene.sockets.taken = True
    with pytest.raises(AddressInUse):
        await scene.keeper.choose(Mode.LAN)
    assert scene.keeper.state.effective is scene.keeper.state.chosen is Mode.OFFLINE
    looks = scene.looks
    await trio.sleep(60)
    assert scene.looks == looks                         # offline again, left alone again
    scene.sockets.taken = False
    await scene.keeper.choose(Mode.LAN)
    assert scene.sockets.modes == ["lan"]


async def test_another_network_is_followed_without_a_transition(
    clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    scene = Scene(Mode.LAN)
    nursery.start_soon(scene.keeper.run)
    await trio.sleep(5)
    scene.facts = AWAY
    await trio.sleep(LOOK_S * 2)
    assert scene.sockets.refreshed[-1:] == [AWAY.addresses]
    count = len(scene.sockets.refreshed)
    await trio.sleep(60)
    assert len(scene.sockets.refreshed) == count        # the same network again calls nobody
    assert scene.told == []


async def test_a_hint_is_followed_as_the_owner_wants(clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    scene = Scene(Mode.ONLINE, Policy(metered=Mode.LAN))
    nursery.start_soon(scene.keeper.run)
    scene.facts = Facts(addresses=HOME.addresses, metered=True)
    await trio.sleep(SETTLE_S + 3 * LOOK_S)
    for _ in range(20):                     # a busy machine may give the looking thread no turn for several looks
        if not scene.sockets.modes:
            await trio.sleep(LOOK_S)
    assert scene.sockets.modes == ["lan"]
    assert scene.told[-1].state.why == "the connection is metered"


async def test_a_day_of_looking_is_bounded_and_a_look_that_fails_ends_nothing(
    clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    scene = Scene(Mode.LAN)

    def broken() -> Facts:
        raise OSError("no /proc here")

    scene.facts = broken
    nursery.start_soon(scene.keeper.run)
    await trio.sleep(60)
    assert 1 <= scene.looks <= 60 / LOOK_S + 1
    scene.facts = AWAY
    for _ in range(20):                     # a busy machine may give the looking thread no turn for several looks
        await trio.sleep(LOOK_S * 2)
        if scene.keeper.facts == AWAY:
            return
    raise AssertionError(f"still {scene.keeper.facts}")
