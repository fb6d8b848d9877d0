"""Pairing: both ways to prove a secret, every kind of attack on it, and the price of each: one burnt try."""

import os
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from fixed import SeededEntropy
from frame_samples import PEER_A, PEER_B, SAMPLES
from hypothesis import given, settings
from hypothesis import strategies as st
from playbook import Playbook
from spake2 import SPAKE2_A

from protocol import canonical, limits, names
from protocol.errors import LocalProtocolError
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, Send, Tick
from protocol.pairing import (
    AskOwner,
    BurnTry,
    CardBody,
    Garbage,
    NoTriesLeft,
    OpenPairing,
    OwnerAccepts,
    OwnerDeclines,
    PairAccept,
    PairCard,
    PairConfirm,
    Paired,
    PairingFailed,
    PairingMachine,
    PairingState,
    PairRefused,
    ReplyCode,
    ReplySecret,
    SpendCode,
    StartCode,
    StartSecret,
    TryBurned,
)
from protocol.words import EMOJI, new_code

CODE = "7-crossover-clockwork"
SECRET = bytes(range(16))
PHONE = CardBody("phone", "self", (), b"")
PC = CardBody("home-pc", "home", ("/ip4/192.0.2.7/tcp/4001",), b"grant")


def initiator(own: str = PEER_A, peer: str = PEER_B, seed: int = 1, **proof: Any) -> PairingMachine:
    return PairingMachine.initiate(own_id=own, peer_id=peer, card=PHONE, entropy=SeededEntropy(seed), **proof)


def responder(own: str = PEER_B, peer: str = PEER_A, seed: int = 2, **proof: Any) -> PairingMachine:
    return PairingMachine.respond(own_id=own, peer_id=peer, card=PC, entropy=SeededEntropy(seed), **proof)


Tamper = Callable[[str, msgspec.Struct], msgspec.Struct | None]


class Meeting:
    """Both machines, their owners and a try counter, joined by real bytes that `tamper` may change or swallow."""

    def __init__(
        self, near: PairingMachine, far: PairingMachine, *, tries: int = 3, tamper: Tamper | None = None
    ) -> None:
        self.machines = {"initiator": near, "responder": far}
        self.tries, self.burnt, self.spent = tries, 0, 0
        self.tamper = tamper or (lambda side, frame: frame)
        self.told: dict[str, list[Any]] = {"initiator": [], "responder": []}
        self.answered_before_burning = False
        self.yes = {"initiator": True, "responder": True}
        self._queue: list[tuple[str, object]] = [("initiator", OpenPairing())]

    def run(self) -> "Meeting":
        while self._queue:
            side, event = self._queue.pop(0)
            for command in self.machines[side].handle(event, 0.0):
                self._carry_out(side, command)
        return self

    def _carry_out(self, side: str, command: Any) -> None:
        other = "responder" if side == "initiator" else "initiator"
        match command:
            case Send(frame):
                self.answered_before_burning |= side == "responder" and self.burnt == 0 and self.tries > 0
                changed = self.tamper(side, frame)
                if changed is not None:
                    again = canonical.decode(canonical.encode(changed), names.FRAMES[names.PAIR])
                    self._queue.append((other, Received(again)))
            case BurnTry():
                assert side == "responder"
                if self.tries:
                    self.tries, self.burnt = self.tries - 1, self.burnt + 1
                    self._queue.insert(0, (side, TryBurned(self.tries)))
                else:
                    self._queue.insert(0, (side, NoTriesLeft()))
            case SpendCode():
                self.spent += 1
            case AskOwner():
                self.told[side].append(command)
                self._queue.append((side, OwnerAccepts() if self.yes[side] else OwnerDeclines()))
            case Paired() | PairingFailed():
                self.told[side].append(command)
            case FinishSending():
                pass
            case _:
                raise AssertionError(command)

    def paired(self) -> bool:
        return any(isinstance(told, Paired) for side in self.told.values() for told in side)


@pytest.mark.parametrize("proof", [{"code": CODE}, {"secret": SECRET}])
def test_two_nodes_pair(proof: dict[str, Any]) -> None:
    meeting = Meeting(initiator(**proof), responder(code=CODE, secret=SECRET)).run()
    asked_near, paired_near = meeting.told["initiator"]
    asked_far, paired_far = meeting.told["responder"]
    assert (paired_near, paired_far) == (Paired(PC), Paired(PHONE))
    assert (asked_near.card, asked_far.card) == (PC, PHONE)
    assert asked_near.emoji == asked_far.emoji
    assert len(asked_near.emoji) == (limits.EMOJI_CHECK_COUNT if "code" in proof else 0)
    assert set(asked_near.emoji) <= set(EMOJI)
    assert (meeting.burnt, meeting.spent) == (1, 1)
    assert not meeting.answered_before_burning


def test_the_steps_of_a_code() -> None:
    near, far = Playbook(initiator(code=CODE)), Playbook(responder(code=CODE))
    near >> OpenPairing() << Send << None
    start = near.last.frame
    assert isinstance(start, StartCode)
    far >> Received(start) << BurnTry() << None  # nothing is answered yet
    far >> TryBurned(2) << Send << None
    reply = far.last.frame
    assert isinstance(reply, ReplyCode)
    near >> Received(reply) << Send << None
    confirm = near.last.frame
    far >> Received(confirm) << SpendCode() << Send << Send
    card_far = far.last.frame
    assert isinstance(card_far, PairCard)
    # the responder's own confirmation was the one before
    far_confirm = PairConfirm(far.machine._known_keys.confirm_mac("responder"))
    near >> Received(far_confirm) << Send << None
    card_near = near.last.frame
    near >> Received(card_far) << AskOwner << None
    far >> Received(card_near) << AskOwner << None
    near >> OwnerAccepts() << Send << None  # the other owner has not answered
    far >> Received(near.last.frame) << None >> OwnerAccepts() << Send << FinishSending() << Paired(PHONE) << None
    far_accept = PairAccept(far.machine._accept_mac("responder"))
    near >> Received(far_accept) << FinishSending() << Paired(PC) << None
    for play in (near, far):
        assert play.machine.state is PairingState.DONE
        assert play.machine.due_s is None
        play >> Received(start) << None >> PeerFinished() << None >> Garbage() << None


def test_own_proof_comes_after_the_peers() -> None:
    """A responder sends no confirmation to someone who has not shown the code first."""
    far = Playbook(responder(code=CODE)) >> Received(StartCode(stranger_share())) << BurnTry() >> TryBurned(2) << Send
    far >> Received(PairConfirm(bytes(32))) << Send(PairRefused("no_match")) << FinishSending()
    far << PairingFailed("no_match") << None


def stranger_share(code: bytes = b"8-other-words", a: str = PEER_A, b: str = PEER_B) -> bytes:
    share: bytes = SPAKE2_A(code, idA=a.encode(), idB=b.encode(), entropy_f=lambda n: b"\x07" * n).start()
    return share


def test_a_wrong_code_fails_on_both_sides_and_costs_a_try() -> None:
    meeting = Meeting(initiator(code="8-crossover-clockwork"), responder(code=CODE)).run()
    assert meeting.told == {
        "initiator": [PairingFailed("no_match", by_peer=True)],
        "responder": [PairingFailed("no_match")],
    }
    assert (meeting.tries, meeting.spent) == (2, 0)


def test_a_wrong_secret_fails_on_both_sides_and_costs_a_try() -> None:
    meeting = Meeting(initiator(secret=bytes(16)), responder(secret=SECRET)).run()
    assert not meeting.paired()
    assert (meeting.tries, meeting.spent) == (2, 0)


def test_the_fourth_try_is_refused_even_with_the_right_code() -> None:
    tries = limits.PAIRING_TRIES
    for seed in range(limits.PAIRING_TRIES):
        meeting = Meeting(initiator(code=f"9-{seed}", seed=seed), responder(code=CODE), tries=tries).run()
        assert not meeting.paired()
        tries = meeting.tries
    assert tries == 0
    meeting = Meeting(initiator(code=CODE), responder(code=CODE), tries=tries).run()
    assert meeting.told["initiator"] == [PairingFailed("no_tries", by_peer=True)]
    assert meeting.told["responder"] == [PairingFailed("no_tries")]


WRONG_CODES = 10_000 if os.environ.get("KITH_SOAK") == "full" else 1_000


@pytest.mark.soak
def test_no_wrong_code_ever_pairs() -> None:
    for seed in range(WRONG_CODES):
        wrong = new_code(SeededEntropy(seed))
        assert wrong != CODE
        meeting = Meeting(initiator(code=wrong, seed=seed), responder(code=CODE, seed=seed + 1)).run()
        assert not meeting.paired()
        assert (meeting.burnt, meeting.spent) == (1, 0)


def test_negative_control_the_right_code_pairs_in_the_same_loop() -> None:
    for seed in range(3):
        assert Meeting(initiator(code=CODE, seed=seed), responder(code=CODE, seed=seed + 1)).run().paired()


OTHER = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
SWAPPED = {"own": PEER_A, "peer": PEER_B}


@pytest.mark.parametrize("proof", [{"code": CODE}, {"secret": SECRET}])
@pytest.mark.parametrize(
    ("near", "far"),
    [({"own": OTHER}, {}), ({"peer": OTHER}, {}), ({}, {"own": OTHER}), ({}, {"peer": OTHER}), ({}, SWAPPED)],
)
def test_both_ids_are_bound(proof: dict[str, Any], near: dict[str, Any], far: dict[str, Any]) -> None:
    """A man in the middle has other ids on his two connections, so passing messages on gains nothing."""
    assert not Meeting(initiator(**near, **proof), responder(**far, **proof)).run().paired()


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


def frames_of_a_meeting(**proof: Any) -> dict[str, list[msgspec.Struct]]:
    seen: dict[str, list[msgspec.Struct]] = {"initiator": [], "responder": []}

    def record(side: str, frame: msgspec.Struct) -> msgspec.Struct:
        seen[side].append(frame)
        return frame

    assert Meeting(initiator(**proof), responder(**proof), tamper=record).run().paired()
    return seen


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


def test_either_owner_may_say_no() -> None:
    for side, other in (("initiator", "responder"), ("responder", "initiator")):
        meeting = Meeting(initiator(code=CODE), responder(code=CODE))
        meeting.yes[side] = False
        meeting.run()
        assert meeting.told[side][-1] == PairingFailed("declined")
        assert not any(isinstance(told, Paired) for told in meeting.told[other])


def agreed() -> tuple[Playbook, Playbook]:
    """Both machines, asking their owners."""
    meeting = Meeting(initiator(secret=SECRET), responder(secret=SECRET))
    original = meeting._carry_out

    def without_owners(side: str, command: Any) -> None:
        if isinstance(command, AskOwner):
            return
        original(side, command)

    meeting._carry_out = without_owners  # type: ignore[method-assign]
    meeting.run()
    return Playbook(meeting.machines["initiator"]), Playbook(meeting.machines["responder"])


def test_the_peer_may_accept_first_and_may_still_say_no() -> None:
    near, far = agreed()
    far >> OwnerAccepts() << Send
    accept = far.last.frame
    near >> Received(accept) << None
    near >> Received(accept) << Send(PairRefused("protocol")) << FinishSending() << PairingFailed("protocol") << None
    near, _ = agreed()
    near >> OwnerAccepts() << Send
    near >> Received(PairRefused("declined")) << PairingFailed("declined", by_peer=True) << None
    near, _ = agreed()
    near >> OwnerAccepts() << Send
    near.refused(LocalProtocolError, OwnerAccepts())


def test_the_owner_has_minutes_the_machine_has_seconds() -> None:
    near, _ = agreed()
    assert near.machine.due_s == limits.PAIRING_OWNER_TIMEOUT_S
    near.now_s = limits.PAIRING_OWNER_TIMEOUT_S - 0.1
    near >> Tick() << None
    near.now_s += 0.1
    near >> Tick() << Send(PairRefused("expired")) << FinishSending() << PairingFailed("expired") << None
    play = Playbook(initiator(code=CODE)) >> OpenPairing() << Send
    assert play.machine.due_s == 100.0 + limits.PAIRING_STEP_TIMEOUT_S
    play.after(limits.PAIRING_STEP_TIMEOUT_S) >> Tick() << Send(PairRefused("expired")) << FinishSending()
    play << PairingFailed("expired") << None


def test_a_silent_stranger_is_dropped_without_an_answer() -> None:
    far = Playbook(responder(code=CODE)) >> Tick() << None
    assert far.machine.due_s == 100.0 + limits.PAIRING_STEP_TIMEOUT_S
    far.after(limits.PAIRING_STEP_TIMEOUT_S) >> Tick() << FinishSending() << PairingFailed("expired") << None


def test_initiator_told_that_it_is_refused() -> None:
    near = Playbook(initiator(code=CODE)) >> OpenPairing() << Send
    near >> Received(PairRefused("no_tries")) << PairingFailed("no_tries", by_peer=True) << None
    near = Playbook(initiator(code=CODE)) >> OpenPairing() << Send
    near >> Garbage() << Send(PairRefused("protocol")) << FinishSending() << PairingFailed("protocol") << None


def test_a_reply_of_the_other_method() -> None:
    near = Playbook(initiator(code=CODE)) >> OpenPairing() << Send
    near >> Received(ReplySecret(bytes(32))) << Send(PairRefused("no_match")) << FinishSending() << PairingFailed
    near = Playbook(initiator(secret=SECRET)) >> OpenPairing() << Send
    near >> Received(ReplyCode(bytes(33))) << Send(PairRefused("no_match")) << FinishSending() << PairingFailed


def test_misuse_is_our_bug() -> None:
    with pytest.raises(LocalProtocolError):
        initiator()
    with pytest.raises(LocalProtocolError):
        initiator(code=CODE, secret=SECRET)
    with pytest.raises(LocalProtocolError):
        responder()
    with pytest.raises(LocalProtocolError):
        responder(secret=b"short")
    with pytest.raises(LocalProtocolError):
        initiator(own=PEER_A, peer=PEER_A, code=CODE)
    for event in (TryBurned(1), OwnerAccepts(), NoTriesLeft(), "no event"):
        Playbook(responder(code=CODE)).refused(LocalProtocolError, event)
    Playbook(responder(code=CODE)).refused(LocalProtocolError, OpenPairing())


def test_no_frame_holds_the_code_or_the_secret() -> None:
    for proof in ({"code": CODE}, {"secret": SECRET}):
        for frames in frames_of_a_meeting(**proof).values():
            joined = b"".join(canonical.encode(frame) for frame in frames)
            assert SECRET not in joined
            assert b"clockwork" not in joined
