"""Asking peers over memory channels: whom, with what, until when; ranking what they give; peers that lie or die."""

import contextlib

import pytest
import trio
from memory_channel import ALICE, MemoryChannel, TestClearance
from search_home import ID, RECIPES, Guard, Home, MemoryIndex, ask

from protocol.content import content_texts
from protocol.errors import ChannelLost
from protocol.frames.query import Answer, Passage, QueryEnd, QueryRefused
from search.client import DEADLINE_S
from search.errors import QueryRejected


@pytest.fixture
def home() -> Home:
    return Home(MemoryIndex(*RECIPES))


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
