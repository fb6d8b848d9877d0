"""The pipe's frames: any cut of the bytes gives the same payloads, and no length prefix makes us hold too much."""

import os
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload.child.errors import FrameTooLarge
from offload.child.frames import BlockingPipe, FrameSplitter, join_frame


def test_a_frame_is_a_little_endian_length_and_the_payload() -> None:
    assert join_frame(b"kith") == b"\x04\x00\x00\x00kith"
    assert join_frame(b"") == b"\x00\x00\x00\x00"


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(min_value=1, max_value=17), st.binary(max_size=3))
def test_every_cut_gives_the_same_payloads(payloads: list[bytes], step: int, trailing: bytes) -> None:
    data = b"".join(join_frame(payload) for payload in payloads) + trailing
    whole, pieces = FrameSplitter(), FrameSplitter()
    assert list(whole.feed(data)) == payloads
    got: list[bytes] = []
    for start in range(0, len(data), step):
        got += pieces.feed(data[start:start + step])
    assert got == payloads
    assert whole.pending_bytes == pieces.pending_bytes == len(trailing)


@given(st.binary(max_size=400))
def test_any_bytes_give_frames_or_a_refusal(data: bytes) -> None:
    splitter = FrameSplitter(limit_bytes=64)
    try:
        for payload in splitter.feed(data):
            assert len(payload) <= 64
    except FrameTooLarge:
        return
    assert splitter.pending_bytes < 64 + 4


def test_a_length_above_the_limit_is_refused_before_its_body_is_read() -> None:
    splitter = FrameSplitter(limit_bytes=10)
    with pytest.raises(FrameTooLarge):
        list(splitter.feed(struct.pack("<I", 11)))
    assert list(FrameSplitter(limit_bytes=10).feed(join_frame(b"x" * 10))) == [b"x" * 10]
    with pytest.raises(FrameTooLarge):
        join_frame(b"x" * 11, limit_bytes=10)


def test_the_childs_end_knows_whether_more_waits() -> None:
    to_child, from_us = os.pipe()
    pipe = BlockingPipe(to_child)
    assert not pipe.more_waits()
    os.write(from_us, join_frame(b"one")[:3])
    assert pipe.more_waits()
    os.write(from_us, join_frame(b"one")[3:])
    payloads = pipe.read_all()
    assert next(payloads) == b"one"
    assert not pipe.more_waits()
    os.write(from_us, join_frame(b"two") + join_frame(b"three") + join_frame(b"four")[:5])      # come in one read
    assert next(payloads) == b"two"
    assert pipe.more_waits()
    assert next(payloads) == b"three"
    assert pipe.more_waits()        # a part of one
    os.write(from_us, join_frame(b"four")[5:])
    assert next(payloads) == b"four"
    assert not pipe.more_waits()
    os.close(from_us)
    assert pipe.more_waits()
    assert list(payloads) == []
    os.close(to_child)


def test_the_childs_end_reads_and_writes_whole_frames() -> None:
    to_child, from_us = os.pipe()
    from_child, to_us = os.pipe()
    reader, writer = BlockingPipe(to_child), BlockingPipe(to_us)
    big = os.urandom(300_000)
    sender = threading.Thread(target=lambda: (os.write(from_us, join_frame(b"one")), BlockingPipe(from_us).write(big),
                                              os.close(from_us)))
    sender.start()
    assert list(reader.read_all()) == [b"one", big]
    sender.join()
    writer.write(b"two")
    assert os.read(from_child, 100) == join_frame(b"two")
    for fd in (to_child, from_child, to_us):
        os.close(fd)
