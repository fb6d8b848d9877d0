"""Yamux on the wire. Right values come from the specification's header layout and from libp2p's own constants."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from libp2p.stream_muxer.yamux import yamux as reference

from node.net import yamux
from node.net.errors import MuxViolation


def test_headers_are_laid_out_as_the_specification_says() -> None:
    data = yamux.encode(yamux.DATA, yamux.SYN | yamux.FIN, 0x01020304, 5)
    assert data == bytes.fromhex("00 00 0005 01020304 00000005")
    assert yamux.encode(yamux.PING, yamux.ACK, 0, 0xDEADBEEF) == bytes.fromhex("00 02 0002 00000000 deadbeef")


def test_our_numbers_are_libp2ps() -> None:
    assert yamux.PROTOCOL_ID == reference.PROTOCOL_ID
    assert (yamux.DATA, yamux.WINDOW_UPDATE, yamux.PING, yamux.GO_AWAY) == (
        reference.TYPE_DATA, reference.TYPE_WINDOW_UPDATE, reference.TYPE_PING, reference.TYPE_GO_AWAY)
    assert (yamux.SYN, yamux.ACK, yamux.FIN, yamux.RST) == (
        reference.FLAG_SYN, reference.FLAG_ACK, reference.FLAG_FIN, reference.FLAG_RST)
    assert yamux.INITIAL_WINDOW_BYTES == reference.DEFAULT_WINDOW_SIZE
    assert struct.calcsize(reference.YAMUX_HEADER_FORMAT) == yamux.HEADER_BYTES
    assert yamux.MAX_PAYLOAD_BYTES + yamux.HEADER_BYTES + 16 == 65535


def drain(parser: yamux.FrameParser) -> list[object]:
    events: list[object] = []
    while (event := parser.next()) is not None:
        if isinstance(event, bytes) and events and isinstance(events[-1], bytes):
            events[-1] += event
        else:
            events.append(event)
    return events


FRAMES = st.lists(st.one_of(
    st.builds(lambda sid, flags, body: (yamux.Header(yamux.DATA, flags, sid, len(body)), body),
              st.integers(1, 9), st.integers(0, 15), st.binary(min_size=1, max_size=50)),
    st.builds(lambda kind, sid, length: (yamux.Header(kind, 0, sid, length), b""),
              st.sampled_from([yamux.WINDOW_UPDATE, yamux.PING, yamux.GO_AWAY]),
              st.integers(0, 9), st.integers(0, 2**32 - 1)),
), max_size=8)


@given(FRAMES, st.sampled_from([1, 3, 7, 13, 10_000]), st.binary(max_size=11))
def test_any_chunking_gives_the_same_frames(frames: list[tuple[yamux.Header, bytes]], chunk: int, rest: bytes) -> None:
    wire = b"".join(yamux.encode(h.kind, h.flags, h.stream_id, h.length) + body for h, body in frames)
    expected: list[object] = []
    for header, body in frames:
        expected += [header, body] if body else [header]
    parser, seen = yamux.FrameParser(), []
    for at in range(0, len(wire), chunk):
        parser.feed(wire[at : at + chunk])
        for event in drain(parser):
            if isinstance(event, bytes) and seen and isinstance(seen[-1], bytes):
                seen[-1] += event
            else:
                seen.append(event)
    assert seen == expected
    parser.feed(rest)  # less than a header: nothing comes of it
    assert drain(parser) == []


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_a_violation(data: bytes) -> None:
    parser = yamux.FrameParser()
    parser.feed(data)
    with suppress(MuxViolation):
        drain(parser)


def test_a_header_is_told_before_its_body_came() -> None:
    parser = yamux.FrameParser()
    parser.feed(yamux.encode(yamux.DATA, 0, 1, 1 << 30))
    assert parser.next() == yamux.Header(yamux.DATA, 0, 1, 1 << 30)
    assert parser.next() is None
    assert parser.body_left == 1 << 30


@pytest.mark.parametrize("wire", [b"\x01" + bytes(11), b"\x00\x04" + bytes(10), b"\xff" * 12])
def test_another_version_or_kind_is_a_violation(wire: bytes) -> None:
    parser = yamux.FrameParser()
    parser.feed(wire)
    with pytest.raises(MuxViolation):
        parser.next()
