"""Two real networks on loopback, with handlers that tests share."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio
from patience import HANG_S, until

from node.net.events import NetEvent
from node.net.gate import Gate
from node.net.host import Network
from node.net.limits import NetLimits, PaceLimits, Rate
from node.net.streams import PeerStream
from protocol.errors import ChannelClosed

__all__ = [
    "ANY_PACE", "BROKEN", "ECHO", "HANG_S", "HELD", "LOOPBACK", "LOOPBACK6", "PROTOCOLS", "SINK", "SOURCE", "Node",
    "echoes", "know_each_other", "linked_pair", "make", "port_of", "read_all", "say", "seed_of", "serve_stream",
    "serving", "until",
]

ECHO, SINK, BROKEN, SOURCE, HELD = "/test/echo/1", "/test/sink/1", "/test/broken/1", "/test/source/1", "/test/held/1"
PROTOCOLS = (ECHO, SINK, BROKEN, SOURCE, HELD, "/kith/pair/1")
ANY_PACE = PaceLimits(*[Rate(1 << 30, 1.0)] * 6)
"""As often as anybody likes: for tests of what many calls leave behind, and as the negative control of the limit."""
LOOPBACK = "/ip4/127.0.0.1/tcp/0"
LOOPBACK6 = "/ip6/::1/tcp/0"


class HandlerFailed(Exception):
    """What the broken handler raises."""


async def serve_stream(stream: PeerStream) -> None:
    """Echo; swallow; fail; send 1 MiB and die without an end; or hold still."""
    if stream.protocol == BROKEN:
        raise HandlerFailed("as planned")
    if stream.protocol == HELD:
        await trio.sleep_forever()
    if stream.protocol == SOURCE:
        await stream.write(b"s" * (1 << 20))
        raise HandlerFailed("died in the middle")
    try:
        while True:
            data = await stream.read(1 << 16, deadline_s=60)
            if stream.protocol in (ECHO, "/kith/pair/1"):
                await stream.write(data)
    except ChannelClosed:
        return


@dataclass
class Node:
    """A network with its gate and what it reported."""

    network: Network
    gate: Gate
    events: list[NetEvent] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)

    @property
    def peer_id(self) -> str:
        return self.network.peer_id

    def seen(self, kind: type) -> list[NetEvent]:
        return [event for event in self.events if isinstance(event, kind)]


def seed_of(name: str) -> bytes:
    """A fixed key per name."""
    return name.encode().ljust(32, b".")[:32]


def make(
    name: str,
    limits: NetLimits | None = None,
    handler: Callable[[PeerStream], Awaitable[None]] = serve_stream,
    protocols: Sequence[str] = PROTOCOLS,
) -> Node:
    gate = Gate()
    events: list[NetEvent] = []
    network = Network(seed_of(name), gate, handler, events.append, protocols=protocols, limits=limits)
    return Node(network, gate, events)


def know_each_other(*nodes: Node) -> None:
    for one in nodes:
        for other in nodes:
            if one is not other:
                one.gate.allow(other.peer_id)


@asynccontextmanager
async def serving(*nodes: Node, listen: Sequence[str] = (LOOPBACK,)) -> AsyncIterator[None]:
    """All nodes serve inside the block."""
    async with trio.open_nursery() as nursery:
        for node in nodes:
            node.addresses = await nursery.start(node.network.serve, listen)
        yield
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def linked_pair(
    limits: NetLimits | None = None, listen: Sequence[str] = (LOOPBACK,)
) -> AsyncIterator[tuple[Node, Node]]:
    """(a, b) serving, allowed and connected; b dialled a."""
    a, b = make("a", limits), make("b", limits)
    know_each_other(a, b)
    async with serving(a, b, listen=listen):
        await b.network.connect(a.peer_id, a.addresses, timeout_s=5)
        yield a, b


async def echoes(node: Node, peer_id: str, text: bytes = b"still there?", protocol: str = ECHO) -> bool:
    """Whether a fresh stream echoes."""
    with trio.fail_after(HANG_S):
        stream = await node.network.open(peer_id, protocol, timeout_s=HANG_S)
        answer = await say(stream, text)
        await stream.close_write()
        return answer == text


async def say(stream: PeerStream, text: bytes) -> bytes:
    """Write and read back as many bytes."""
    await stream.write(text)
    answer = b""
    while len(answer) < len(text):
        answer += await stream.read(len(text) - len(answer), deadline_s=HANG_S)
    return answer


async def read_all(stream: PeerStream, deadline_s: float = HANG_S) -> tuple[int, type[Exception]]:
    """How many bytes came, and how it ended."""
    total = 0
    while True:
        try:
            total += len(await stream.read(1 << 20, deadline_s=deadline_s))
        except Exception as error:
            return total, type(error)


def port_of(address: str) -> int:
    return int(address.split("/")[4])
