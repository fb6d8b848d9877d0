"""Both drivers of /kith/infer/1 against each other over an in-memory channel, with a scripted engine and a clock
that jumps."""

import pytest
import trio
from delegation_pair import ANSWER, DIGEST, PROMPT, Pair, grant, request
from memory_channel import ALICE, TestClearance, memory_channels

from offload.client import AnswerBroken, AnswerRefused, ThoughtArrived, ask_peer
from offload.ports import (
    Failed,
    Finished,
    Message,
    PastCall,
    Piece,
    Queued,
    Reading,
    Started,
    ToolCall,
    Usage,
)
from protocol.content import content_texts
from protocol.inference import Part, Progress, PromptParts, TokenFrame, ToolCallArrived, ToolOffer
from protocol.inference import PastCall as WireCall
from protocol.names import INFER


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


async def test_garbage_from_a_peer_ends_its_stream_and_nothing_else():
    pair = Pair(ANSWER)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.server.serve, pair.far)
        await pair.near.send_raw(b"\x00\x00\x00\x05hello")
        with trio.fail_after(30):
            while pair.server.active or not pair.far._lost:
                await trio.sleep(0.01)
    assert (await Pair(ANSWER).ask()).finish_reason == "stop"


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
