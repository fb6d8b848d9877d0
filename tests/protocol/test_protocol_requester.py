"""The asking side of inference: only a verified End is a success; everything else says how to go on."""

from typing import Any

import pytest
from frame_samples import DIGEST, ID
from requester_frames import PROGRESS, began, blake, end, request, streaming, token

from protocol import limits
from protocol.errors import OutOfOrder
from protocol.inference import (
    Accepted,
    Admitted,
    BrokeOff,
    Cancel,
    CancelWanted,
    Completed,
    Declined,
    ErrorFrame,
    Progress,
    Progressed,
    PromptTokens,
    Refused,
    RequesterState,
    ResumePoint,
    TextArrived,
    TokenFrame,
    ToolCallArrived,
    ToolCallFrame,
    Usage,
)
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick


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
