"""The asking side of inference: only a verified End is a success; everything else says how to go on."""

import hashlib
from typing import Any

import msgspec
import pytest
from frame_samples import DIGEST, ID, OTHER_ID, SAMPLES
from hypothesis import given
from hypothesis import strategies as st
from playbook import Playbook

from protocol import limits, names
from protocol.errors import LocalProtocolError, OutOfOrder
from protocol.inference import (
    Accepted,
    Admitted,
    Begin,
    BrokeOff,
    Cancel,
    Cancelled,
    CancelWanted,
    Completed,
    Declined,
    End,
    ErrorFrame,
    InferRequest,
    Part,
    Progress,
    Progressed,
    PromptParts,
    PromptTokens,
    Refused,
    RequesterMachine,
    RequesterState,
    ResumePoint,
    TextArrived,
    TokenFrame,
    ToolCallArrived,
    ToolCallFrame,
    ToolOffer,
    Usage,
)
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick

TOOL = ToolOffer("calendar_free", "d", "{}")
PROGRESS = Progress(ID, "prefill", 0, 1, 2, 0)
ACCEPTED = Accepted(ID, DIGEST, 0)


def request(**changes: Any) -> InferRequest:
    fields: dict[str, Any] = {
        "request_id": ID, "prompt": PromptParts((Part("user", "hi"),)), "max_tokens": 100, "deadline_s": 60,
        "tools": (TOOL,),
    }  # fmt: skip
    return InferRequest(**(fields | changes))


def blake(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def token(seq: int, text: str, all_text: str, *ids: int, tokens: int | None = None) -> TokenFrame:
    return TokenFrame(ID, seq, text, len(ids) if tokens is None else tokens, ids, blake(all_text))


def end(all_text: str, count: int, reason: Any = "stop", digest: str = DIGEST) -> End:
    return End(ID, reason, count, blake(all_text), digest)


def began(**changes: Any) -> Playbook:
    asked = request(**changes)
    return Playbook(RequesterMachine(asked)) >> Begin() << Send(asked)


def streaming(**changes: Any) -> Playbook:
    return began(**changes) >> Received(ACCEPTED) << Admitted(DIGEST, 0)


def test_the_whole_of_an_answer() -> None:
    usage = Usage(ID, 10, 4, 3)
    play = (
        began()
        >> Received(Accepted(ID, DIGEST, 2)) << Admitted(DIGEST, 2)
        >> Received(PROGRESS) << Progressed(PROGRESS)
        >> Received(token(0, "Hel", "Hel", 1)) << TextArrived("Hel", 1, (1,))
        >> Received(token(1, "lo ☕", "Hello ☕", 2, 3)) << TextArrived("lo ☕", 2, (2, 3))
        >> Received(usage)
        >> Received(end("Hello ☕", 3)) << FinishSending() << Completed("stop", 3, DIGEST, usage) << None
    )  # fmt: skip
    assert play.machine.state is RequesterState.COMPLETED
    assert play.machine.due_s is None
    play >> PeerFinished() << None >> ChannelBroken() << None >> Tick() << None >> CancelWanted() << None
    play >> Received(PROGRESS) << None


def test_tool_calls_share_the_sequence() -> None:
    (
        streaming()
        >> Received(token(0, "a", "a", 1)) << TextArrived("a", 1, (1,))
        >> Received(ToolCallFrame(ID, 1, "calendar_free", "{}")) << ToolCallArrived("calendar_free", "{}")
        >> Received(token(2, "b", "ab", 2)) << TextArrived("b", 1, (2,))
        >> Received(end("ab", 2, "tool_calls")) << FinishSending() << Completed("tool_calls", 2, DIGEST, None) << None
    )  # fmt: skip


def test_thoughts_are_beside_the_text_and_its_digest() -> None:
    thought = TokenFrame(ID, 0, "", 1, (1,), blake(""), "Hm. ")
    play = (
        streaming()
        >> Received(thought) << TextArrived("", 1, (1,), "Hm. ")
        >> Received(TokenFrame(ID, 1, "Hi", 2, (2, 3), blake("Hi"), "So.")) << TextArrived("Hi", 2, (2, 3), "So.")
        >> Received(ToolCallFrame(ID, 2, "calendar_free", "{}", True)) << ToolCallArrived("calendar_free", "{}", True)
        >> ChannelBroken() << ResetChannel() << BrokeOff
    )  # fmt: skip
    resume = play.last.resume
    assert resume == ResumePoint("Hi", 3, (1, 2, 3), 97, "Hm. So.", 1)
    again = streaming(
        text_so_far=resume.text, thought_so_far=resume.thought, calls_so_far=resume.calls, resume_cursor=resume.cursor,
        token_ids_so_far=resume.token_ids, model_digest=DIGEST, max_tokens=resume.tokens_left,
    )
    again >> Received(TokenFrame(ID, 3, "!", 1, (4,), blake("Hi!"))) << TextArrived("!", 1, (4,))
    assert again.machine.resume_point == ResumePoint("Hi!", 4, (1, 2, 3, 4), 96, "Hm. So.", 1)


def test_thoughts_are_bounded_like_text() -> None:
    play = streaming(thought_so_far="x" * (limits.MAX_TEXT_BYTES - 1), resume_cursor=1)
    play >> Received(TokenFrame(ID, 1, "", 1, (), blake(""), "x")) << TextArrived
    play.refused(OutOfOrder, Received(TokenFrame(ID, 2, "", 1, (), blake(""), "x")))


@pytest.mark.parametrize("changes", [
    {"named_tool": "other_tool"},
    {"prompt": PromptTokens((1, 2)), "model_digest": DIGEST},
    {"calls_so_far": 1, "resume_cursor": 1},
    {"thought_so_far": "Hm."},
    {"calls_so_far": 1, "token_ids_so_far": (1,), "model_digest": DIGEST},
])
def test_requests_that_contradict_themselves(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        request(**changes)


def test_refused() -> None:
    play = began() >> Received(Refused(ID, "quota", 1000)) << FinishSending() << Declined("quota", 1000) << None
    assert play.machine.state is RequesterState.DECLINED


@pytest.mark.parametrize("event", [PeerFinished(), ChannelBroken()])
@pytest.mark.parametrize("received", [0, 1, 2])
def test_a_closed_stream_without_end_is_never_a_success(event: object, received: int) -> None:
    play = streaming() if received else began()
    texts = ["", "", "Hel"]
    if received == 2:
        play >> Received(token(0, "Hel", "Hel", 1)) << TextArrived
    play >> event << ResetChannel() << BrokeOff
    assert play.last.reason == ("closed" if isinstance(event, PeerFinished) else "lost")
    assert play.last.resume.text == texts[received]
    assert play.machine.state is RequesterState.BROKEN
    play >> Received(end(texts[received], 0)) << None


def test_an_error_frame_says_where_to_go_on() -> None:
    play = streaming() >> Received(token(0, "Hel", "Hel", 1, 2)) << TextArrived
    play >> Received(ErrorFrame(ID, "engine_failed")) << FinishSending()
    play << BrokeOff("error", "engine_failed", ResumePoint("Hel", 1, (1, 2), 98)) << None
    began() >> Received(ErrorFrame(ID, "internal")) << FinishSending() << BrokeOff


def test_going_on_elsewhere_joins_without_a_seam() -> None:
    first = streaming() >> Received(token(0, "Hel", "Hel", 1)) << TextArrived
    first >> ChannelBroken() << ResetChannel() << BrokeOff
    resume = first.last.resume
    again = streaming(
        text_so_far=resume.text, resume_cursor=resume.cursor, token_ids_so_far=resume.token_ids, model_digest=DIGEST,
        max_tokens=resume.tokens_left,
    )  # fmt: skip
    again >> Received(token(1, "lo", "Hello", 2)) << TextArrived("lo", 1, (2,))
    again >> ChannelBroken() << ResetChannel() << BrokeOff("lost", None, ResumePoint("Hello", 2, (1, 2), 98))


def test_ids_of_only_a_part_of_the_text_are_not_offered() -> None:
    play = streaming(text_so_far="Hel", resume_cursor=1)
    play >> Received(token(1, "lo", "Hello", 2)) << TextArrived
    assert play.machine.resume_point == ResumePoint("Hello", 2, (), 99)
    play = streaming() >> Received(token(0, "Hel", "Hel", 1)) << TextArrived
    play >> Received(token(1, "lo", "Hello", tokens=1)) << TextArrived("lo", 1, ())
    play >> Received(token(2, "!", "Hello!", 3)) << TextArrived
    assert play.machine.resume_point.token_ids == ()


def test_silence_of_three_seconds_is_a_stall() -> None:
    for play in (began(), streaming()):
        assert play.machine.due_s == 100.0 + limits.STALL_S
        play.after(limits.STALL_S - 0.01) >> Tick() << None
        play.after(0.01) >> Tick() << ResetChannel() << BrokeOff << None
        assert play.last.reason == "stalled"


def progress(state: Any = "prefill", position: int = 0, done: int = 0, total: int = 0, written: int = 0) -> Progress:
    return Progress(ID, state, position, done, total, written)


def test_what_moves_is_no_stall() -> None:
    """Counters that go on, each at the last moment: the prompt, the queue, the text, and a change of state."""
    play = streaming()
    moving = [
        progress("loading"), progress("queued", 3), progress("queued", 2), progress("prefill", total=9),
        progress("prefill", done=4, total=9), progress("prefill", done=9, total=9), progress("decoding", written=1),
        progress("decoding", written=2), token(0, "a", "a", 1, 2, 3), progress("decoding", written=4),
    ]
    for frame in moving:
        play.after(2.9) >> Tick() << None >> Received(frame) << (Progressed | TextArrived)
    play.after(3.0) >> Tick() << ResetChannel() << BrokeOff


@pytest.mark.parametrize("told", [progress("prefill", done=4, total=9), progress("decoding", written=3)])
def test_a_beat_whose_counters_stand_still_is_no_life(told: Progress) -> None:
    play = streaming() >> Received(token(0, "abc", "abc", 1, 2, 3)) << TextArrived >> Received(told) << Progressed
    # what was told of the text that is here already is nothing new; a change to another state is
    moved_s = play.now_s
    while play.now_s < moved_s + 2.5:
        play.after(0.5) >> Received(told) << Progressed >> Tick() << None
    play.after(0.5) >> Tick() << ResetChannel() << BrokeOff << None
    assert (play.last.reason, play.last.resume.text) == ("stalled", "abc")


@pytest.mark.parametrize(
    ("told", "limit_s", "reason"),
    [
        (progress("queued", 2), limits.QUEUED_STILL_S, "queued"),
        (progress("loading"), limits.LOADING_STILL_S, "loading"),
    ],
)
def test_queued_and_loading_may_stand_for_their_own_times(told: Progress, limit_s: float, reason: str) -> None:
    play = streaming(deadline_s=600) >> Received(told) << Progressed
    for _ in range(int(limit_s) - 1):
        play.after(1.0) >> Received(told) << Progressed >> Tick() << None
    play.after(1.0) >> Tick() << ResetChannel() << BrokeOff << None
    assert play.last.reason == reason
    silent = streaming() >> Received(told) << Progressed      # but none of them may be silent
    silent.after(limits.STALL_S) >> Tick() << ResetChannel() << BrokeOff
    assert silent.last.reason == "stalled"


def test_a_beat_after_text_that_leaves_the_prompt_out_is_no_life() -> None:
    """As the provider's machine sends them: the counters of the prompt are not repeated once it writes."""
    play = streaming() >> Received(progress("prefill", done=9, total=9)) << Progressed
    play.after(1) >> Received(token(0, "abc", "abc", 1, 2, 3)) << TextArrived
    for _ in range(2):
        play.after(1) >> Received(progress("decoding", written=3)) << Progressed >> Tick() << None
    play.after(1) >> Tick() << ResetChannel() << BrokeOff


def test_a_place_in_the_queue_told_with_accepted_may_last() -> None:
    play = began() >> Received(Accepted(ID, DIGEST, 2)) << Admitted(DIGEST, 2)
    for _ in range(20):
        play.after(1.0) >> Received(progress("queued", 2)) << Progressed >> Tick() << None


def test_the_deadline_of_the_whole_request() -> None:
    play = streaming(deadline_s=5)
    for _ in range(2):
        play.after(2.4) >> Received(PROGRESS) << Progressed
    assert play.machine.due_s == 105.0
    play.after(0.19) >> Tick() << None
    play.after(0.01) >> Tick() << Send(Cancel(ID)) << ResetChannel() << BrokeOff << None
    assert play.last.reason == "deadline"


def test_cancelling() -> None:
    play = streaming() >> Received(token(0, "Hel", "Hel", 1)) << TextArrived
    play >> CancelWanted() << Send(Cancel(ID)) << None >> CancelWanted() << None
    # what was on its way is still checked, but not delivered
    play >> Received(token(1, "lo", "Hello", 2)) << None >> Received(PROGRESS) << None
    play >> Received(ToolCallFrame(ID, 2, "calendar_free", "{}")) << None
    play >> Received(end("Hello", 2, "cancelled")) << FinishSending() << Cancelled() << None
    assert play.machine.state is RequesterState.CANCELLED


@pytest.mark.parametrize(
    "last",
    [
        Received(Refused(ID, "busy", None)), Received(ErrorFrame(ID, "cancelled")), PeerFinished(), ChannelBroken(),
    ],
)  # fmt: skip
def test_cancelling_before_the_answer_began(last: object) -> None:
    play = began() >> CancelWanted() << Send(Cancel(ID)) >> last
    play << (FinishSending | ResetChannel) << Cancelled() << None
    assert play.machine.state is RequesterState.CANCELLED


def test_cancelling_crossed_by_the_answer() -> None:
    play = began() >> CancelWanted() << Send(Cancel(ID)) >> Received(ACCEPTED) << None
    play >> Received(token(0, "a", "a", 1)) << None >> Received(end("a", 1)) << FinishSending() << Cancelled()


def test_cancelling_a_silent_provider_ends_too() -> None:
    play = streaming(deadline_s=1) >> CancelWanted() << Send(Cancel(ID))
    play.after(2.99) >> Tick() << None
    play.after(0.01) >> Tick() << ResetChannel() << Cancelled() << None


def test_a_provider_that_goes_on_in_spite_of_a_cancel_holds_nobody() -> None:
    """Each of these signs of life counts as movement, and the deadline is long over: neither may keep it waiting."""
    play = streaming(deadline_s=2) >> CancelWanted() << Send(Cancel(ID))
    for number in range(5):
        play.after(0.5) >> Received(Progress(ID, "prefill", 0, number, 100 + number, 0)) << None
        assert play.machine.due_s == 103.0
        play >> Tick() << None
    play.after(0.5) >> Tick() << ResetChannel() << Cancelled() << None
    assert play.machine.due_s is None


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_provider_that_never_falls_silent_cannot_put_off_the_end(cancelled: bool) -> None:
    """Its frames come so close that the driver never has cause to tell the time."""
    play = streaming(deadline_s=3)
    if cancelled:
        play >> CancelWanted() << Send(Cancel(ID))
    for number in range(1, 30):
        play.after(0.1) >> Received(Progress(ID, "prefill", 0, number, 100, 0))
        play << (None if cancelled else Progressed)
    play.after(0.11) >> Received(Progress(ID, "prefill", 0, 99, 100, 0))
    if not cancelled:
        play << Send(Cancel(ID))
    play << ResetChannel() << (Cancelled if cancelled else BrokeOff) << None


BAD_AFTER_ACCEPT: dict[str, msgspec.Struct] = {
    "accepted twice": ACCEPTED,
    "refused after accepted": Refused(ID, "busy", None),
    "another request": msgspec.structs.replace(PROGRESS, request_id=OTHER_ID),
    "first number missing": token(1, "a", "a", 1),
    "wrong digest": token(0, "a", "b", 1),
    "more tokens than asked for": token(0, "a", "a", tokens=101),
    "end with a wrong count": end("", 1),
    "end with a wrong digest": end("x", 0),
    "end of another model": end("", 0, digest="cd" * 32),
    "cancelled without being asked": end("", 0, "cancelled"),
    "a cancel from the provider": Cancel(ID),
    "a request from the provider": request(),
    "a frame of another protocol": SAMPLES[names.MAIL]["ack"],
}


@pytest.mark.parametrize("name", BAD_AFTER_ACCEPT)
def test_frames_that_break_the_rules(name: str) -> None:
    play = streaming().refused(OutOfOrder, Received(BAD_AFTER_ACCEPT[name]))
    assert play.machine.state is RequesterState.FAILED
    assert play.machine.due_s is None
    play.refused(LocalProtocolError, Tick())


@pytest.mark.parametrize(
    "frame",
    [PROGRESS, token(0, "a", "a", 1), ToolCallFrame(ID, 0, "calendar_free", "{}"), Usage(ID, 1, 1, 1), end("", 0)],
)
def test_nothing_comes_before_accepted(frame: msgspec.Struct) -> None:
    began().refused(OutOfOrder, Received(frame))


def test_nothing_comes_before_accepted_even_while_cancelling() -> None:
    (began() >> CancelWanted() << Send(Cancel(ID))).refused(OutOfOrder, Received(token(0, "a", "a", 1)))


def test_accepted_twice_while_cancelling() -> None:
    (streaming() >> CancelWanted() << Send(Cancel(ID))).refused(OutOfOrder, Received(ACCEPTED), "twice")


def test_another_model_than_asked_for() -> None:
    began(model_digest=DIGEST).refused(OutOfOrder, Received(Accepted(ID, "cd" * 32, 0)), "another model")


def test_repeated_and_skipped_numbers() -> None:
    for seq in (0, 2):
        play = streaming() >> Received(token(0, "a", "a", 1)) << TextArrived
        play.refused(OutOfOrder, Received(token(seq, "b", "ab", 2)))


def test_usage_only_once() -> None:
    (streaming() >> Received(Usage(ID, 1, 1, 1))).refused(OutOfOrder, Received(Usage(ID, 1, 1, 1)))


def test_tool_calls_must_have_been_offered_and_are_bounded() -> None:
    streaming(tools=()).refused(OutOfOrder, Received(ToolCallFrame(ID, 0, "calendar_free", "{}")))
    play = streaming()
    for seq in range(limits.MAX_TOOL_CALLS):
        play >> Received(ToolCallFrame(ID, seq, "calendar_free", "{}")) << ToolCallArrived
    play.refused(OutOfOrder, Received(ToolCallFrame(ID, limits.MAX_TOOL_CALLS, "calendar_free", "{}")))


def test_a_frame_that_is_refused_leaves_the_resume_point_where_it_was() -> None:
    lies = [
        token(1, "b", "ax", 1), token(2, "b", "ab", 1), token(1, "b", "ab", tokens=100),
        ToolCallFrame(ID, 1, "x", "{}"),
    ]  # fmt: skip
    for lie in lies:
        play = streaming(tools=()) >> Received(token(0, "a", "a", 1)) << TextArrived
        play.refused(OutOfOrder, Received(lie))
        resume = play.machine.resume_point
        assert (resume.text, resume.cursor, resume.tokens_left, resume.calls) == ("a", 1, 99, 0)


def test_text_is_bounded_in_bytes() -> None:
    play, text = streaming(max_tokens=1000), ""
    piece = "é" * (limits.MAX_TEXT_BYTES // 32)  # two bytes each, so 16 of them fill it
    for seq in range(16):
        text += piece
        play >> Received(token(seq, piece, text, tokens=1)) << TextArrived
    play.refused(OutOfOrder, Received(token(16, "x", text + "x", tokens=1)), "more output")


def test_max_tokens_exactly() -> None:
    play = streaming(max_tokens=2) >> Received(token(0, "ab", "ab", 1, 2)) << TextArrived
    play >> Received(end("ab", 2, "length")) << FinishSending() << Completed


def test_misuse_is_our_bug() -> None:
    for event in (Tick(), Received(ACCEPTED), CancelWanted()):
        Playbook(RequesterMachine(request())).refused(LocalProtocolError, event)
    began().refused(LocalProtocolError, Begin())
    began().refused(LocalProtocolError, "no event")
    assert RequesterMachine(request()).due_s is None


EVENTS = st.sampled_from(
    [Tick(), CancelWanted(), PeerFinished(), ChannelBroken(),
     *(Received(frame) for frame in SAMPLES[names.INFER].values()),
     Received(ACCEPTED), Received(PROGRESS), Received(token(0, "a", "a", 1)), Received(token(1, "b", "ab", 1)),
     Received(end("", 0)), Received(end("a", 1)), Received(end("ab", 2)), Received(ErrorFrame(ID, "quota"))]
)  # fmt: skip


@given(st.lists(st.tuples(EVENTS, st.floats(0, 2)), max_size=14))
def test_in_any_order_of_events_success_needs_a_fitting_end(steps: list[tuple[object, float]]) -> None:
    machine, now_s, shown, outcomes = RequesterMachine(request()), 0.0, "", []
    machine.handle(Begin(), now_s)
    for event, pause_s in steps:
        now_s += pause_s
        try:
            commands = machine.handle(event, now_s)
        except OutOfOrder:
            assert machine.state is RequesterState.FAILED
            break
        for command in commands:
            if isinstance(command, TextArrived):
                shown += command.text
            if isinstance(command, Completed | Declined | BrokeOff | Cancelled):
                outcomes.append(command)
            if isinstance(command, Completed):
                assert isinstance(event, Received)
                assert isinstance(event.frame, End)
                assert event.frame.digest == blake(shown)
                assert event.frame.token_count == len(shown)
            if isinstance(command, BrokeOff):
                assert command.resume.text == shown
    assert len(outcomes) <= 1
