"""One model file from any byte on: both machines, what breaks the rules, and any way of cutting it up."""

from typing import Any

import msgspec
import pytest
from frame_samples import DIGEST, ID, OTHER_ID, SAMPLES
from hypothesis import given
from hypothesis import strategies as st
from playbook import Playbook

from protocol import canonical, framing, limits, names
from protocol.errors import LocalProtocolError, OutOfOrder, RemoteProtocolError
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick
from protocol.model import (
    Ask,
    CopierMachine,
    CopyOver,
    Decide,
    Give,
    GiverMachine,
    GiveUp,
    ModelChunk,
    ModelEnd,
    ModelOffer,
    ModelRefused,
    ModelRequest,
    ModelState,
    Offer,
    Offered,
    Refuse,
    StopGiving,
    Store,
)

REQUEST = ModelRequest(ID, DIGEST, 4)
OFFER = ModelOffer(ID, DIGEST, 10, "tiny", None)


def asked() -> Playbook:
    return Playbook(CopierMachine(REQUEST)) >> Ask() << Send(REQUEST)


def receiving() -> Playbook:
    return asked() >> Received(OFFER) << Offered(OFFER)


def giving(size_bytes: int = 10) -> Playbook:
    play = Playbook(GiverMachine()) >> Received(REQUEST) << Decide(REQUEST)
    return play >> Offer(size_bytes, "tiny", None) << Send(ModelOffer(ID, DIGEST, size_bytes, "tiny", None))


def test_copying_from_where_it_broke_off() -> None:
    play = receiving() >> Received(ModelChunk(ID, 4, b"efg")) << Store(4, b"efg")
    play >> Received(ModelChunk(ID, 7, b"hij")) << Store(7, b"hij")
    play >> Received(ModelEnd(ID, 10)) << FinishSending() << CopyOver("complete", 10) << None
    assert play.machine.due_s is None
    play >> PeerFinished() << None >> GiveUp() << None >> Tick() << None


def test_a_file_that_is_here_to_its_last_byte_needs_an_end_only() -> None:
    request = ModelRequest(ID, DIGEST, 10)
    play = Playbook(CopierMachine(request)) >> Ask() << Send >> Received(OFFER) << Offered
    play >> Received(ModelEnd(ID, 10)) << FinishSending() << CopyOver("complete", 10)
    giver = Playbook(GiverMachine()) >> Received(request) << Decide
    giver >> Offer(10, "tiny", None) << Send(OFFER) << Send(ModelEnd(ID, 10)) << FinishSending() << None


@pytest.mark.parametrize("reached", [False, True])
def test_being_refused_before_and_in_the_middle(reached: bool) -> None:
    play = receiving() if reached else asked()
    play >> Received(ModelRefused(ID, "revoked")) << FinishSending() << CopyOver("refused", 4, "revoked") << None


@pytest.mark.parametrize(
    ("event", "reason"), [(PeerFinished(), "closed"), (ChannelBroken(), "lost"), (GiveUp(), "given_up")]
)
def test_a_stream_that_ends_early_tells_how_far_it_came(event: object, reason: Any) -> None:
    play = receiving() >> Received(ModelChunk(ID, 4, b"ef")) << Store >> event
    if not isinstance(event, ChannelBroken):
        play << ResetChannel()
    play << CopyOver(reason, 6) << None


def test_a_silent_peer_is_given_up() -> None:
    play = receiving()
    play.after(limits.MODEL_STALL_S - 0.1) >> Received(ModelChunk(ID, 4, b"e")) << Store
    assert play.machine.due_s == play.now_s + limits.MODEL_STALL_S
    play.after(limits.MODEL_STALL_S - 0.1) >> Tick() << None
    play.after(0.1) >> Tick() << ResetChannel() << CopyOver("silent", 5) << None


@pytest.mark.parametrize(
    "frame",
    [
        ModelOffer(OTHER_ID, DIGEST, 10, "tiny", None), ModelOffer(ID, "cd" * 32, 10, "tiny", None),
        ModelOffer(ID, DIGEST, 3, "tiny", None), ModelChunk(ID, 4, b"e"), ModelEnd(ID, 4), REQUEST,
        ModelRefused(OTHER_ID, "busy"), SAMPLES[names.LINK]["beat"],
    ],
)  # fmt: skip
def test_frames_that_no_request_is_answered_with(frame: msgspec.Struct) -> None:
    assert asked().refused(OutOfOrder, Received(frame)).machine.state is ModelState.OVER


@pytest.mark.parametrize(
    "frame",
    [
        OFFER, ModelChunk(ID, 3, b"d"), ModelChunk(ID, 5, b"f"), ModelChunk(ID, 4, b"efghijk"),
        ModelChunk(OTHER_ID, 4, b"e"), ModelEnd(ID, 10), ModelEnd(OTHER_ID, 10), REQUEST,
    ],
)  # fmt: skip
def test_chunks_that_leave_a_gap_overlap_or_go_on_too_long(frame: msgspec.Struct) -> None:
    assert receiving().refused(OutOfOrder, Received(frame)).machine.state is ModelState.OVER


def test_an_end_that_names_another_size() -> None:
    play = receiving() >> Received(ModelChunk(ID, 4, b"efghij")) << Store
    play.refused(OutOfOrder, Received(ModelEnd(ID, 11)))


def test_giving() -> None:
    play = giving() >> Give(b"efg") << Send(ModelChunk(ID, 4, b"efg")) << None
    assert play.machine.left_bytes == 3
    play >> Give(b"hij") << Send(ModelChunk(ID, 7, b"hij")) << Send(ModelEnd(ID, 10)) << FinishSending() << None
    play >> Give(b"k") << None >> Refuse("revoked") << None >> PeerFinished() << None
    assert play.machine.due_s is None


def test_refusing_before_and_in_the_middle() -> None:
    play = Playbook(GiverMachine()) >> Received(REQUEST) << Decide
    play >> Refuse("not_granted") << Send(ModelRefused(ID, "not_granted")) << FinishSending() << None
    play = giving() >> Give(b"e") << Send >> Refuse("revoked") << Send(ModelRefused(ID, "revoked")) << FinishSending()
    play >> Give(b"f") << None


@pytest.mark.parametrize("event", [PeerFinished(), ChannelBroken()])
def test_a_copier_that_is_gone_stops_the_giving(event: object) -> None:
    play = giving() >> event << StopGiving() << None
    play >> Give(b"e") << None
    (Playbook(GiverMachine()) >> event << None >> ChannelBroken() << None)


@pytest.mark.parametrize("frame", [REQUEST, OFFER, ModelEnd(ID, 10), SAMPLES[names.LINK]["beat"]])
def test_requests_that_break_the_rules(frame: msgspec.Struct) -> None:
    giving().refused(OutOfOrder, Received(frame))
    if frame is not REQUEST:
        Playbook(GiverMachine()).refused(OutOfOrder, Received(frame))


def test_misuse_is_our_bug() -> None:
    Playbook(CopierMachine(REQUEST)).refused(LocalProtocolError, Tick())
    receiving().refused(LocalProtocolError, Ask()).refused(LocalProtocolError, "no event")
    Playbook(GiverMachine()).refused(LocalProtocolError, Give(b"x"))
    giving().refused(LocalProtocolError, Give(b"")).refused(LocalProtocolError, Give(b"7 bytes"))
    giving().refused(LocalProtocolError, Offer(10, "tiny", None)).refused(LocalProtocolError, "no event")
    play = Playbook(GiverMachine()) >> Received(REQUEST) << Decide
    play.refused(LocalProtocolError, Give(b"x")).refused(LocalProtocolError, Offer(3, "tiny", None))
    assert (play >> Tick() << None).machine.due_s is None


@given(st.binary(min_size=1, max_size=200), st.data())
def test_both_machines_over_any_number_of_broken_streams(file: bytes, data: st.DataObject) -> None:
    """Whatever is given in whatever pieces, and wherever the stream breaks, the copy is the file."""
    here = bytearray()
    for last in (False, False, True):
        copier, giver = CopierMachine(ModelRequest(ID, DIGEST, len(here))), GiverMachine()
        wire: list[Any] = [one.frame for one in copier.handle(Ask(), 0.0) if isinstance(one, Send)]
        told: list[Any] = list(giver.handle(Received(wire[0]), 0.0))
        assert told == [Decide(wire[0])]
        told = list(giver.handle(Offer(len(file), "tiny", None), 0.0))
        breaks_after = 10**6 if last else data.draw(st.integers(1, 5))
        outcome: list[Any] = []
        while breaks_after and not outcome:
            for command in told:
                if isinstance(command, Send):
                    for reply in copier.handle(Received(command.frame), 0.0):
                        if isinstance(reply, Store):
                            assert reply.offset == len(here)
                            here += reply.data
                        outcome += [reply] if isinstance(reply, CopyOver) else []
            if not outcome:
                size = data.draw(st.integers(1, giver.left_bytes))
                told = list(giver.handle(Give(file[-giver.left_bytes:][:size]), 0.0))
            breaks_after -= 1
        if not outcome:
            assert copier.handle(ChannelBroken(), 0.0) == (CopyOver("lost", len(here)),)
    assert bytes(here) == file
    assert outcome == [CopyOver("complete", len(file))]


@given(st.binary(max_size=300), st.integers(1, 40))
def test_foreign_bytes_end_in_a_protocol_error_or_wait(data: bytes, step: int) -> None:
    """Whole, bytewise and in odd pieces alike."""
    decoder = framing.FrameDecoder(names.FRAME_LIMITS[names.MODEL])
    try:
        for at in range(0, len(data), step):
            decoder.receive_data(data[at:at + step])
            while (payload := decoder.next_frame()) is not None:
                canonical.decode(payload, names.FRAMES[names.MODEL])
    except RemoteProtocolError:
        return
    assert decoder.pending_bytes <= len(data)


@given(st.data())
def test_changed_frames_are_refused_or_another_frame(data: st.DataObject) -> None:
    frame = data.draw(st.sampled_from(list(SAMPLES[names.MODEL].values())))
    payload = bytearray(canonical.encode(frame))
    payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = canonical.decode(bytes(payload), names.FRAMES[names.MODEL])
    except RemoteProtocolError:
        return
    assert canonical.encode(decoded) == bytes(payload)      # one encoding only
    with pytest.raises(RemoteProtocolError):
        canonical.decode(bytes(payload) + b"\x00", names.FRAMES[names.MODEL])
