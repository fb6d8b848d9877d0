"""Pairing: both ways to prove a secret, every kind of attack on it, and the price of each: one burnt try."""

import os
from typing import Any

import pytest
from fixed import SeededEntropy
from frame_samples import PEER_A, PEER_B
from pairing_meeting import (
    CODE,
    PC,
    PHONE,
    SECRET,
    Meeting,
    frames_of_a_meeting,
    initiator,
    responder,
    stranger_share,
)
from playbook import Playbook

from protocol import canonical, limits
from protocol.errors import LocalProtocolError
from protocol.machine import FinishSending, PeerFinished, Received, Send, Tick
from protocol.pairing import (
    AskOwner,
    BurnTry,
    Garbage,
    NoTriesLeft,
    OpenPairing,
    OwnerAccepts,
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
    TryBurned,
)
from protocol.words import EMOJI, new_code


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
