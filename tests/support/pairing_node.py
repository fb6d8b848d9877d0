"""One node's identity, database, peer book and pairing driver, for tests that pair two of them in memory."""

from dataclasses import dataclass, field
from pathlib import Path

import trio
from fixed import FixedClock, SeededEntropy
from memory_channel import MemoryChannel, memory_channels

from node.identity.keystore import Identity
from node.identity.pair import PairingDriver, PairQuestion
from node.identity.peerbook import PeerBook
from node.store.database import Database
from node.store.schema import KITH
from protocol import names

__all__ = ["Owner", "PairingNode", "channels", "open_node"]


@dataclass
class Owner:
    """Answers questions: yes, no, or never."""

    answer: bool = True
    asked: list[PairQuestion] = field(default_factory=list)
    silent: bool = False

    async def confirm(self, question: PairQuestion) -> bool:
        self.asked.append(question)
        if self.silent:
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        return self.answer


@dataclass(slots=True)
class PairingNode:
    """Everything pairing needs of one node."""

    identity: Identity
    database: Database
    clock: FixedClock
    driver: PairingDriver
    book: PeerBook
    owner: Owner
    cut: list[str]


async def open_node(folder: Path, name: str, seed: int) -> PairingNode:
    """A node that lives in folder; the same folder and seed give the same node again."""
    await trio.Path(folder).mkdir(exist_ok=True)
    identity = Identity.from_seed(SeededEntropy(seed).bytes(32))
    database = await Database.open(folder / "kith.db", identity.subkey("database"), KITH)
    clock, cut = FixedClock(), []

    async def cut_streams(peer_id: str) -> None:
        await trio.lowlevel.checkpoint()
        cut.append(peer_id)

    driver = PairingDriver(
        database=database, identity=identity, clock=clock, entropy=SeededEntropy(seed + 1000),
        node_name=lambda: name, addresses=lambda: [f"/ip4/10.0.0.{seed}/tcp/4001"],
    )
    book = PeerBook(database, identity, clock, cut_streams)
    return PairingNode(identity, database, clock, driver, book, Owner(), cut)


def channels(dialler: PairingNode, answerer: PairingNode) -> tuple[MemoryChannel, MemoryChannel]:
    """(dialler's end, answerer's end) of one pairing stream."""
    return memory_channels(names.PAIR, dialler=dialler.identity.peer_id, answerer=answerer.identity.peer_id)
