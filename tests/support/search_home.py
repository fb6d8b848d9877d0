"""A node whose folders peers may search: an index in memory, grants, a guard that clears; and whom it may ask."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import trio
from fixed import SeededEntropy
from memory_channel import ALICE, BOB, MemoryChannel, memory_channels

from protocol import names
from protocol.content import content_texts
from protocol.frames.query import Answer, Passage
from protocol.grants import Grant
from search.analyzer import terms
from search.client import SearchClient
from search.errors import PeerSilent
from search.plan import SearchPeer
from search.ports import FileState, IndexedPassage, Statistics
from search.server import QueryServer

__all__ = [
    "ID", "NOTES", "OWN", "RECIPES", "SHARED", "Clearance", "Guard", "Home", "MemoryIndex", "Peers", "ask", "grant",
]


ID = bytes(16)
NOTES, SHARED = "/home/bo/notes", "/home/bo/shared recipes"


class MemoryIndex:
    """A TermIndex over a list, by plain reading."""

    def __init__(self, *passages: tuple[str, str, str]) -> None:
        self.passages = [
            IndexedPassage(number, bytes([number]) * 16, title, text, folder.rpartition("/")[2], folder, f"{title}.md")
            for number, (folder, title, text) in enumerate(passages)
        ]
        self.ignore_folders = False
        self.fail: Exception | None = None
        self.delay_s = 0.0

    def _inside(self, folders: Collection[str] | None) -> list[IndexedPassage]:
        if folders is None or self.ignore_folders:
            return self.passages
        return [each for each in self.passages if each.folder in folders]

    async def statistics(self, stems: Collection[str], *, folders: Collection[str] | None = None) -> Statistics:
        await trio.sleep(self.delay_s)
        if self.fail:
            raise self.fail
        found = [terms(f"{each.title} {each.text}") for each in self._inside(folders)]
        return Statistics(len(found), sum(map(len, found)), {one: sum(one in each for each in found) for one in stems})

    async def candidates(
        self,
        words: Sequence[str],
        *,
        limit: int,
        folders: Collection[str] | None = None,
    ) -> Sequence[IndexedPassage]:
        wanted = set(terms(" ".join(words)))
        return [each for each in self._inside(folders) if wanted & set(terms(f"{each.title} {each.text}"))][:limit]

    async def states(self) -> Sequence[tuple[FileState, bytes]]:
        return []

    async def put(self, documents: object) -> None: ...
    async def touch(self, states: object) -> None: ...
    async def drop(self, files: object) -> None: ...


@dataclass
class Clearance:
    texts: tuple[str, ...]
    outcome: str = ""

    async def close(self, outcome: str) -> None:
        self.outcome = self.outcome or outcome


def grant(*services: str) -> Grant:
    return Grant(
        services=services,
        models=(),
        tokens_per_day=0,
        max_context=0,
        max_concurrency=0,
        not_after_s=2**31,
        issued_by=BOB,
        issued_to=ALICE,
        epoch=1,
    )


@dataclass
class Home:
    """Everything a QueryServer needs, changeable by a test."""

    index: MemoryIndex
    grant: Grant | None = field(default_factory=lambda: grant("search"))
    folders: frozenset[str] = frozenset({SHARED})
    refuse: bool = False
    cleared: list[Clearance] = field(default_factory=list)

    def grant_for(self, peer_id: str) -> Grant | None:
        assert peer_id == ALICE
        return self.grant

    async def folders_for(self, peer_id: str) -> frozenset[str]:
        assert peer_id == ALICE
        return self.folders

    def holds_secret(self, text: str) -> bool:
        return "hunter2" in text

    async def clear(self, peer_id: str, query_id: bytes, passages: Sequence[Passage]) -> Clearance:
        if self.refuse:
            raise PermissionError("denied")
        self.cleared.append(Clearance(content_texts(Answer(query_id, tuple(passages)))))
        return self.cleared[-1]

    def server(self) -> QueryServer:
        return QueryServer(self.index, self, self, self, self)


RECIPES = (
    (NOTES, "diary", "the roof leaks and the plumber is late"),
    (SHARED, "roof", "how to mend a roof with tiles"),
    (SHARED, "soup", "a soup of beans"),
    (SHARED, "router", "roof antenna password hunter2"),
)


class Guard:
    """Clears every query but those that hold a name."""

    def __init__(self) -> None:
        self.cleared: dict[str, Clearance] = {}
        self.deny: set[str] = set()
        self.broken: set[str] = set()

    async def private_reason(self, text: str) -> str:
        return "it holds a name from your contacts" if "Dana" in text else ""

    async def clear(self, peer_id: str, query_id: bytes, text: str) -> Clearance:
        if peer_id in self.deny:
            raise PeerSilent
        if peer_id in self.broken:
            raise RuntimeError("a guard that fails")
        self.cleared[peer_id] = Clearance((text,))
        return self.cleared[peer_id]


class Peers:
    """Opens channels to behaviours by peer id."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.behaviours: dict[str, object] = {}
        self.opened: list[MemoryChannel] = []

    async def open(self, peer_id: str, *, timeout_s: float) -> MemoryChannel:
        behaviour = self.behaviours[peer_id]
        if behaviour == "absent":
            raise PeerSilent
        if behaviour == "hangs":
            await trio.sleep_forever()
        near, far = memory_channels(names.QUERY)
        near.peer_id = peer_id
        self.opened.append(near)
        self.nursery.start_soon(behaviour, far)
        return near


OWN = MemoryIndex(
    (NOTES, "my roof", "the roof of our house"), (NOTES, "beans", "beans"), (NOTES, "other", "nothing here")
)


async def ask(behaviours: dict[str, object], query: str = "roof", *, guard: Guard | None = None, **more):
    """(result, seconds, guard, peers)"""
    guard = guard or Guard()
    async with trio.open_nursery() as nursery:
        peers = Peers(nursery)
        peers.behaviours = behaviours
        client = SearchClient(OWN, peers, guard, SeededEntropy())
        begun = trio.current_time()
        listed = [SearchPeer(peer_id, peer_id.upper(), granted=True, connected=True) for peer_id in behaviours]
        result = await client.search(query, listed, **more)
        seconds = trio.current_time() - begun
        nursery.cancel_scope.cancel()
    return result, seconds, guard, peers
