"""The asking side of inference: cancelling, and frames that break the rules, in any order."""

import msgspec
import pytest
from frame_samples import DIGEST, ID, OTHER_ID, SAMPLES
from hypothesis import given
from hypothesis import strategies as st
from playbook import Playbook
from requester_frames import ACCEPTED, PROGRESS, began, blake, end, request, streaming, token

from protocol import limits, names
from protocol.errors import LocalProtocolError, OutOfOrder
from protocol.inference import (
    Accepted,
    Begin,
    BrokeOff,
    Cancel,
    Cancelled,
    CancelWanted,
    Completed,
    Declined,
    End,
    ErrorFrame,
    Progress,
    Progressed,
    Refused,
    RequesterMachine,
    RequesterState,
    TextArrived,
    ToolCallArrived,
    ToolCallFrame,
    Usage,
)
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick


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
