"""Links over a route and channels in memory, and the other side of one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import trio
from fixed import SeededEntropy
from memory_channel import ALICE, BOB, MemoryChannel, memory_channels

from node.net.errors import DialFailed
from node.net.events import NetEvent
from node.net.links import Links
from protocol.frames.link import Hello, ModelAdvert
from protocol.names import LINK

__all__ = ["FakeRoute", "World", "other_side", "settle", "until_opened"]


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


async def until_opened(world: World, count: int = 1) -> None:
    with trio.fail_after(60):
        while len(world.answerers) < count:
            await trio.sleep(0.01)
