"""A node whose only business is its links: the real network, the real links, no guard."""

from dataclasses import dataclass, field

import trio
from netpair import PROTOCOLS, seed_of
from netpair import serve_stream as serve_test_stream
from plainchannel import PlainChannel

from node.clock import SystemEntropy
from node.net.events import LinkDown, LinkUp, NetEvent
from node.net.gate import Gate
from node.net.host import Network
from node.net.limits import LinkTiming, NetLimits
from node.net.links import Links
from node.net.relay_hop import RelayPolicy
from node.net.streams import PeerStream
from protocol.frames.link import Hello
from protocol.names import LINK


def hello(name: str) -> Hello:
    return Hello(node_name=name, software="0.1.0", versions=(LINK,), capabilities=("infer",), models=())


@dataclass
class LinkNode:
    """Serve with run(); events holds everything reported."""

    name: str
    limits: NetLimits = field(default_factory=NetLimits)
    timing: LinkTiming = field(default_factory=LinkTiming)
    events: list[NetEvent] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    relay: RelayPolicy | None = None

    def __post_init__(self) -> None:
        self.gate = Gate()
        self.network = Network(
            seed_of(self.name), self.gate, self._serve, self.events.append, protocols=(*PROTOCOLS, LINK),
            limits=self.limits, relay=self.relay,
        )
        self.links = Links(
            self.network, self._open, lambda _peer: hello(self.name), self.events.append, SystemEntropy(), self.timing
        )

    @property
    def peer_id(self) -> str:
        return self.network.peer_id

    async def _open(self, peer_id: str, protocol: str) -> PlainChannel:
        return PlainChannel(await self.network.open(peer_id, protocol, timeout_s=3))

    async def _serve(self, stream: PeerStream) -> None:
        if stream.protocol == LINK:
            await self.links.serve(PlainChannel(stream))
        else:
            await serve_test_stream(stream)

    async def run(self, listen: list[str], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            self.addresses = await nursery.start(self.network.serve, listen)
            await nursery.start(self.links.run)
            task_status.started()

    def meet(self, peer: "LinkNode") -> None:
        """Know a peer and where it is."""
        self.gate.allow(peer.peer_id)
        self.links.know(peer.peer_id, peer.addresses)

    def ups(self) -> list[LinkUp]:
        return [event for event in self.events if isinstance(event, LinkUp)]

    def downs(self) -> list[LinkDown]:
        return [event for event in self.events if isinstance(event, LinkDown)]
