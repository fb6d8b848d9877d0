"""A shelf of models over real folders, a ledger in memory and peers that are not there."""

from pathlib import Path

import trio
from memory_channel import BOB

from node.clock import SystemEntropy
from node.daemon.hub import HubDesk
from node.daemon.model_copies import CopyDesk
from node.daemon.models import ModelShelf
from node.errors import PeerUnreachable, UnknownPeer
from offload.joined_engine import JoinedEngine
from offload.local_engine import LocalEngine

__all__ = ["Desk", "FakePeers", "MemoryLedger"]


class MemoryLedger:
    """Entries in the order in which they became durable, and how they ended."""

    def __init__(self):
        self.entries, self.closed = [], []

    async def append(self, draft):
        self.entries.append(draft)
        return len(self.entries)

    async def close(self, place, *, sent_bytes, digest, outcome):
        self.closed.append((place, outcome))


class FakePeers:
    """One peer, ann, as roster and network at once; channel is what a stream to her is."""

    mode = "lan"

    def __init__(self):
        self.services, self.models, self.channel, self.asked = frozenset({"models"}), (), None, []

    def find(self, name):
        if name != "ann":
            raise UnknownPeer()
        return BOB

    def name_of(self, peer_id):
        return "ann"

    async def wait_for(self, peer_id):
        if self.services is None:
            await trio.sleep_forever()

    def allows_us(self, peer_id):
        return self.services

    def adverts(self, peer_id):
        return self.models

    async def open_channel(self, peer_id, protocol):
        self.asked.append((peer_id, protocol))
        if self.channel is None:
            raise PeerUnreachable()
        return self.channel


class Desk:
    """A shelf with its folders, and what it said."""

    def __init__(self, root: Path, hub_url: str = "http://127.0.0.1:1", mode: str = "online"):
        self.own, self.other, self.source = root / "own", root / "other", root / "source"
        for folder in (self.own, self.other, self.source):
            folder.mkdir()
        self.mode, self.kept, self.events, self.ledger = mode, [], [], MemoryLedger()
        self.engine = JoinedEngine(LocalEngine([self.own, self.other], cache_dir=root), None)
        hub = HubDesk(hub_url, self.ledger, lambda: self.mode, lambda: "id")
        self.peers = FakePeers()
        self.shelf = ModelShelf(
            self.engine, [self.own, self.other], root / "digests.json", hub,
            CopyDesk(self.peers, self.peers, SystemEntropy(), "phone"), self.kept.append)

    async def emit(self, event):
        self.events.append(event)

    async def add(self, source):
        await self.shelf.add(str(source), self.emit)
        return [event["model"] for event in self.events if event["event"] == "added"]

    def hidden(self):
        return [path.name for path in self.own.iterdir() if path.name.startswith(".")]
