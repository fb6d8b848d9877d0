"""Frames out of a byte stream: whole, byte by byte, in odd chunks, with trailing bytes, at the limits, and noise."""

import pytest
from frame_samples import SAMPLES
from hypothesis import given
from hypothesis import strategies as st

from protocol import canonical, limits, names
from protocol.errors import BadEncoding, FrameTooLarge, LocalProtocolError, RemoteProtocolError
from protocol.framing import FrameDecoder, encode_frame

PAYLOADS = st.lists(st.binary(min_size=1, max_size=50), max_size=8)


def chunked(data: bytes, sizes: list[int]) -> list[bytes]:
    chunks, at, turn = [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        chunks.append(data[at : at + size])
        at, turn = at + size, turn + 1
    return chunks


def frames_of(decoder: FrameDecoder, chunks: list[bytes]) -> list[bytes]:
    frames = []
    for chunk in chunks:
        decoder.receive_data(chunk)
        while (frame := decoder.next_frame()) is not None:
            frames.append(frame)
    return frames


@given(PAYLOADS, st.lists(st.integers(1, 17), min_size=1, max_size=5))
def test_any_chunking_gives_the_same_frames(payloads: list[bytes], sizes: list[int]) -> None:
    data = b"".join(encode_frame(payload) for payload in payloads)
    for chunks in ([data], chunked(data, [1]), chunked(data, sizes), [b"", data, b""]):
        decoder = FrameDecoder(64)
        assert frames_of(decoder, chunks) == payloads
        assert decoder.pending_bytes == 0


@given(PAYLOADS, st.binary(min_size=1, max_size=40))
def test_a_cut_off_last_frame_is_never_returned(payloads: list[bytes], last: bytes) -> None:
    whole = b"".join(encode_frame(payload) for payload in payloads)
    cut = encode_frame(last)
    for length in range(1, len(cut)):
        decoder = FrameDecoder(64)
        assert frames_of(decoder, [whole + cut[:length]]) == payloads
        assert decoder.pending_bytes == length


@pytest.mark.parametrize("protocol", names.PROTOCOLS)
@pytest.mark.parametrize("sizes", [[10**6], [1], [7, 3, 64, 1]], ids=["whole", "bytewise", "odd"])
def test_a_stream_of_every_specimen(protocol: str, sizes: list[int]) -> None:
    specimens = list(SAMPLES[protocol].values())
    data = b"".join(encode_frame(canonical.encode(frame)) for frame in specimens)
    decoder = FrameDecoder(names.FRAME_LIMITS[protocol])
    payloads = frames_of(decoder, chunked(data, sizes))
    assert [canonical.decode(payload, names.FRAMES[protocol]) for payload in payloads] == specimens
    # trailing bytes behind a frame are the next frame; trailing bytes inside one are refused
    decoder.receive_data(b"\x00\x00")
    assert decoder.next_frame() is None
    assert decoder.pending_bytes == 2
    for payload in payloads:
        with pytest.raises(BadEncoding):
            canonical.decode(payload + b"\x00", names.FRAMES[protocol])
        for length in range(len(payload)):
            with pytest.raises(BadEncoding):
                canonical.decode(payload[:length], names.FRAMES[protocol])


def test_bytes_on_the_wire() -> None:
    assert encode_frame(b"abc") == b"\x00\x00\x00\x03abc"


def test_length_below_at_and_above_the_limit() -> None:
    for size in (9, 10):
        assert frames_of(FrameDecoder(10), [encode_frame(b"x" * size)]) == [b"x" * size]
    with pytest.raises(FrameTooLarge):
        FrameDecoder(10).receive_data(b"\x00\x00\x00\x0b")


def test_too_long_is_refused_before_the_body_and_nothing_is_kept() -> None:
    decoder = FrameDecoder(10)
    decoder.receive_data(b"\xff\xff\xff")
    with pytest.raises(FrameTooLarge):
        decoder.receive_data(b"\xff" + b"x" * 1000)
    assert decoder.pending_bytes == 0


def test_a_good_frame_in_front_of_a_bad_one_is_still_returned() -> None:
    decoder = FrameDecoder(10)
    decoder.receive_data(encode_frame(b"good") + b"\x00\x00\x00\x0b")
    assert decoder.next_frame() == b"good"
    with pytest.raises(FrameTooLarge):
        decoder.next_frame()


def test_once_broken_always_broken() -> None:
    decoder = FrameDecoder(10)
    with pytest.raises(BadEncoding):
        decoder.receive_data(b"\x00\x00\x00\x00")
    with pytest.raises(BadEncoding):
        decoder.receive_data(encode_frame(b"fine"))
    with pytest.raises(BadEncoding):
        decoder.next_frame()


@pytest.mark.parametrize("size", [0, limits.MAX_FRAME_BYTES + 1])
def test_what_nobody_would_accept_is_not_encoded(size: int) -> None:
    with pytest.raises(LocalProtocolError):
        encode_frame(bytes(size))


def test_the_largest_frame_passes() -> None:
    payload = bytes(limits.MAX_FRAME_BYTES)
    assert frames_of(FrameDecoder(limits.MAX_FRAME_BYTES), [encode_frame(payload)]) == [payload]


@given(st.lists(st.binary(max_size=20), max_size=12))
def test_noise_only_raises_remote_errors_and_is_bounded(chunks: list[bytes]) -> None:
    decoder = FrameDecoder(16)
    try:
        for frame in frames_of(decoder, chunks):
            assert 0 < len(frame) <= 16
    except RemoteProtocolError:
        assert decoder.pending_bytes == 0
    assert decoder.pending_bytes < limits.FRAME_HEADER_BYTES + 16
