"""The sides of a household in one process: real network on loopback, real guard and ledger, real databases, one engine.

What the benchmarks of delegation and messages run on: the parts of the daemon without its agent, so that both ways to
the same worker can be timed by one clock. Must not know what is timed.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

import trio

from node.clock import SystemClock, SystemEntropy, new_id
from node.identity.keystore import Identity
from node.net.events import LinkUp, NetEvent
from node.net.gate import Gate
from node.net.host import Network
from node.net.links import Links
from node.net.streams import PeerStream
from node.privacy.consent import ConsentAnswer, ConsentQuestion
from node.privacy.egress import Egress, PeerView
from node.privacy.inspector import Inspector
from node.privacy.ledger import Ledger
from node.privacy.ledger_head import FileHeadKeeper, SeedSigner
from node.privacy.ledger_rows import StoredLedgerRows
from node.privacy.nets import SecretsNet, VaultNet
from node.store.database import Database
from node.store.schema import KITH
from protocol.channel import FrameChannel
from protocol.frames.link import Hello
from protocol.grants import ANY_MODEL, Grant
from protocol.names import LINK, PROTOCOLS

__all__ = ["ECHO", "OPEN_TIMEOUT_S", "Allowing", "FreeUsage", "OneGrant", "Side", "sides", "two_sides"]

ECHO = "/bench/echo/1"
OPEN_TIMEOUT_S = 5.0
VAULT_VALUES = 200


class Allowing:
    """An owner who says yes at once."""

    async def ask(self, question: ConsentQuestion) -> ConsentAnswer:
        """Yes to exactly this question."""
        return ConsentAnswer(True, question.digest, "benchmark")


@dataclass
class OneGrant:
    """Everything for this one peer."""

    issued_by: str
    issued_to: str

    def grant_for(self, peer_id: str) -> Grant | None:
        """The grant."""
        return Grant(
            services=("infer", "mail", "search"), models=(ANY_MODEL,), tokens_per_day=2**40, max_context=131_072,
            max_concurrency=8, not_after_s=2**40, issued_by=self.issued_by, issued_to=self.issued_to, epoch=1,
        )

    def reopens_in_s(self, peer_id: str) -> int | None:
        """Never closed."""
        return None

    def ran_out(self, peer_id: str) -> bool:
        """Never."""
        return False


class FreeUsage:
    """Nothing was used yet, ever."""

    async def tokens_on(self, peer_id: str, day: date) -> int:
        """Zero."""
        return 0

    async def add_tokens(
        self, peer_id: str, day: date, *, prompt_tokens: int, output_tokens: int, requests: int = 1
    ) -> None:
        """Not counted."""


@dataclass
class Side:
    """One node's parts. serve: what happens to a stream that the other side opens, by protocol id."""

    name: str
    identity: Identity
    database: Database
    egress: Egress
    gate: Gate = field(default_factory=Gate)
    serve: dict[str, Callable[[FrameChannel], Awaitable[None]]] = field(default_factory=dict)
    links_up: trio.Event = field(default_factory=trio.Event)
    network: Network = field(init=False)
    links: Links | None = None
    addresses: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.network = Network(
            self.identity.seed, self.gate, self._on_stream, self._on_event, protocols=(*PROTOCOLS, ECHO)
        )

    @property
    def peer_id(self) -> str:
        """Its id."""
        return self.identity.peer_id

    def view(self) -> PeerView:
        """This side as the other one's guard sees it."""
        return PeerView(self.peer_id, self.name, "home")

    async def open_channel(self, peer_id: str, protocol: str) -> FrameChannel:
        """A guarded channel to the other side."""
        stream = await self.network.open(peer_id, protocol, timeout_s=OPEN_TIMEOUT_S)
        channel: FrameChannel = self.egress.channel(stream)
        return channel

    def new_links(self) -> Links:
        """Fresh links, as after a start."""
        self.links_up = trio.Event()
        self.links = Links(self.network, self.open_channel, self._hello, self._on_event, SystemEntropy())
        return self.links

    def _hello(self, peer_id: str) -> Hello:
        return Hello(self.name, "0.0.0", PROTOCOLS, ("infer", "mail"), ())

    def _on_event(self, event: NetEvent) -> None:
        if isinstance(event, LinkUp):
            self.links_up.set()

    async def _on_stream(self, stream: PeerStream) -> None:
        if stream.protocol == ECHO:
            while True:
                await stream.write(await stream.read(65536, deadline_s=600))
        channel: FrameChannel = self.egress.channel(stream)
        if stream.protocol == LINK and self.links is not None:
            await self.links.serve(channel)
        else:
            await self.serve[stream.protocol](channel)


async def _make(name: str, folder: Path) -> Side:
    identity = Identity.from_seed(os.urandom(32))
    database = await Database.open(folder / f"{name}.db", identity.subkey("database"), KITH)
    ledger = Ledger(
        StoredLedgerRows(database), FileHeadKeeper(folder / f"{name}.head"), SeedSigner(identity.subkey("ledger-head")),
        chain_key=identity.subkey("ledger-chain"), seal_key=identity.subkey("ledger-seal"), clock=SystemClock(),
    )
    vault = VaultNet()
    await vault.load((f"Zyxel{number} Quorndale{number}", "PERSON") for number in range(VAULT_VALUES))
    inspector = Inspector(vault=vault, secrets=SecretsNet(), detectors=None)
    entropy = SystemEntropy()
    egress = Egress(inspector=inspector, ledger=ledger, shares=None, new_id=lambda: new_id(entropy))
    return Side(name, identity, database, egress)


@asynccontextmanager
async def sides(folder: Path, providers: int) -> AsyncIterator[tuple[Side, list[Side]]]:
    """(asker, providers), each listening on loopback; the asker knows all of them and has connected."""
    asker = await _make("asker", folder)
    others = [await _make(f"provider-{number}", folder) for number in range(providers)]
    try:
        async with trio.open_nursery() as nursery:
            for side in (asker, *others):
                side.addresses = await nursery.start(side.network.serve, ["/ip4/127.0.0.1/tcp/0"])
            for provider in others:
                asker.gate.allow(provider.peer_id)
                provider.gate.allow(asker.peer_id)
                await asker.network.connect(provider.peer_id, provider.addresses, timeout_s=OPEN_TIMEOUT_S)
            yield asker, others
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            for side in (asker, *others):
                await side.database.close()


@asynccontextmanager
async def two_sides(folder: Path) -> AsyncIterator[tuple[Side, Side]]:
    """(asker, provider), each listening on loopback and knowing the other; the asker has connected."""
    asker, provider = await _make("asker", folder), await _make("provider", folder)
    asker.gate.allow(provider.peer_id)
    provider.gate.allow(asker.peer_id)
    try:
        async with trio.open_nursery() as nursery:
            for side in (asker, provider):
                side.addresses = await nursery.start(side.network.serve, ["/ip4/127.0.0.1/tcp/0"])
            await asker.network.connect(provider.peer_id, provider.addresses, timeout_s=OPEN_TIMEOUT_S)
            yield asker, provider
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await asker.database.close()
            await provider.database.close()


def today() -> date:
    """The day, as quotas count it."""
    return datetime.now(UTC).date()
