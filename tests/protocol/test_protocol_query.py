"""One question, its passages, and an explicit end; both machines."""

from typing import Any

import msgspec
import pytest
from frame_samples import ID, OTHER_ID, SAMPLES
from hypothesis import given
from hypothesis import strategies as st
from playbook import Playbook

from protocol import canonical, limits, names
from protocol.errors import LocalProtocolError, OutOfOrder
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick
from protocol.query import (
    Answer,
    AnswererMachine,
    Ask,
    AskerMachine,
    Decide,
    Give,
    Passage,
    Query,
    QueryEnd,
    QueryOver,
    QueryRefused,
    QueryState,
    Refuse,
    Settle,
)

QUESTION = Query(ID, "trains", 3)
PASSAGES = tuple(Passage(bytes([n]) * 16, f"t{n}", f"text {n}", "travel") for n in range(4))


def waiting() -> Playbook:
    return Playbook(AskerMachine(QUESTION)) >> Ask() << Send(QUESTION)


def deciding() -> Playbook:
    return Playbook(AnswererMachine()) >> Received(QUESTION) << Decide(QUESTION)


def test_asking() -> None:
    play = waiting() >> Received(Answer(ID, PASSAGES[:2])) << None >> Received(Answer(ID, PASSAGES[2:3])) << None
    play >> Received(QueryEnd(ID, 3)) << FinishSending() << QueryOver("complete", PASSAGES[:3]) << None
    assert play.machine.due_s is None
    play >> PeerFinished() << None >> Tick() << None >> Received(QueryEnd(ID, 3)) << None


def test_an_empty_answer_is_an_answer() -> None:
    waiting() >> Received(QueryEnd(ID, 0)) << FinishSending() << QueryOver("complete", ()) << None


def test_asking_and_being_refused() -> None:
    waiting() >> Received(QueryRefused(ID, "quota")) << FinishSending() << QueryOver("refused", (), "quota") << None


@pytest.mark.parametrize("event", [PeerFinished(), ChannelBroken()])
def test_a_stream_that_ends_early_is_partial(event: object) -> None:
    play = waiting() >> Received(Answer(ID, PASSAGES[:1])) >> event
    if isinstance(event, PeerFinished):
        play << ResetChannel() << QueryOver("closed", PASSAGES[:1]) << None
    else:
        play << QueryOver("lost", PASSAGES[:1]) << None


def test_late() -> None:
    play = waiting()
    assert play.machine.due_s == 100.0 + limits.QUERY_TIMEOUT_S
    play >> Received(Answer(ID, PASSAGES[:1])) << None
    play.after(limits.QUERY_TIMEOUT_S - 0.01) >> Tick() << None
    play.after(0.01) >> Tick() << ResetChannel() << QueryOver("late", PASSAGES[:1]) << None


@pytest.mark.parametrize(
    "frame",
    [
        Answer(OTHER_ID, PASSAGES[:1]), Answer(ID, PASSAGES), QueryEnd(OTHER_ID, 0), QueryEnd(ID, 1),
        QueryRefused(OTHER_ID, "busy"), QUESTION, SAMPLES[names.LINK]["beat"],
    ],
)  # fmt: skip
def test_answers_that_break_the_rules(frame: msgspec.Struct) -> None:
    play = waiting().refused(OutOfOrder, Received(frame))
    assert play.machine.state is QueryState.OVER


def test_refused_after_a_passage() -> None:
    (waiting() >> Received(Answer(ID, PASSAGES[:1]))).refused(OutOfOrder, Received(QueryRefused(ID, "busy")))


def test_more_passages_than_asked_for_in_several_frames() -> None:
    (waiting() >> Received(Answer(ID, PASSAGES[:2]))).refused(OutOfOrder, Received(Answer(ID, PASSAGES[:2])))


def test_answering() -> None:
    play = deciding() >> Give(PASSAGES[:2]) << Send(Answer(ID, PASSAGES[:2])) >> Give(()) << None
    play >> PeerFinished() << None  # the asker may end its side behind the question
    play >> Tick() << None >> Settle() << Send(QueryEnd(ID, 2)) << FinishSending() << None
    play >> Settle() << None >> Give(PASSAGES) << None
    assert play.machine.due_s is None


def test_answering_with_a_refusal() -> None:
    deciding() >> Refuse("not_granted") << Send(QueryRefused(ID, "not_granted")) << FinishSending() << None


def test_an_asker_that_is_gone() -> None:
    play = deciding() >> ChannelBroken() << None
    play >> Give(PASSAGES[:1]) << None >> Settle() << None
    assert (Playbook(AnswererMachine()) >> PeerFinished() << None).machine.state is QueryState.OVER


@pytest.mark.parametrize("frame", [QUESTION, QueryEnd(ID, 0), SAMPLES[names.LINK]["beat"]])
def test_questions_that_break_the_rules(frame: msgspec.Struct) -> None:
    deciding().refused(OutOfOrder, Received(frame))
    if not isinstance(frame, Query):
        Playbook(AnswererMachine()).refused(OutOfOrder, Received(frame))


def test_misuse_is_our_bug() -> None:
    for event in (Tick(), Received(QueryEnd(ID, 0))):
        Playbook(AskerMachine(QUESTION)).refused(LocalProtocolError, event)
    waiting().refused(LocalProtocolError, Ask())
    waiting().refused(LocalProtocolError, "no event")
    Playbook(AnswererMachine()).refused(LocalProtocolError, Settle())
    deciding().refused(LocalProtocolError, Give(PASSAGES), "where 3 were asked")
    (deciding() >> Give(PASSAGES[:1]) << Send).refused(LocalProtocolError, Refuse("busy"))
    assert AskerMachine(QUESTION).due_s is None


@given(st.lists(st.integers(0, 2), max_size=4))
def test_both_machines_together(sizes: list[int]) -> None:
    asking, answering = AskerMachine(QUESTION), AnswererMachine()
    (first,) = asking.handle(Ask(), 0.0)
    assert isinstance(first, Send)
    answering.handle(Received(first.frame), 0.0)
    given_: list[Passage] = []
    told: list[Any] = []
    for size in sizes:
        passages = PASSAGES[: min(size, 3 - len(given_))]
        given_ += passages
        for command in answering.handle(Give(passages), 0.0):
            assert isinstance(command, Send)
            told += asking.handle(Received(canonical.decode(canonical.encode(command.frame), Answer)), 0.0)
    for command in answering.handle(Settle(), 0.0):
        if isinstance(command, Send):
            told += asking.handle(Received(command.frame), 0.0)
    assert told == [FinishSending(), QueryOver("complete", tuple(given_))]
