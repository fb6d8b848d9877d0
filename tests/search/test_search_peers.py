"""Asking peers and answering them over memory channels: grants, shares, secrets, deadlines, hostile peers."""

import contextlib
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import msgspec
import pytest
import trio
from fixed import SeededEntropy
from memory_channel import ALICE, BOB, MemoryChannel, TestClearance, memory_channels

from protocol import limits, names
from protocol.content import content_texts
from protocol.errors import ChannelClosed, ChannelLost
from protocol.frames.query import Answer, Passage, Query, QueryEnd, QueryRefused
from protocol.grants import Grant
from search.analyzer import terms
from search.client import DEADLINE_S, SearchClient
from search.errors import PeerSilent, QueryRejected
from search.plan import SearchPeer
from search.ports import FileState, IndexedPassage, Statistics
from search.server import CONCURRENT, PER_PEER_PER_MINUTE, QueryServer

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


@pytest.fixture
def home() -> Home:
    return Home(MemoryIndex(*RECIPES))


async def answers(server: QueryServer, text: str = "roof", k: int = 10) -> list[msgspec.Struct]:
    """All frames that a peer gets for one query."""
    near, far = memory_channels(names.QUERY)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve, far)
        await near.send_cleared(Query(ID, text, k), TestClearance((text,)))
        frames = []
        try:
            while True:
                frames.append(await near.receive(deadline_s=30))
        except ChannelClosed:
            return frames


# ------------------------------------------------------------ answering


async def test_only_shared_passages_without_secrets_are_given(home: Home) -> None:
    [answer, end] = await answers(home.server())
    assert answer == Answer(ID, (Passage(bytes([1]) * 16, "roof", "how to mend a roof with tiles", "shared recipes"),))
    assert end == QueryEnd(ID, 1)
    assert home.cleared[0].outcome == "complete"
    assert not any("/home" in text for text in home.cleared[0].texts)


async def test_the_checks_matter(home: Home) -> None:
    """Negative control: without the secret check and with the diary shared, both would go out."""
    home.holds_secret = lambda text: False  # type: ignore[method-assign]
    home.folders = frozenset({SHARED, NOTES})
    [answer, _] = await answers(home.server())
    assert {passage.title for passage in answer.passages} == {"roof", "router", "diary"}


async def test_an_index_that_gives_too_much_is_not_believed(home: Home) -> None:
    home.index.ignore_folders = True
    [answer, _] = await answers(home.server())
    assert {passage.title for passage in answer.passages} == {"roof"}


@pytest.mark.parametrize("held", [None, grant(), grant("infer", "mail")])
async def test_without_a_grant_nothing_is_searched(home: Home, held: Grant | None) -> None:
    home.grant = held
    home.index.fail = AssertionError("searched")
    assert await answers(home.server()) == [QueryRefused(ID, "not_granted")]


async def test_revoking_holds_for_the_next_query(home: Home) -> None:
    server = home.server()
    assert len(await answers(server)) == 2
    home.folders = frozenset()
    assert await answers(server) == [QueryEnd(ID, 0)]
    home.grant = None
    assert await answers(server) == [QueryRefused(ID, "not_granted")]


async def test_a_guard_that_refuses_or_breaks_sends_nothing(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    home.refuse = True
    with caplog.at_level(logging.WARNING):
        assert await answers(home.server()) == [QueryRefused(ID, "internal")]
    assert "PermissionError" in caplog.text
    assert "denied" not in caplog.text


async def test_words_that_do_not_count_and_a_failing_index(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    assert await answers(home.server(), "the of") == [QueryRefused(ID, "bad_request")]
    home.index.fail = RuntimeError("disk")
    assert await answers(home.server()) == [QueryRefused(ID, "internal")]


async def test_a_slow_index_is_busy(home: Home, autojump_clock) -> None:
    home.index.delay_s = 60
    assert await answers(home.server()) == [QueryRefused(ID, "busy")]


async def test_k_and_frames_are_bounded(home: Home) -> None:
    long = ("roof " * 820)[:4_090]
    home.index = MemoryIndex(*((SHARED, f"{number} " + "t" * 300, f"{number} {long}") for number in range(40)))
    frames = await answers(home.server(), k=limits.MAX_PASSAGES)
    assert [len(frame.passages) for frame in frames[:-1]] == [8, 8, 8, 8]
    assert frames[-1] == QueryEnd(ID, 32)
    assert max(len(passage.title) for frame in frames[:-1] for passage in frame.passages) == limits.MAX_TITLE_CHARS
    assert [len(frame.passages) for frame in (await answers(home.server(), k=3))[:-1]] == [3]


async def test_rate_per_peer(home: Home, autojump_clock) -> None:
    server = home.server()
    for _ in range(PER_PEER_PER_MINUTE):
        assert len(await answers(server)) == 2
    assert await answers(server) == [QueryRefused(ID, "quota")]
    await trio.sleep(61)
    assert len(await answers(server)) == 2


async def test_queries_at_once_are_bounded(home: Home, autojump_clock) -> None:
    home.index.delay_s = 1
    server = home.server()
    found: list[msgspec.Struct] = []

    async def ask() -> None:
        found.append((await answers(server))[-1])

    async with trio.open_nursery() as nursery:
        for _ in range(CONCURRENT + 3):
            nursery.start_soon(ask)
    assert sorted(type(frame).__name__ for frame in found) == ["QueryEnd"] * CONCURRENT + ["QueryRefused"] * 3
    assert server.active == 0


@pytest.mark.parametrize(
    "data", [b"\x00\x00\x00\x01\xc1", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x00\x00\x00\x02\x93\x01"]
)
async def test_bytes_that_break_the_rules_end_that_stream_only(home: Home, data: bytes) -> None:
    server = home.server()
    near, far = memory_channels(names.QUERY)
    await near.send_raw(data)
    await near.finish()
    await server.serve(far)
    assert far.sent == []
    assert len(await answers(server)) == 2


async def test_a_frame_that_is_no_question(home: Home) -> None:
    near, far = memory_channels(names.QUERY)
    await near.send(QueryEnd(ID, 0))
    await home.server().serve(far)
    with pytest.raises(ChannelLost):
        await near.receive(deadline_s=1)


async def test_a_peer_that_says_nothing_or_takes_nothing(home: Home, autojump_clock) -> None:
    server = home.server()
    _, far = memory_channels(names.QUERY)
    await server.serve(far)
    near, far = memory_channels(names.QUERY, capacity_frames=0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve, far)
        await near.send_cleared(Query(ID, "roof", 5), TestClearance(("roof",)))
    assert server.active == 0
    assert home.cleared[-1].outcome == "failed"


# ------------------------------------------------------------ asking


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


def gives(*passages: tuple[str, str]):
    async def behaviour(far: MemoryChannel) -> None:
        query = await far.receive(deadline_s=5)
        found = tuple(Passage(ID, title, text, "shared") for title, text in passages)
        if found:
            await far.send_cleared(Answer(query.query_id, found), TestClearance(content_texts(Answer(ID, found))))
        await far.send(QueryEnd(query.query_id, len(found)))
        await far.finish()

    return behaviour


def misbehaves(kind: str):
    async def behaviour(far: MemoryChannel) -> None:
        query = await far.receive(deadline_s=5)
        one = (Passage(ID, "half", "half a roof", "shared"),)
        cleared = TestClearance(content_texts(Answer(ID, one)))
        match kind:
            case "silent":
                await trio.sleep(30)
            case "garbage":
                await far.send_raw(b"\x00\x00\x00\x01\xc1")
            case "oversized":
                await far.send_raw(b"\xff\xff\xff\xff")
            case "wrong id":
                await far.send_cleared(Answer(b"x" * 16, one), cleared)
            case "too many":
                with contextlib.suppress(ChannelLost):  # the asker has enough at some point, and resets
                    for _ in range(40):
                        await far.send_cleared(Answer(query.query_id, one), cleared)
            case "refuses":
                await far.send(QueryRefused(query.query_id, "not_granted"))
            case "wrong count":
                await far.send_cleared(Answer(query.query_id, one), cleared)
                await far.send(QueryEnd(query.query_id, 7))
            case "half then silent":
                await far.send_cleared(Answer(query.query_id, one), cleared)
                await trio.sleep(30)
            case "half then gone":
                await far.send_cleared(Answer(query.query_id, one), cleared)
                await far.finish()
            case "drips":
                for _ in range(30):
                    await trio.sleep(0.4)
                    await far.send_cleared(Answer(query.query_id, one), cleared)

    return behaviour


BAD = (
    "silent",
    "garbage",
    "oversized",
    "wrong id",
    "too many",
    "refuses",
    "wrong count",
    "half then silent",
    "half then gone",
    "drips",
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


async def test_own_and_others_are_ranked_together_with_origin() -> None:
    result, _, guard, _ = await ask(
        {"bo": gives(("tiles", "roof roof roof"), ("echo", "unrelated words")), "cy": gives()}
    )
    assert [(hit.title, hit.peer_name, hit.label) for hit in result.hits] == [
        ("tiles", "BO", "shared"),
        ("my roof", "", "notes"),
    ]
    assert sorted(result.answered) == ["BO", "CY"]
    assert result.silent == ()
    assert guard.cleared["bo"].outcome == "complete"


async def test_the_order_is_of_texts_not_of_what_peers_claim() -> None:
    passages = [
        ("a", "roof"),
        ("b", "roof and a house and a garden and much more of other things"),
        ("c", "roof roof roof"),
    ]
    one, _, _, _ = await ask({"bo": gives(*passages)})
    other, _, _, _ = await ask({"bo": gives(*reversed(passages))})
    assert [hit.title for hit in one.hits] == [hit.title for hit in other.hits]


@pytest.mark.parametrize("kind", BAD)
async def test_a_bad_peer_costs_the_others_nothing(kind: str, autojump_clock) -> None:
    result, seconds, guard, _ = await ask({"bad": misbehaves(kind), "bo": gives(("tiles", "roof tiles"))})
    assert "BO" in result.answered
    assert "BAD" in result.silent
    assert {"tiles", "my roof"} <= {hit.title for hit in result.hits}
    assert seconds <= DEADLINE_S + 0.3
    assert guard.cleared["bad"].outcome not in {"", "complete"}


@pytest.mark.parametrize("kind", ["half then silent", "half then gone", "drips"])
async def test_what_came_in_time_counts(kind: str, autojump_clock) -> None:
    result, _, _, _ = await ask({"bad": misbehaves(kind)})
    assert "half" in {hit.title for hit in result.hits}
    assert result.silent == ("BAD",)


async def test_peers_that_cannot_be_opened(autojump_clock) -> None:
    result, seconds, _, _ = await ask({"one": "absent", "two": "hangs", "bo": gives(("tiles", "roof tiles"))})
    assert result.answered == ("BO",)
    assert result.silent == ("ONE", "TWO")
    assert seconds <= DEADLINE_S + 0.3


async def test_30_percent_dead_and_10_percent_late_of_ten(autojump_clock) -> None:
    behaviours: dict[str, object] = {
        f"ok{number}": gives((f"t{number}", f"roof number {number}")) for number in range(6)
    }
    behaviours |= {"dead1": "hangs", "dead2": misbehaves("silent"), "dead3": "absent", "late": misbehaves("silent")}
    result, seconds, _, _ = await ask(behaviours)
    assert len(result.answered) == 6
    assert len(result.silent) == 4
    assert {f"t{number}" for number in range(6)} <= {hit.title for hit in result.hits}
    assert seconds <= DEADLINE_S + 0.3


async def test_a_private_query_goes_nowhere() -> None:
    guard = Guard()
    result, _, _, peers = await ask({"bo": gives(("x", "Dana roof"))}, "Dana roof", guard=guard)
    assert (guard.cleared, peers.opened) == ({}, [])
    assert result.stayed_local == "it holds a name from your contacts"
    assert [hit.title for hit in result.hits] == ["my roof"]
    # Negative control: without the name it is asked.
    _, _, guard, peers = await ask({"bo": gives(("x", "roof"))}, "roof")
    assert len(peers.opened) == 1


async def test_local_only_goes_nowhere() -> None:
    result, _, guard, peers = await ask({"bo": gives(("x", "roof"))}, local_only=True)
    assert (guard.cleared, peers.opened, result.silent) == ({}, [], ())


async def test_a_guard_that_refuses_or_fails_sends_nothing_to_that_peer() -> None:
    guard = Guard()
    guard.deny, guard.broken = {"one"}, {"two"}
    result, _, _, peers = await ask({"one": gives(), "two": gives(), "bo": gives(("x", "roof"))}, guard=guard)
    assert [channel.peer_id for channel in peers.opened] == ["bo"]
    assert result.silent == ("ONE", "TWO")


async def test_only_the_cleared_text_is_sent() -> None:
    _, _, _, peers = await ask({"bo": gives(("x", "roof"))}, "  roof \n tiles ")
    assert [frame.text for frame in peers.opened[0].sent] == ["roof tiles"]


async def test_the_same_text_is_shown_once_and_mine_wins() -> None:
    result, _, _, _ = await ask(
        {"bo": gives(("my roof", "the  roof of our house")), "cy": gives(("a", "roof x"), ("b", "roof x"))}
    )
    assert [(hit.title, hit.peer_name) for hit in result.hits if "house" in hit.text] == [("my roof", "")]
    assert sum("roof x" in hit.text for hit in result.hits) == 1


@pytest.mark.parametrize("query", ["", "  ", "the of", "x" * 1_025])
async def test_queries_without_sense_are_rejected(query: str) -> None:
    with pytest.RaisesGroup(QueryRejected, flatten_subgroups=True):
        await ask({}, query)


async def test_client_and_server_together(home: Home) -> None:
    result, _, _, _ = await ask({ALICE: home.server().serve})
    assert [(hit.title, hit.label) for hit in result.hits] == [("my roof", "notes"), ("roof", "shared recipes")]
    assert "hunter2" not in str(result)
    assert "plumber" not in str(result)
