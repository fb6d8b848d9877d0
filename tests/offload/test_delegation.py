"""Both drivers of /kith/infer/1 against each other over an in-memory channel, with a scripted engine and a clock
that jumps."""

from contextlib import asynccontextmanager
from datetime import date

import pytest
import trio
from memory_channel import ALICE, BOB, TestClearance, memory_channels

from offload.client import AnswerBroken, AnswerRefused, ThoughtArrived, ask_peer
from offload.ports import (
    Failed,
    Finished,
    Message,
    ModelInfo,
    PastCall,
    Piece,
    Queued,
    Reading,
    Started,
    ToolCall,
    Usage,
)
from offload.quota import QuotaBook
from offload.server import InferenceServer
from protocol.content import content_texts
from protocol.grants import ANY_MODEL, Grant
from protocol.inference import InferRequest, Part, Progress, PromptParts, TokenFrame, ToolCallArrived, ToolOffer
from protocol.inference import PastCall as WireCall
from protocol.names import INFER

DIGEST = "ab" * 32
PROMPT = "Write a letter to [PERSON_1]."


class ScriptedEngine:
    """Plays events with pauses; counts the pieces it was made to produce."""

    def __init__(self, script):
        self.script = script
        self.produced = 0
        self.requests = []

    async def models(self):
        return [ModelInfo(name="smollm2", digest=DIGEST, size_bytes=1, context_tokens=2048)]

    @asynccontextmanager
    async def stream(self, request):
        self.requests.append(request)

        async def play():
            for item in self.script:
                if isinstance(item, float):
                    await trio.sleep(item)
                    continue
                if isinstance(item, Piece):
                    self.produced += 1
                yield item

        events = play()
        try:
            yield events
        finally:
            await events.aclose()


class Usages:
    def __init__(self):
        self.used = 0

    async def tokens_on(self, peer_id, day):
        return self.used

    async def add_tokens(self, peer_id, day, *, prompt_tokens, output_tokens, requests=1):
        self.used += prompt_tokens + output_tokens


class Grants:
    expired = False

    def __init__(self, grant):
        self.grant = grant

    def grant_for(self, peer_id):
        assert peer_id == ALICE
        return self.grant

    def reopens_in_s(self, peer_id):
        return None

    def ran_out(self, peer_id):
        return self.grant is None and self.expired


def grant(**changes):
    given = {
        "services": ("infer",),
        "models": (ANY_MODEL,),
        "tokens_per_day": 10_000,
        "max_context": 4096,
        "max_concurrency": 2,
        "not_after_s": 2**40,
        "issued_by": BOB,
        "issued_to": ALICE,
        "epoch": 1,
    }
    return Grant(**{**given, **changes})


def request(**changes):
    given = {
        "request_id": bytes(16),
        "prompt": PromptParts((Part("user", PROMPT),)),
        "max_tokens": 64,
        "deadline_s": 120,
    }
    return InferRequest(**{**given, **changes})


ANSWER = [
    Started(10, 0, DIGEST),
    Piece("Dear ", (1,)),
    Piece("[PERSON_1]", (2, 3)),
    Piece("!", (4,)),
    Finished("stop", Usage(10, 0, 4)),
]


class Pair:
    """A server task and what the asker got."""

    def __init__(self, script, given=None, usage=None):
        self.engine = ScriptedEngine(script)
        self.grants = Grants(grant() if given is None else given)
        self.usage = usage or Usages()
        self.refused = []
        self.server = InferenceServer(
            self.engine, self.grants, QuotaBook(self.usage, lambda: date(2026, 3, 1)),
            lambda *refusal: self.refused.append(refusal),
        )
        self.near, self.far = memory_channels(INFER)
        self.texts = []
        self.asides = []

    async def on_aside(self, aside):
        self.asides.append(aside)

    async def on_text(self, text):
        self.texts.append(text)
        return True

    async def ask(self, req=None, on_text=None):
        answer = failure = None
        asked = req or request()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.server.serve, self.far)
            try:
                answer = await ask_peer(
                    self.near, asked, TestClearance(content_texts(asked)), on_text or self.on_text,
                    on_aside=self.on_aside)
            except (AnswerRefused, AnswerBroken) as error:
                failure = error  # raised outside the nursery, which would wrap it in a group
            finally:
                with trio.CancelScope(shield=True), trio.move_on_after(5):
                    while self.server.active:
                        await trio.sleep(0.01)
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return answer


async def test_an_answer_streams_and_is_verified_at_its_end(autojump_clock):
    pair = Pair(ANSWER)
    answer = await pair.ask()
    assert pair.texts == ["Dear ", "[PERSON_1]", "!"]
    assert (answer.text, answer.finish_reason, answer.token_count, answer.model_digest) == (
        "Dear [PERSON_1]!",
        "stop",
        4,
        DIGEST,
    )
    assert pair.usage.used == 14
    assert pair.engine.requests[0].principal == ALICE


ASKED_TOOL = ToolOffer("calendar_free", "Finds free time.", '{"type":"object"}')


async def test_calls_and_thoughts_reach_the_asker_apart_from_the_text(autojump_clock):
    pair = Pair([
        Started(10, 0, DIGEST), Piece("", (1,), "Hm. "), Piece("Let me see.", (2, 3), "The calendar."),
        Piece("", (4,)), ToolCall("calendar_free", '{"minutes": 60}', ("closing",)),
        Finished("tool_calls", Usage(10, 0, 4)),
    ])
    history = (
        Part("user", PROMPT), Part("assistant", "", (WireCall("calendar_free", '{"minutes":', "c1"),), thought="So."),
        Part("tool", "bad arguments", call_id="c1"), Part("tool", "and again", call_id="c2"))
    answer = await pair.ask(request(
        prompt=PromptParts(history), tools=(ASKED_TOOL,), tool_choice="required", named_tool="calendar_free",
        parallel_calls=True, thinking_tokens=99))
    call = ToolCallArrived("calendar_free", '{"minutes": 60}', True)
    assert pair.asides == [ThoughtArrived("Hm. "), ThoughtArrived("The calendar."), call]
    assert (answer.text, answer.finish_reason, answer.calls) == ("Let me see.", "tool_calls", (call,))
    asked = pair.engine.requests[0]
    assert [tool.name for tool in asked.tools] == ["calendar_free"]
    assert (asked.tool_choice, asked.named_tool, asked.parallel_calls, asked.thinking_tokens) == (
        "required", "calendar_free", True, 99)
    assert asked.prompt.messages == (
        Message("user", PROMPT), Message("assistant", "", (PastCall("calendar_free", '{"minutes":', "c1"),), "", "So."),
        Message("tool", "bad arguments", (), "c1"), Message("tool", "and again", (), "c2"))


async def test_text_that_was_held_back_for_long_comes_in_several_frames(autojump_clock):
    held, thought = "é" * 50_000, "x" * 20_000
    pair = Pair([
        Started(10, 0, DIGEST), Piece(held, (1, 2), thought), Piece("!", (3,)), Finished("stop", Usage(10, 0, 3))])
    answer = await pair.ask()
    assert (answer.text, answer.token_count) == (held + "!", 3)
    assert "".join(aside.text for aside in pair.asides) == thought
    assert max(map(len, pair.texts)) == 16_384


@pytest.mark.parametrize("call", [ToolCall("Calendar-Free", "{}"), ToolCall("calendar_free", "x" * 40_000)])
async def test_a_call_that_fits_into_no_frame_comes_as_words(autojump_clock, call):
    pair = Pair([Started(10, 0, DIGEST), Piece("", (1,)), call, Finished("tool_calls", Usage(10, 0, 1))])
    answer = await pair.ask(request(tools=(ASKED_TOOL,)))
    assert answer.text.startswith(f"{call.name}(")
    assert (answer.finish_reason, answer.calls) == ("stop", ())


@pytest.mark.parametrize(
    ("given", "changes", "code", "limit"),
    [
        (None, {}, "not_granted", None),
        (grant(services=("mail",)), {}, "not_granted", None),
        (grant(models=("other",)), {}, "model_absent", None),
        (grant(), {"model_digest": "cd" * 32}, "model_absent", None),
        (grant(max_context=16), {}, "context_too_long", 16),
        (grant(max_concurrency=0), {}, "busy", 0),
        (grant(tokens_per_day=0), {}, "quota", 0),
    ],
)
async def test_a_refusal_says_which_limit(autojump_clock, given, changes, code, limit):
    pair = Pair(ANSWER)
    pair.grants.grant = given
    with pytest.raises(AnswerRefused) as refused:
        await pair.ask(request(**changes))
    assert (refused.value.code, refused.value.limit) == (code, limit)
    assert pair.engine.requests == [] and pair.texts == []


async def test_the_same_request_is_served_with_the_grant():
    """Negative control of the refusals above: with a full grant the very same request is answered."""
    assert (await Pair(ANSWER).ask()).finish_reason == "stop"


@pytest.mark.parametrize(
    ("code", "told"), [("busy", "busy"), ("no_model", "model_absent"), ("prompt_too_long", "context_too_long")]
)
async def test_what_the_engine_refuses_is_told_in_the_wires_words(autojump_clock, code, told):
    pair = Pair([Failed(code, "a text with /paths that stays here")])
    with pytest.raises(AnswerRefused) as refused:
        await pair.ask()
    assert refused.value.code == told
    assert all(b"paths" not in repr(frame).encode() for frame in pair.far.sent)


async def test_a_cold_model_is_admitted_while_it_loads_and_the_asker_waits(autojump_clock):
    pair = Pair([20.0, *ANSWER])
    assert (await pair.ask()).text == "Dear [PERSON_1]!"


async def test_waiting_in_the_queue_is_no_stall(autojump_clock):
    pair = Pair([Queued(2), 30.0, *ANSWER])
    assert (await pair.ask()).token_count == 4


@pytest.mark.parametrize(("expected_s", "told_s"), [(None, None), (0.2, 1), (12.4, 13), (1e12, 86_400)])
async def test_who_waits_is_told_when_it_may_be_its_turn(autojump_clock, expected_s, told_s):
    pair = Pair([Queued(2, expected_s), 30.0, *ANSWER])
    await pair.ask()
    told = [frame for frame in pair.far.sent if isinstance(frame, Progress) and frame.state == "queued"]
    assert {(frame.queue_position, frame.expected_s) for frame in told} == {(2, told_s)}
    assert all(frame.expected_s is None for frame in pair.far.sent if isinstance(frame, Progress) and frame not in told)


async def test_enough_was_said_cancels_and_no_further_piece_is_produced(autojump_clock):
    pair = Pair([Started(1, 0, DIGEST), *[item for n in range(100) for item in (Piece(f"{n} ", (n,)), 0.1)]])

    async def first_three(text):
        pair.texts.append(text)
        return len(pair.texts) < 3

    answer = await pair.ask(on_text=first_three)
    assert answer.finish_reason == "stopped" and len(pair.texts) == 3
    assert pair.engine.produced <= 4


async def test_a_cancelled_asker_stops_the_provider(autojump_clock):
    pair = Pair([Started(1, 0, DIGEST), *[item for n in range(1000) for item in (Piece(f"{n} ", (n,)), 0.1)]])
    with trio.move_on_after(1.05):
        await pair.ask()
    assert pair.engine.produced <= 12


async def test_a_reader_that_fails_stops_the_provider(autojump_clock):
    """Its disk is full, say: nobody reads on, so nobody is to compute, and be paid, for it."""
    pair = Pair([Started(1, 0, DIGEST), *[item for n in range(1000) for item in (Piece(f"{n} ", (n,)), 0.1)]])

    async def fail(text):
        raise OSError("no space")

    with pytest.RaisesGroup(OSError):
        await pair.ask(on_text=fail)
    assert pair.engine.produced <= 4
    assert pair.server.active == 0


async def test_a_frame_out_of_turn_in_the_middle_of_output_never_raises_out_of_the_server():
    """Whatever task is about to speak at that moment: it meets a machine that has failed."""
    for _ in range(60):
        pair = Pair([Started(1, 0, DIGEST), *[Piece(f"{n} ", (n,)) for n in range(40)]])
        asked = request()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pair.server.serve, pair.far)
            await pair.near.send_cleared(asked, TestClearance(content_texts(asked)))
            for _ in range(3):
                await pair.near.receive(deadline_s=5)
            await pair.near.send_cleared(asked, TestClearance(content_texts(asked)))
        assert pair.server.active == 0


async def test_an_asker_that_dies_stops_the_provider(autojump_clock):
    pair = Pair([Started(1, 0, DIGEST), *[item for n in range(1000) for item in (Piece(f"{n} ", (n,)), 0.1)]])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.server.serve, pair.far)
        await pair.near.send_cleared(request(), TestClearance((PROMPT,)))
        await trio.sleep(0.55)
        await pair.near.reset()
    assert pair.server.active == 0 and pair.engine.produced <= 7


async def test_a_provider_that_dies_in_mid_answer_leaves_the_exact_text_so_far(autojump_clock):
    pair = Pair(ANSWER)
    pair.far.cut_after = 4  # accepted, progress, two token frames
    with pytest.raises(AnswerBroken) as broken:
        await pair.ask()
    assert broken.value.reason == "lost"
    assert broken.value.resume.text == "".join(pair.texts) and broken.value.resume.text in "Dear [PERSON_1]!"


async def test_silence_is_a_stall_after_three_seconds(autojump_clock):
    near, far = memory_channels(INFER)
    begun = trio.current_time()
    with pytest.raises(AnswerBroken) as broken:
        await ask_peer(near, request(), TestClearance((PROMPT,)), Pair(ANSWER).on_text)
    assert broken.value.reason == "stalled" and trio.current_time() - begun == pytest.approx(3, abs=0.2)
    await far.reset()


async def test_a_wrong_digest_is_never_shown_as_success(autojump_clock):
    near, far = memory_channels(INFER)

    pair = Pair(ANSWER)
    pair.near, pair.far = near, far

    class Forger:
        """Passes everything on, but changes one letter of the text behind the digest's back."""

        def __getattr__(self, name):
            return getattr(far, name)

        async def send(self, frame):
            if isinstance(frame, TokenFrame) and frame.text == "!":
                frame = TokenFrame(frame.request_id, frame.seq, "?", frame.tokens, frame.token_ids, frame.digest)
            await far.send(frame)

    pair.far = Forger()
    with pytest.raises(AnswerBroken) as broken:
        await pair.ask()
    assert "out_of_order" in broken.value.reason and "?" not in "".join(pair.texts)


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


SLOW = [Started(1, 0, DIGEST), *[item for n in range(100) for item in (Piece(f"{n} ", (n,)), 0.1)]]


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


async def test_garbage_from_a_peer_ends_its_stream_and_nothing_else():
    pair = Pair(ANSWER)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.server.serve, pair.far)
        await pair.near.send_raw(b"\x00\x00\x00\x05hello")
        with trio.fail_after(5):
            while pair.server.active or not pair.far._lost:
                await trio.sleep(0.01)
    assert (await Pair(ANSWER).ask()).finish_reason == "stop"


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


async def test_a_prompt_that_waits_for_others_to_be_read_stands_in_a_line(autojump_clock):
    """Four long prompts on one machine: each asker is told of a queue, and does not take it for a stall."""
    waiting = [item for _ in range(20) for item in (Reading(512, 2000), 0.5)]
    pair = Pair([Started(2000, 0, DIGEST), 0.3, Reading(512, 2000), 0.5, *waiting, Reading(1024, 2000), 0.5,
                 *ANSWER[1:]])
    assert (await pair.ask()).finish_reason == "stop"
    stuck = Pair([Started(2000, 0, DIGEST), 0.3, Reading(512, 2000), 20.0, *ANSWER[1:]])
    with pytest.raises(AnswerBroken) as broken:  # the control: an engine that says nothing is none that waits
        await stuck.ask()
    assert broken.value.reason == "stalled"
