"""Heavy work here or at a peer: masked on the way out, filled in on the way back, one answer over a peer's death.

Real guard, real drivers on both sides over streams in memory; engines play scripts. The peer's engine shows what
reached it, and it must never be a name.
"""

from dataclasses import replace
from typing import Any

import pytest
import trio
from memory_channel import BOB
from thinker_house import DIE, DIGEST, MODEL, NAME, house

from node.agent.ports import ThinkJob, ThinkPart
from node.daemon.legs import parts_of
from node.daemon.thinker import ThinkFailed
from node.errors import KithError, ModelMissing, NotPaired, PeerUnreachable, StorageError, UnknownPeer
from node.privacy.labels import is_own_text, public_text
from offload.ports import Failed, Queued
from offload.router import Offer


async def test_a_peer_gets_placeholders_and_the_owner_reads_names(autojump_clock: object) -> None:
    home = await house("Dear ", "[PERSON_", "1], ", "hello.")
    result = await home.think()
    assert (result.text, result.ran_on, result.peer_id) == (f"Dear {NAME}, hello.", "home-pc", BOB)
    assert result.reason == "heavy work, and home-pc is reachable"
    assert "".join(home.shown) == result.text
    assert NAME not in home.there.prompt()
    assert "[PERSON_1]" in home.there.prompt()
    assert home.here.requests == []
    assert await home.outcomes() == ["answered"]
    assert (home.peers.most_at_work, home.peers.at_work) == (1, 0)
    assert all(NAME.encode() not in data for _, _, data in home.near.tapped)


async def test_a_peer_that_dies_in_mid_answer_is_continued_here_from_the_same_words(autojump_clock: object) -> None:
    home = await house("Dear ", "[PERSON_1], ", "I am ", DIE, here=("writing to [PERS", "ON_1] again."))
    result = await home.think()
    assert result.text == f"Dear {NAME}, I am writing to {NAME} again."
    assert "".join(home.shown) == result.text
    assert (result.ran_on, result.peer_id) == ("phone", None)
    assert "home-pc stopped in mid-answer" in result.reason
    assert home.here.requests[0].text_so_far == "Dear [PERSON_1], I am "
    assert NAME not in home.here.prompt()       # the same masked words, whoever goes on with them
    (outcome,) = await home.outcomes()
    assert outcome.startswith("broken")
    assert home.peers.at_work == 0


async def test_a_peer_that_dies_before_its_first_word_is_replaced(autojump_clock: object) -> None:
    home = await house(DIE)
    result = await home.think()
    assert (result.text, result.ran_on) == ("Here it is.", "phone")
    assert result.reason.startswith("home-pc did not answer")


async def test_a_refusal_is_remembered_and_the_work_done_here(autojump_clock: object) -> None:
    home = await house("never")
    home.grants.services = ()
    result = await home.think()
    assert (result.text, result.ran_on) == ("Here it is.", "phone")
    ((peer_id, words),) = home.peers.notes
    assert peer_id == BOB
    assert result.reason == f"home-pc: refused a moment ago: {words}"      # said once
    assert home.here.prompt().endswith(f"Write to {NAME}.")     # its own device reads the real words
    assert await home.outcomes() == ["failed"]


async def test_a_no_of_the_owner_keeps_it_here(autojump_clock: object) -> None:
    home = await house("never", allows=False)
    result = await home.think()
    assert (result.ran_on, home.there.requests, home.near.tapped) == ("phone", [], [])
    assert result.reason.startswith("home-pc: ")
    assert await home.outcomes() == []


async def test_a_named_peer_is_not_replaced(autojump_clock: object) -> None:
    home = await house("never", allows=False)
    with pytest.raises(KithError):
        await home.think(place="home-pc")
    home.peers.connected = False
    with pytest.raises(PeerUnreachable):
        await home.think(place="home-pc")
    home.peers.connected, home.peers.granted = True, False
    with pytest.raises(NotPaired):
        await home.think(place="home-pc")
    with pytest.raises(UnknownPeer):
        await home.think(place="nobody")
    home.peers.granted, home.peers.hindrance = True, "its level for prompts is never"
    with pytest.raises(KithError, match="its level for prompts is never") as refused:
        await home.think(place="home-pc")
    assert "kith privacy" in refused.value.hint
    assert home.here.requests == []
    assert home.near.tapped == []


@pytest.mark.parametrize("away", ["offline", "not connected", "not granted", "no peer", "asked for here"])
async def test_what_cannot_or_must_not_leave_stays_and_says_why(away: str, autojump_clock: object) -> None:
    home = await house("never")
    home.mode = "offline" if away == "offline" else "lan"
    home.peers.connected = away != "not connected"
    home.peers.granted = away != "not granted"
    home.peers.known = away != "no peer"
    result = await home.think(place="local" if away == "asked for here" else "auto")
    said = {
        "offline": "this node is offline", "not connected": "not reachable now", "not granted": "not granted",
        "no peer": "no peer is paired", "asked for here": "you asked for this device only",
    }[away]
    assert said in result.reason
    assert (result.ran_on, home.near.tapped) == ("phone", [])
    assert home.near.owner.questions == []


async def test_without_any_model_it_says_so(autojump_clock: object) -> None:
    home = await house("never")
    home.model = None
    home.peers.connected = False
    with pytest.raises(ModelMissing):
        await home.think()
    assert home.near.tapped == []


async def test_a_local_engine_that_fails_says_why(autojump_clock: object) -> None:
    home = await house(here=("Half ", Failed("worker_died", "The worker died twice.", "See: kith logs")))
    with pytest.raises(ThinkFailed, match="The worker died twice") as failed:
        await home.think(place="local")
    assert failed.value.hint == "See: kith logs"


@pytest.mark.parametrize("room", [8192, 2048])
async def test_a_prompt_that_turns_out_too_long_for_here_goes_to_a_peer_where_it_fits(
    room: int, autojump_clock: object,
) -> None:
    """It was thought to fit, the engine counted; the peer came back meanwhile. One with no more room is not asked."""
    home = await house("Dear [PERSON_1].", here=(Failed("prompt_too_long", "The prompt is too long.", "Shorten it"),))
    peer = replace(home.peers.candidates()[0], models=(Offer("smollm2", DIGEST, room),))
    home.peers.candidates = lambda: (replace(peer, connected=bool(home.here.requests)),)    # type: ignore[method-assign]
    if room > MODEL.context_tokens:
        result = await home.think()
        assert (result.text, result.ran_on, result.peer_id) == (f"Dear {NAME}.", "home-pc", BOB)
        assert result.reason == "too long for the model of phone; heavy work, and home-pc is reachable"
    else:
        with pytest.raises(ThinkFailed, match="too long") as failure:
            await home.think()
        assert failure.value.hint == "Shorten it"
        assert home.there.requests == []
    assert len(home.here.requests) == 1


async def test_the_place_in_the_own_queue_is_told_with_when_it_may_be_its_turn(autojump_clock: object) -> None:
    home = await house(here=(Queued(2, 8.4), Queued(1, None), Queued(0, 0.0), "Here it is."))
    notes: list[str] = []

    async def note(text: str) -> None:
        notes.append(text)

    await home.think(place="local", on_note=note)
    assert notes[-2:] == [
        "This device is busy: number 3 in its queue, about 8 s.", "This device is busy: number 2 in its queue."]


async def test_the_place_in_a_peers_queue_is_told_with_when_it_may_be_its_turn(autojump_clock: object) -> None:
    home = await house(Queued(2, 8.4), "Here it is.")
    notes: list[str] = []

    async def note(text: str) -> None:
        notes.append(text)

    await home.think(place="home-pc", on_note=note)
    assert [text for text in notes if "queue" in text] == ["home-pc: number 3 in its queue, about 9 s."]


async def test_a_named_adapter_reaches_the_engine_here(autojump_clock: object) -> None:
    home = await house(here=("Calm words.",))
    await home.think(place="local", adapter="cd" * 32)
    await home.think(place="local")
    assert [request.adapter for request in home.here.requests] == ["cd" * 32, None]


@pytest.mark.parametrize("place", ["auto", "local"])
async def test_enough_is_enough_here_and_there(place: str, autojump_clock: object) -> None:
    many = tuple(f"{number} " for number in range(500))
    home = await house(*many, here=many)
    home.enough_after = 3
    result = await home.think(place=place)
    assert result.finish_reason == "stopped"
    engine = home.there if place == "auto" else home.here
    assert engine.produced < 500
    assert home.shown[:3] == ["0 ", "1 ", "2 "]


async def test_a_cancelled_request_stops_the_peer_and_closes_its_entry(autojump_clock: object) -> None:
    home = await house(*(f"{number} " for number in range(100_000)))
    with trio.move_on_after(5):
        async def cut(text: str) -> bool:
            home.shown.append(text)
            if len(home.shown) == 3:
                scope.cancel()
            await trio.lowlevel.checkpoint()
            return True

        home.on_text = cut  # type: ignore[method-assign]
        with trio.CancelScope() as scope:
            await home.think()
    assert len(home.shown) == 3
    assert home.there.produced < 1000
    assert await home.outcomes() == ["cancelled"]
    assert home.peers.at_work == 0


async def test_a_death_without_a_model_here_is_no_clean_end_and_tells_both(autojump_clock: object) -> None:
    """What was read stays, after a minute in which somebody could have come back."""
    home = await house("Dear ", DIE)
    home.model = None
    begun = trio.current_time()
    result = await home.think()
    assert (result.text, result.finish_reason, result.ran_on) == ("Dear ", "broken", "home-pc")
    assert result.reason.startswith("home-pc stopped in mid-answer (the connection broke); nobody could go on: ")
    assert "no model on this device" in result.reason
    assert trio.current_time() - begun == pytest.approx(60, abs=2)


async def test_a_peer_that_comes_back_goes_on_where_it_stopped(autojump_clock: object) -> None:
    home = await house("Dear ", "[PERSON_1], ", DIE)
    home.model = None

    async def come_back() -> None:
        await trio.sleep(5)
        home.there.script = ("I am ", "late.")
        home.peers.refused = ""     # it greeted

    async with trio.open_nursery() as nursery:
        nursery.start_soon(come_back)
        result = await home.think()
    assert (result.text, result.finish_reason) == (f"Dear {NAME}, I am late.", "stop")
    assert "".join(home.shown) == result.text
    first, second = home.there.requests
    assert (second.text_so_far, second.token_ids_so_far) == ("Dear [PERSON_1], ", (0, 1))
    assert second.max_tokens == first.max_tokens - 2
    assert len(home.near.owner.questions) == 1      # it reads nothing that it did not read or write before
    assert (await home.outcomes())[1:] == ["answered"]
    assert [(leg.ran_on, leg.begun_at) for leg in result.legs] == [("home-pc", 0), ("home-pc", len(f"Dear {NAME}, "))]


@pytest.mark.parametrize("failure", [StorageError("The disk is full."), trio.TooSlowError()])
async def test_a_complete_answer_is_given_though_its_entry_cannot_be_closed(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    home = await house("Dear ", "[PERSON_1].")

    async def fail(*args: Any, **kwargs: Any) -> None:
        raise failure

    monkeypatch.setattr(home.near.ledger, "close", fail)
    result = await home.think()
    assert (result.text, result.peer_id) == (f"Dear {NAME}.", BOB)
    assert home.peers.at_work == 0
    monkeypatch.undo()
    assert await home.near.ledger.close_crashed(purposes=frozenset({"infer"})) == 1     # as the next start does
    assert await home.outcomes() == ["crashed"]


async def test_negative_control_another_error_of_the_ledger_is_not_hidden(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = await house("Hello.")

    async def fail(*args: Any, **kwargs: Any) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(home.near.ledger, "close", fail)
    with pytest.raises(ExceptionGroup) as raised:
        await home.think()
    assert raised.group_contains(ValueError, match="a bug")


async def _unread(text: str) -> bool:
    return True


def test_a_stop_text_is_looked_at_by_every_net() -> None:
    """It comes from whoever asks; the detectors pass over kith's own texts only (the control)."""
    job = ThinkJob(
        "j", "c", (ThinkPart("system", public_text("Be brief.", source="kith"), "instruction"),), _unread,
        stop=("Zdravka:",))
    system, stop = parts_of(job)
    assert is_own_text(system.text)
    assert not is_own_text(stop.text)
    assert (stop.role, stop.text.value) == ("stop", "Zdravka:")
