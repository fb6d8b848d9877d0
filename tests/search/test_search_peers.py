"""Answering peers over memory channels: grants, shares, secrets, bounds, hostile peers."""

import logging

import msgspec
import pytest
import trio
from memory_channel import TestClearance, memory_channels
from search_home import ID, NOTES, RECIPES, SHARED, Home, MemoryIndex, grant

from protocol import limits, names
from protocol.errors import ChannelClosed, ChannelLost
from protocol.frames.query import Answer, Passage, Query, QueryEnd, QueryRefused
from protocol.grants import Grant
from search.server import CONCURRENT, PER_PEER_PER_MINUTE, QueryServer


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
