"""Pairing under attack: changed, recorded, reflected and malformed frames, and what a stranger sends in any order."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from frame_samples import SAMPLES
from hypothesis import given, settings
from hypothesis import strategies as st
from pairing_meeting import CODE, SECRET, Meeting, frames_of_a_meeting, initiator, responder, stranger_share
from playbook import Playbook

from protocol import names
from protocol.errors import LocalProtocolError
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, Send, Tick
from protocol.pairing import (
    AskOwner,
    BurnTry,
    Garbage,
    NoTriesLeft,
    OpenPairing,
    PairAccept,
    PairCard,
    PairConfirm,
    Paired,
    PairingFailed,
    PairingState,
    PairRefused,
    ReplyCode,
    ReplySecret,
    SpendCode,
    StartCode,
    StartSecret,
    TryBurned,
)


def flip(mac_of: str) -> Callable[[msgspec.Struct], msgspec.Struct]:
    def change(frame: msgspec.Struct) -> msgspec.Struct:
        value = getattr(frame, mac_of)
        return msgspec.structs.replace(frame, **{mac_of: bytes([value[0] ^ 1]) + value[1:]})

    return change


def swap_card(frame: msgspec.Struct) -> msgspec.Struct:
    assert isinstance(frame, PairCard)
    return PairCard(msgspec.structs.replace(frame.body, node_name="evil"), frame.mac)


TAMPERINGS: list[tuple[type[msgspec.Struct], Callable[[msgspec.Struct], msgspec.Struct]]] = [
    (StartCode, flip("share")),
    (ReplyCode, flip("share")),
    (StartSecret, flip("nonce")),
    (ReplySecret, flip("nonce")),
    (PairConfirm, flip("mac")),
    (PairCard, flip("mac")),
    (PairCard, swap_card),
    (PairAccept, flip("mac")),
]


@pytest.mark.parametrize("side", ["initiator", "responder"])
@pytest.mark.parametrize(("kind", "change"), TAMPERINGS)
def test_a_changed_frame_never_pairs_whom_it_reaches(
    side: str, kind: type[msgspec.Struct], change: Callable[[msgspec.Struct], msgspec.Struct]
) -> None:
    hits = 0

    def tamper(sender: str, frame: msgspec.Struct) -> msgspec.Struct:
        nonlocal hits
        if sender != side or type(frame) is not kind:
            return frame
        hits += 1
        return change(frame)

    proof: dict[str, Any] = {"secret": SECRET} if kind in (StartSecret, ReplySecret) else {"code": CODE}
    meeting = Meeting(initiator(**proof), responder(**proof), tamper=tamper).run()
    starts = kind in (StartCode, StartSecret)
    if kind in (StartCode, StartSecret, ReplyCode, ReplySecret) and starts != (side == "initiator"):
        assert hits == 0  # that side never sends it
        return
    assert hits == 1
    receiver = "responder" if side == "initiator" else "initiator"
    assert not any(isinstance(told, Paired) for told in meeting.told[receiver])
    assert meeting.burnt == 1


@pytest.mark.parametrize("proof", [{"code": CODE}, {"secret": SECRET}])
def test_a_recorded_meeting_replayed_to_the_responder_burns_a_try_and_fails(proof: dict[str, Any]) -> None:
    recorded = frames_of_a_meeting(**proof)["initiator"]
    far = Playbook(responder(seed=99, **proof)) >> Received(recorded[0]) << BurnTry() >> TryBurned(1) << Send
    far >> Received(recorded[1]) << Send(PairRefused("no_match")) << FinishSending() << PairingFailed("no_match")


@pytest.mark.parametrize("proof", [{"code": CODE}, {"secret": SECRET}])
def test_a_recorded_meeting_replayed_to_the_initiator_fails(proof: dict[str, Any]) -> None:
    recorded = frames_of_a_meeting(**proof)["responder"]
    near = Playbook(initiator(seed=99, **proof)) >> OpenPairing() << Send >> Received(recorded[0]) << Send
    near >> Received(recorded[1]) << Send(PairRefused("no_match")) << FinishSending() << PairingFailed("no_match")


@pytest.mark.parametrize("proof", [{"code": CODE}, {"secret": SECRET}])
def test_reflection_to_the_initiator(proof: dict[str, Any]) -> None:
    near = Playbook(initiator(**proof)) >> OpenPairing() << Send
    start = near.last.frame
    thrown_back = ReplyCode(start.share) if isinstance(start, StartCode) else ReplySecret(start.nonce)
    near >> Received(thrown_back) << Send(PairRefused("no_match")) << FinishSending() << PairingFailed("no_match")


def test_reflection_of_the_confirmation() -> None:
    """Each side's proof has its own key, so throwing ours back proves nothing."""
    near, far = Playbook(initiator(secret=SECRET)), Playbook(responder(secret=SECRET))
    near >> OpenPairing() << Send
    far >> Received(near.last.frame) << BurnTry() >> TryBurned(2) << Send
    near >> Received(far.last.frame) << Send
    near >> Received(near.last.frame) << Send(PairRefused("no_match")) << FinishSending() << PairingFailed("no_match")


def test_reflection_of_a_share_with_the_side_byte_of_the_other_side() -> None:
    """An initiator's share that claims to come from side B: SPAKE2 itself refuses it. One try burnt."""
    share = b"B" + stranger_share()[1:]
    far = Playbook(responder(code=CODE)) >> Received(StartCode(share)) << BurnTry() >> TryBurned(2)
    far << Send(PairRefused("no_match")) << FinishSending() << PairingFailed("no_match") << None


@pytest.mark.parametrize(
    "point",
    [bytes(32), b"\x01" + bytes(31), b"\xff" * 32, (2**255 - 19).to_bytes(32, "little"),
     (2**255 - 20).to_bytes(32, "little"),
     bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), b"\x02" + bytes(31)],
)  # fmt: skip
def test_points_of_small_order_or_off_the_curve(point: bytes) -> None:
    far = Playbook(responder(code=CODE)) >> Received(StartCode(b"A" + point)) << BurnTry() >> TryBurned(2)
    far << Send(PairRefused("no_match")) << FinishSending() << PairingFailed("no_match") << None


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=33, max_size=33))
def test_no_share_makes_a_machine_raise(share: bytes) -> None:
    far = responder(code=CODE)
    far.handle(Received(StartCode(share)), 0.0)
    commands = far.handle(TryBurned(2), 0.0)
    assert commands
    near = initiator(code=CODE)
    near.handle(OpenPairing(), 0.0)
    assert near.handle(Received(ReplyCode(share)), 0.0)


FIRST_FRAMES = [frame for name, frame in SAMPLES[names.PAIR].items() if not name.startswith("start")]


@pytest.mark.parametrize("event", [Garbage(), *(Received(frame) for frame in FIRST_FRAMES)])
def test_whatever_comes_first_costs_a_try(event: object) -> None:
    far = Playbook(responder(code=CODE)) >> event << BurnTry() << None
    far >> TryBurned(0) << Send(PairRefused("protocol")) << FinishSending() << PairingFailed("protocol") << None


def test_a_method_that_was_not_offered_costs_a_try() -> None:
    for offered, frame in (({"code": CODE}, StartSecret(bytes(32))), ({"secret": SECRET}, StartCode(stranger_share()))):
        far = Playbook(responder(**offered)) >> Received(frame) << BurnTry() >> TryBurned(1)
        far << Send(PairRefused("closed")) << FinishSending() << PairingFailed("closed") << None


@pytest.mark.parametrize("event", [Garbage(), Received(PairConfirm(bytes(32)))])
def test_nothing_is_answered_while_the_try_is_being_burnt(event: object) -> None:
    far = Playbook(responder(code=CODE)) >> Received(StartCode(stranger_share())) << BurnTry() << None
    far >> event << FinishSending() << PairingFailed("protocol") << None
    far >> TryBurned(2) << None >> NoTriesLeft() << None


def test_a_stream_that_ends_after_the_first_frame_has_cost_a_try() -> None:
    far = Playbook(responder(code=CODE)) >> Received(StartCode(stranger_share())) << BurnTry()
    far >> TryBurned(2) << Send >> PeerFinished() << PairingFailed("lost") << None


def test_a_stream_that_ends_before_any_frame_costs_nothing() -> None:
    for event in (PeerFinished(), ChannelBroken()):
        Playbook(responder(code=CODE)) >> event << PairingFailed("lost") << None


@pytest.mark.parametrize("name", SAMPLES[names.PAIR])
def test_out_of_order_frames_end_it_in_every_state(name: str) -> None:
    """Each specimen, at each point where it does not belong, on either side."""
    frame = SAMPLES[names.PAIR][name]
    near = Playbook(initiator(code=CODE)) >> OpenPairing() << Send
    if name != "reply_code":
        near >> Received(frame) << object
        while near._waiting:
            near << object
        assert near.machine.state is PairingState.FAILED
    far = Playbook(responder(code=CODE)) >> Received(StartCode(stranger_share())) << BurnTry() >> TryBurned(2) << Send
    far >> Received(frame) << object
    while far._waiting:
        far << object
    assert far.machine.state is PairingState.FAILED
    assert isinstance(far.last, PairingFailed)


STRANGER_EVENTS = st.sampled_from(
    [Garbage(), Tick(), TryBurned(1), NoTriesLeft(), PeerFinished(), Received(StartCode(stranger_share()))]
    + [Received(frame) for frame in SAMPLES[names.PAIR].values()]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(STRANGER_EVENTS, st.floats(0, 20)), max_size=10))
def test_no_order_of_a_strangers_frames_pairs_or_raises(steps: list[tuple[object, float]]) -> None:
    machine, now_s, burnt, told = responder(code=CODE, secret=SECRET), 0.0, 0, []
    for event, pause_s in steps:
        now_s += pause_s
        try:
            commands = machine.handle(event, now_s)
        except LocalProtocolError:
            assert isinstance(event, TryBurned | NoTriesLeft)  # our own driver's word at the wrong time
            continue
        if burnt == 0:
            assert not any(isinstance(command, Send) for command in commands)
        burnt += sum(isinstance(command, BurnTry) for command in commands)
        told += [command for command in commands if isinstance(command, Paired | PairingFailed | AskOwner | SpendCode)]
    assert burnt <= 1
    assert all(isinstance(command, PairingFailed) for command in told)
    assert len(told) <= 1
