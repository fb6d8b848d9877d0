"""A relay and two peers that cannot call each other, on loopback: what a relay carries is kept for the test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio
from netpair import PROTOCOLS, Node, seed_of, serve_stream, serving, until

from node.net.events import NetEvent
from node.net.gate import Gate
from node.net.host import Network
from node.net.limits import NetLimits
from node.net.streams import PeerStream


@dataclass
class KeptAccount:
    """The bytes of one circuit, both directions in the order they passed."""

    caller: str
    called: str
    data: bytearray = field(default_factory=bytearray)
    outcome: str | None = None

    def add(self, data: bytes) -> None:
        self.data += data

    async def close(self, outcome: str) -> None:
        await trio.lowlevel.checkpoint()
        self.outcome = outcome


@dataclass
class KeptPolicy:
    """Carries for whom it is told; keeps everything that is carried."""

    carries: set[str] = field(default_factory=set)
    accounts: list[KeptAccount] = field(default_factory=list)

    def carries_for(self, peer_id: str) -> bool:
        return peer_id in self.carries

    def now_s(self) -> int:
        return 1_800_000_000

    async def account(self, caller: str, called: str) -> KeptAccount:
        await trio.lowlevel.checkpoint()
        self.accounts.append(KeptAccount(caller, called))
        return self.accounts[-1]


def make_relaying(
    name: str, limits: NetLimits | None = None,
    handler: Callable[[PeerStream], Awaitable[None]] = serve_stream,
) -> tuple[Node, KeptPolicy]:
    """A node that speaks the relay protocols."""
    gate, policy = Gate(), KeptPolicy()
    events: list[NetEvent] = []
    network = Network(
        seed_of(name), gate, handler, events.append, protocols=PROTOCOLS, limits=limits, relay=policy
    )
    return Node(network, gate, events), policy


@dataclass
class Trio:
    """relay knows both peers and carries for both; near and far know each other but no address of each other."""

    relay: Node
    policy: KeptPolicy
    near: Node
    far: Node


@asynccontextmanager
async def around_a_relay(limits: NetLimits | None = None, *, reserved: bool = True) -> AsyncIterator[Trio]:
    """Both peers are connected to the relay; far holds a place there when `reserved`."""
    (relay, policy), (near, _), (far, _) = (make_relaying(name, limits) for name in ("relay", "near", "far"))
    for one in (near, far):
        relay.gate.allow(one.peer_id)
        one.gate.allow(relay.peer_id)
        policy.carries.add(one.peer_id)
    near.gate.allow(far.peer_id)
    far.gate.allow(near.peer_id)
    async with serving(relay, near, far):
        for one in (near, far):
            await one.network.connect(relay.peer_id, relay.addresses, timeout_s=5)
        if reserved:
            far.network.guest.use([relay.peer_id])
            assert relay.network.relay is not None
            service = relay.network.relay
            await until(lambda: far.peer_id in service.reservations)
            await until(lambda: relay.peer_id in far.network.guest.places)
        near.network.guest.use([relay.peer_id])
        yield Trio(relay, policy, near, far)
