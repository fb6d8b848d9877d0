"""The computing side of inference: one request per stream, cancel at any time, a sign of life each second."""

import hashlib
from typing import Any

import msgspec
import pytest
from frame_samples import DIGEST, ID, OTHER_ID, SAMPLES
from hypothesis import given
from hypothesis import strategies as st
from playbook import Playbook

from protocol import canonical, limits, names
from protocol.errors import LocalProtocolError, OutOfOrder
from protocol.inference import (
    Accepted,
    Admit,
    Begin,
    BreakOff,
    BrokeOff,
    Cancel,
    Completed,
    Conclude,
    Decline,
    End,
    ErrorFrame,
    InferRequest,
    Output,
    Part,
    Progress,
    PromptParts,
    ProposeCall,
    ProviderMachine,
    ProviderState,
    Refused,
    Report,
    RequesterMachine,
    Serve,
    Spent,
    StopWork,
    TextArrived,
    TokenFrame,
    ToolCallFrame,
    ToolOffer,
    Usage,
)
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, Send, Tick


def request(**changes: Any) -> InferRequest:
    fields: dict[str, Any] = {
        "request_id": ID, "prompt": PromptParts((Part("user", "hi"),)), "max_tokens": 1000, "deadline_s": 60,
        "tools": (ToolOffer("calendar_free", "", "{}"),),
    }  # fmt: skip
    return InferRequest(**(fields | changes))


BEAT = SAMPLES[names.LINK]["beat"]


def blake(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def deciding(**changes: Any) -> Playbook:
    asked = request(**changes)
    return Playbook(ProviderMachine()) >> Received(asked) << Serve(asked)


def serving(**changes: Any) -> Playbook:
    return deciding(**changes) >> Admit(DIGEST, 0) << Send(Accepted(ID, DIGEST, 0))


def test_the_whole_of_an_answer() -> None:
    play = (
        serving()
        >> Report("prefill", prompt_done=5, prompt_total=9) << Send(Progress(ID, "prefill", 0, 5, 9, 0))
        >> Output("Hel", 1, (1,)) << Send(TokenFrame(ID, 0, "Hel", 1, (1,), blake("Hel")))
        >> ProposeCall("calendar_free", "{}") << Send(ToolCallFrame(ID, 1, "calendar_free", "{}"))
        >> Output("lo", 2, (2, 3)) << Send(TokenFrame(ID, 2, "lo", 2, (2, 3), blake("Hello")))
        >> Spent(9, 4, 3) << Send(Usage(ID, 9, 4, 3))
        >> Conclude("stop") << Send(End(ID, "stop", 3, blake("Hello"), DIGEST)) << FinishSending() << None
    )  # fmt: skip
    assert play.machine.state is ProviderState.ENDED
    # the driver may still be unwinding; the requester may still cancel: both cross the end
    play >> Output("x", 1) << None >> Conclude("stop") << None >> Received(Cancel(ID)) << None
    play >> PeerFinished() << None >> Tick() << None


def test_thoughts_and_calls_of_a_request_that_goes_on() -> None:
    (
        serving(thought_so_far="x" * (limits.MAX_TEXT_BYTES - 2), calls_so_far=1, token_ids_so_far=(1,),
                model_digest=DIGEST, resume_cursor=5)
        >> Output("", 1, (2,), "y") << Send(TokenFrame(ID, 5, "", 1, (2,), blake(""), "y"))
        >> ProposeCall("calendar_free", "{}", True) << Send(ToolCallFrame(ID, 6, "calendar_free", "{}", True))
        >> Output("", 1, (3,), "zz") << StopWork("too_long")
    )  # fmt: skip


def test_a_request_that_goes_on() -> None:
    play = serving(text_so_far="Hel", resume_cursor=7)
    play >> Output("lo", 1) << Send(TokenFrame(ID, 7, "lo", 1, (), blake("Hello")))
    play >> Conclude("stop") << Send(End(ID, "stop", 1, blake("Hello"), DIGEST)) << FinishSending()


def test_declined() -> None:
    deciding() >> Decline("quota", 1000) << Send(Refused(ID, "quota", 1000)) << FinishSending() << None


@pytest.mark.parametrize("make", [deciding, serving])
def test_broken_off(make: Any) -> None:
    make() >> BreakOff("engine_failed") << Send(ErrorFrame(ID, "engine_failed")) << FinishSending() << None


def test_a_sign_of_life_each_second() -> None:
    play = deciding()
    assert play.machine.due_s is None
    play >> Admit(DIGEST, 3) << Send(Accepted(ID, DIGEST, 3))
    assert play.machine.due_s == 100.0 + limits.PROGRESS_INTERVAL_S
    play.after(0.99) >> Tick() << None
    play.after(0.01) >> Tick() << Send(Progress(ID, "queued", 3, 0, 0, 0))
    play.after(0.99) >> Tick() << None
    play.after(0.5) >> Report("loading") << Send(Progress(ID, "loading", 0, 0, 0, 0))
    play.after(1.0) >> Tick() << Send(Progress(ID, "loading", 0, 0, 0, 0))
    play.after(0.9) >> Output("a", 1) << Send
    play.after(0.9) >> Tick() << None
    play.after(0.1) >> Tick() << Send(Progress(ID, "decoding", 0, 0, 0, 1))
    play >> Conclude("stop") << Send << FinishSending()
    play.after(5) >> Tick() << None
    assert play.machine.due_s is None


def test_a_stall_is_longer_than_several_signs_of_life() -> None:
    assert limits.STALL_S >= 2.5 * limits.PROGRESS_INTERVAL_S


def test_cancel_while_serving() -> None:
    play = serving() >> Output("Hel", 1) << Send
    play >> Received(Cancel(ID)) << StopWork("cancelled") << None
    # what the engine had already decided is swallowed and not counted
    play >> Output("lo", 1) << None >> ProposeCall("calendar_free", "{}") << None >> Report("decoding") << None
    play >> Received(Cancel(ID)) << None >> Admit(DIGEST, 0) << None
    play.after(9) >> Tick() << None
    play >> Spent(3, 0, 1) << Send(Usage(ID, 3, 0, 1))
    play >> Conclude("stop") << Send(End(ID, "cancelled", 1, blake("Hel"), DIGEST)) << FinishSending() << None


def test_cancel_while_deciding() -> None:
    asked = deciding() >> Received(Cancel(ID)) << StopWork("cancelled")
    asked >> Admit(DIGEST, 0) << None >> Spent(0, 0, 0) << None
    asked >> Conclude("stop") << Send(ErrorFrame(ID, "cancelled")) << FinishSending()
    declined = deciding() >> Received(Cancel(ID)) << StopWork("cancelled")
    declined >> Decline("busy") << Send(Refused(ID, "busy", None)) << FinishSending()
    broken = deciding() >> Received(Cancel(ID)) << StopWork("cancelled")
    broken >> BreakOff("cancelled") << Send(ErrorFrame(ID, "cancelled")) << FinishSending()


@pytest.mark.parametrize("event", [PeerFinished(), ChannelBroken()])
def test_a_requester_that_is_gone_stops_the_work(event: object) -> None:
    for play in (deciding(), serving()):
        play >> event << StopWork("gone") << None
        assert play.machine.state is ProviderState.ENDED
        play >> Output("x", 1) << None >> Conclude("stop") << None >> event << None
    (serving() >> Received(Cancel(ID)) << StopWork("cancelled")) >> event << None
    Playbook(ProviderMachine()) >> event << None


def test_too_much_text_ends_as_length() -> None:
    play = serving()
    for _ in range(8):
        play >> Output("x" * (limits.MAX_TEXT_BYTES // 8), 1) << Send
    play >> Output("x", 1) << StopWork("too_long") << None
    play >> Conclude("stop") << Send << FinishSending()


@pytest.mark.parametrize(
    "frame",
    [request(), Cancel(OTHER_ID), Progress(ID, "queued", 0, 0, 0, 0), ErrorFrame(ID, "quota"), BEAT],
)
def test_frames_that_break_the_rules(frame: msgspec.Struct) -> None:
    for play in (deciding(), serving()):
        play.refused(OutOfOrder, Received(frame))
        assert play.machine.state is ProviderState.FAILED
        play.refused(LocalProtocolError, Tick())


def test_a_stream_begins_with_a_request() -> None:
    Playbook(ProviderMachine()).refused(OutOfOrder, Received(Cancel(ID)))


def test_a_second_request_on_an_ended_stream() -> None:
    (deciding() >> Decline("busy") << Send << FinishSending()).refused(OutOfOrder, Received(request()))


def test_misuse_is_our_bug() -> None:
    for event in (Admit(DIGEST, 0), Output("x", 1), Conclude("stop"), "no event"):
        Playbook(ProviderMachine()).refused(LocalProtocolError, event)
    for event in (Output("x", 1), Conclude("stop"), Report("prefill"), Spent(1, 1, 1)):
        deciding().refused(LocalProtocolError, event)
    for event in (Admit(DIGEST, 0), Decline("busy")):
        serving().refused(LocalProtocolError, event)
    (serving() >> Received(Cancel(ID)) << StopWork).refused(LocalProtocolError, Decline("busy"))
    with pytest.raises(LocalProtocolError):
        _ = ProviderMachine().request
    assert deciding().machine.request == request()


WORK = st.lists(
    st.one_of(
        st.builds(Output, st.text(max_size=8), st.integers(1, 3)),
        st.just(ProposeCall("calendar_free", "{}")),
        st.builds(Report, st.sampled_from(["loading", "prefill", "decoding"])),
    ),
    max_size=12,
)


@given(WORK, st.sampled_from(["stop", "length", "loop", None]), st.text(max_size=5))
def test_both_machines_together(work: list[Any], reason: Any, so_far: str) -> None:
    """What the provider sends, through real bytes, is what the requester verifies and delivers."""
    asked = request(text_so_far=so_far, resume_cursor=3)
    asking, serving_ = RequesterMachine(asked), ProviderMachine()
    outcome: list[Any] = []
    shown = so_far

    def deliver(commands: Any) -> None:
        nonlocal shown
        for command in commands:
            if not isinstance(command, Send):
                continue
            frame = canonical.decode(canonical.encode(command.frame), names.FRAMES[names.INFER])
            for told in asking.handle(Received(frame), 0.0):
                if isinstance(told, TextArrived):
                    shown += told.text
                outcome.append(told)

    (first,) = asking.handle(Begin(), 0.0)
    assert isinstance(first, Send)
    serving_.handle(Received(first.frame), 0.0)
    for event in (Admit(DIGEST, 0), *work, Spent(1, 0, 2), Conclude(reason) if reason else BreakOff("engine_failed")):
        deliver(serving_.handle(event, 0.0))
    written = so_far + "".join(event.text for event in work if isinstance(event, Output))
    assert shown == written
    tokens = sum(event.tokens for event in work if isinstance(event, Output))
    if reason:
        assert outcome[-1] == Completed(reason, tokens, DIGEST, Usage(ID, 1, 0, 2))
    else:
        assert isinstance(outcome[-1], BrokeOff)
        assert outcome[-1].resume.text == written
