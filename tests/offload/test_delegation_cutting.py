"""What ends a peer's answer from this side: revoking, cutting, draining, a grant that narrows or runs out."""

import pytest
import trio
from delegation_pair import ANSWER, DIGEST, SLOW, Pair, grant, request
from memory_channel import ALICE, BOB, memory_channels

from offload.client import AnswerBroken, AnswerRefused
from offload.ports import (
    Finished,
    Piece,
    Queued,
    Started,
    Usage,
)
from protocol.names import INFER


async def test_revoking_cuts_a_live_stream(autojump_clock):
    pair = Pair([Started(1, 0, DIGEST), *[item for n in range(100) for item in (Piece(f"{n} ", (n,)), 0.1)]])

    async def revoke_soon(text):
        pair.texts.append(text)
        if len(pair.texts) == 5:
            pair.grants.grant = None
        return True

    with pytest.raises(AnswerBroken) as broken:
        await pair.ask(on_text=revoke_soon)
    assert broken.value.reason == "revoked" and len(pair.texts) <= 6


class During:
    """Runs something while a slow answer streams; keeps how the answer ended."""

    def __init__(self, pair, at_s, act):
        self.pair, self.at_s, self.act = pair, at_s, act
        self.failure = self.answer = self.result = None

    async def run(self):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._ask)
            await trio.sleep(self.at_s)
            self.begun_s = trio.current_time()
            self.result = await self.act()
            self.took_s = trio.current_time() - self.begun_s
        return self

    async def _ask(self):
        try:
            self.answer = await self.pair.ask()
        except (AnswerRefused, AnswerBroken) as error:
            self.failure = error


async def test_cutting_a_peer_stops_the_engine_and_says_revoked(autojump_clock):
    pair = Pair(SLOW)
    done = await During(pair, 1.05, lambda: pair.server.cut(ALICE)).run()
    assert done.failure.reason == "revoked" and "withdrawn, changed or ran out" in str(done.failure)
    assert pair.engine.produced <= 12 and done.took_s < 0.5
    assert pair.usage.used == 1 + pair.engine.produced  # what was computed is booked all the same
    assert pair.refused == [(ALICE, "revoked", None)]


async def test_a_frame_that_is_under_way_leaves_whole_before_the_last_word(autojump_clock):
    """As node.net's streams do, this one is reset by a write that is cancelled half way."""
    pair = Pair(SLOW)
    send, half_written = pair.far.send, trio.Event()

    async def send_slowly(frame):
        if len(pair.texts) >= 5:
            half_written.set()
        try:
            await trio.sleep(0.05)
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await pair.far.reset()
            raise
        await send(frame)

    async def cut_in_mid_frame():
        await half_written.wait()
        await pair.server.cut(ALICE)

    pair.far.send = send_slowly
    done = await During(pair, 0, cut_in_mid_frame).run()
    assert done.failure.reason == "revoked" and done.took_s < 2


async def test_cutting_another_peer_leaves_the_answer_alone(autojump_clock):
    """Negative control of the cut."""
    pair = Pair([*SLOW[:81], Finished("stop", Usage(1, 0, 40))])
    done = await During(pair, 1.05, lambda: pair.server.cut(BOB)).run()
    assert done.failure is None and pair.engine.produced == done.answer.token_count == 40


async def test_a_peer_that_waits_in_the_queue_is_refused_when_it_is_cut(autojump_clock):
    pair = Pair([0.9, *SLOW])
    done = await During(pair, 0.5, lambda: pair.server.cut(ALICE)).run()
    assert done.failure.code == "not_granted" and pair.engine.produced == 0


async def test_draining_lets_a_running_answer_end_and_refuses_new_ones(autojump_clock):
    pair = Pair([*SLOW[:21], Finished("stop", Usage(1, 0, 10))])
    done = await During(pair, 0.35, lambda: pair.server.drain(20)).run()
    assert (done.result, done.answer.finish_reason, done.answer.token_count) == (0, "stop", 10)
    assert done.took_s < 2
    pair.near, pair.far = memory_channels(INFER)
    with pytest.raises(AnswerRefused) as refused:
        await pair.ask()
    assert refused.value.code == "shutting_down" and str(refused.value) == "it is shutting down"


async def test_draining_is_bounded_and_the_rest_is_told(autojump_clock):
    pair = Pair(SLOW)
    done = await During(pair, 1.05, lambda: pair.server.drain(2)).run()
    assert done.result == 1 and done.failure.reason == "shutting_down" and done.took_s <= 2.6
    assert done.failure.resume.text == "".join(pair.texts)


async def test_draining_an_idle_server_takes_no_time(autojump_clock):
    begun = trio.current_time()
    assert await Pair(SLOW).server.drain(20) == 0 and trio.current_time() == begun


async def test_a_stream_on_which_nothing_was_asked_holds_no_drain_up(autojump_clock):
    pair = Pair(ANSWER)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.server.serve, pair.far)
        await trio.sleep(0.1)
        begun = trio.current_time()
        assert (pair.server.active, await pair.server.drain(20)) == (1, 0)
        assert trio.current_time() - begun < 0.6
    assert pair.server.active == 0


async def test_a_grant_that_ran_out_is_told_apart_from_none(autojump_clock):
    pair = Pair(ANSWER)
    pair.grants.grant, pair.grants.expired = None, True
    with pytest.raises(AnswerRefused) as refused:
        await pair.ask()
    assert refused.value.code == "grant_expired" and pair.refused == [(ALICE, "grant_expired", None)]


async def test_a_narrowed_grant_ends_a_running_answer_at_its_next_piece(autojump_clock):
    pair = Pair(SLOW)

    async def narrow():
        pair.grants.grant = grant(tokens_per_day=5)

    done = await During(pair, 1.05, narrow).run()
    assert done.failure.reason == "quota" and pair.engine.produced <= 12


async def test_a_long_prompt_counts_before_the_first_word(autojump_clock):
    pair = Pair([Started(500, 0, DIGEST), *SLOW[1:]], given=grant(tokens_per_day=100))
    with pytest.raises(AnswerBroken) as broken:
        await pair.ask()
    assert broken.value.reason == "quota" and pair.engine.produced == 0 and pair.usage.used == 500


async def test_the_days_tokens_end_a_stream_at_the_limit(autojump_clock):
    script = [Started(1, 0, DIGEST), *[item for n in range(100) for item in (Piece(f"{n} ", (n,)), 0.01)]]
    pair = Pair(script, given=grant(tokens_per_day=20))
    with pytest.raises(AnswerBroken) as broken:
        await pair.ask(request(max_tokens=64))
    assert broken.value.reason == "quota" and pair.usage.used <= 21


@pytest.mark.parametrize(("lapse", "reason"), [
    (lambda grants: setattr(grants, "expired", True), "grant_expired"), (lambda grants: None, "revoked"),
])
async def test_a_grant_that_lapses_while_nothing_is_written_ends_the_answer_within_a_second(
    autojump_clock, lapse, reason
):
    pair = Pair([Queued(2), 60.0, *SLOW])

    async def end():
        lapse(pair.grants)
        pair.grants.grant = None

    begun = trio.current_time()
    done = await During(pair, 5.2, end).run()
    assert done.failure.reason == reason
    assert trio.current_time() - begun < 5.2 + 1.1


async def test_reviewing_a_narrowed_grant_ends_what_no_longer_fits_and_nothing_else(autojump_clock):
    pair = Pair(SLOW)
    before = grant(max_concurrency=2)
    pair.grants.grant = before

    async def review():
        await pair.server.review(ALICE)  # nothing was narrowed: the control
        assert pair.server.active == 1
        pair.grants.grant = grant(max_context=10)
        await pair.server.review(ALICE)
        assert pair.server.active == 0

    done = await During(pair, 1.05, review).run()
    assert done.failure.reason == "narrowed"
