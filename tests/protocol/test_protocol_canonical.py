"""Strict MessagePack against hand-made bytes, against the msgpack library, and against noise."""

import math
from typing import Any

import msgpack
import msgspec
import pytest
from frame_samples import SAMPLES
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol import canonical, limits, names
from protocol.errors import BadEncoding, BadFrame, LocalProtocolError
from protocol.fields import Frame
from protocol.frames.link import Beat, LinkFrame

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40)
    | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=6), inner, max_size=20),
    max_leaves=30,
)


def sorted_maps(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: sorted_maps(value[key]) for key in sorted(value)}
    return [sorted_maps(item) for item in value] if isinstance(value, list) else value


@given(VALUES)
def test_encoding_is_that_of_msgpack_with_sorted_keys(value: Any) -> None:
    data = canonical.encode(value)
    assert data == msgpack.packb(sorted_maps(value), use_bin_type=True)
    assert canonical.decode(data, object) == value


def accepted_by_msgpack(data: bytes) -> bool:
    """The reference: msgpack reads it whole, and writes the same bytes again with its keys sorted."""

    def pairs(items: list[tuple[Any, Any]]) -> dict[Any, Any]:
        keys = [key for key, _ in items]
        if not all(isinstance(key, str) for key in keys) or keys != sorted(set(keys)):
            raise ValueError
        return dict(items)

    def no_ext(code: int, body: bytes) -> Any:
        raise ValueError(code, body)

    try:
        value = msgpack.unpackb(
            data, raw=False, strict_map_key=False, object_pairs_hook=pairs, ext_hook=no_ext, max_array_len=2**15
        )
        again = msgpack.packb(value, use_bin_type=True)
    except (ValueError, msgpack.UnpackException, UnicodeError, TypeError):
        return False
    has_timestamp = "Timestamp(" in repr(value)
    is_finite = "nan" not in repr(value) and "inf" not in repr(value)
    return again == data and not has_timestamp and is_finite


@settings(max_examples=1500)
@given(st.binary(max_size=24))
def test_noise_is_judged_like_msgpack_judges_it(data: bytes) -> None:
    try:
        canonical.decode(data, object)
        ours = True
    except BadEncoding:
        ours = False
    assert ours == accepted_by_msgpack(data)


@given(VALUES, st.integers(0, 2**31), st.integers(1, 255))
def test_one_changed_byte_is_judged_like_msgpack_judges_it(value: Any, place: int, flip: int) -> None:
    data = bytearray(canonical.encode(value))
    data[place % len(data)] ^= flip
    try:
        again = canonical.decode(bytes(data), object)
    except BadEncoding:
        assert not accepted_by_msgpack(bytes(data))
    else:
        assert canonical.encode(again) == bytes(data)


NOT_CANONICAL = {
    "nothing": "",
    "trailing byte": "0100",
    "second value": "c0c0",
    "int in uint8 form": "cc01",
    "int in uint16 form": "cd00ff",
    "int in uint32 form": "ce0000ffff",
    "int in uint64 form": "cf00000000ffffffff",
    "positive int in signed form": "d001",
    "negative int in int16 form": "d1ff80",
    "negative int in int32 form": "d2ffff8000",
    "negative int in int64 form": "d3ffffffff80000000",
    "short text in str8 form": "d90161",
    "text in str16 form": "da000161",
    "text in str32 form": "db0000000161",
    "bytes in bin16 form": "c5000161",
    "bytes in bin32 form": "c60000000161",
    "array in array16 form": "dc000101",
    "array in array32 form": "dd0000000101",
    "map in map16 form": "de0001a16101",
    "map in map32 form": "df00000001a16101",
    "float32": "ca3f800000",
    "nan": "cb7ff8000000000000",
    "infinity": "cb7ff0000000000000",
    "minus infinity": "cbfff0000000000000",
    "fixext": "d4010a",
    "ext8": "c7010141",
    "timestamp": "d6ff00000000",
    "the unused byte": "c1",
    "duplicate key": "82a16101a16102",
    "keys out of order": "82a16201a16101",
    "a number as key": "810101",
    "bytes as key": "81c4016101",
    "an array as key": "819001",
    "nil as key": "81c001",
    "text that is no UTF-8": "a1ff",
    "text with an encoded surrogate": "a3eda080",
    "key that is no UTF-8": "81a1ff01",
    "truncated text": "a261",
    "truncated str16 length": "da00",
    "truncated bytes": "c40261",
    "truncated int": "cd01",
    "truncated float": "cb3ff0",
    "truncated array": "9201",
    "truncated map": "81a161",
    "huge text": "dbffffffff",
    "huge bytes": "c6ffffffff",
    "huge array": "ddffffffff",
    "huge map": "dfffffffff",
}


@pytest.mark.parametrize("name", NOT_CANONICAL)
def test_refused(name: str) -> None:
    with pytest.raises(BadEncoding):
        canonical.decode(bytes.fromhex(NOT_CANONICAL[name]), object)


@pytest.mark.parametrize("text", ["", "a", "ż", "☕", "\x00", "\U0010ffff", "\u00e9", "e\u0301"])
def test_texts_stay_as_they_are(text: str) -> None:
    assert canonical.decode(canonical.encode(text), str) == text


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\xc0"


def test_depth_at_and_above_the_limit() -> None:
    canonical.decode(nested(limits.MAX_DEPTH), object)
    with pytest.raises(BadEncoding, match="deep"):
        canonical.decode(nested(limits.MAX_DEPTH + 1), object)


@pytest.mark.parametrize("byte", [b"\x91", b"\x81\xa1a", b"\xdc\x00\x01"])
def test_deep_nesting_never_exhausts_the_stack(byte: bytes) -> None:
    for depth in (100, 1_000, 100_000):
        with pytest.raises(BadEncoding):
            canonical.decode(byte * depth + b"\xc0", object)


def test_nested_array_claims_allocate_nothing() -> None:
    # each header claims 32k items; a parser that trusts the first sixteen would reserve 4 MB for 80 bytes
    with pytest.raises(BadEncoding):
        canonical.decode(b"\xdd\x00\x00\x80\x00" * 16, object)


def test_string_bin_array_map_limits() -> None:
    at_limit: list[tuple[object, object]] = [
        ("x" * limits.MAX_STR_BYTES, "x" * (limits.MAX_STR_BYTES + 1)),
        (b"x" * limits.MAX_BIN_BYTES, b"x" * (limits.MAX_BIN_BYTES + 1)),
        ([0] * limits.MAX_ARRAY_ITEMS, [0] * (limits.MAX_ARRAY_ITEMS + 1)),
        ({f"{n:03}": n for n in range(limits.MAX_MAP_ITEMS)}, {f"{n:03}": n for n in range(limits.MAX_MAP_ITEMS + 1)}),
    ]
    for allowed, too_much in at_limit:
        data = msgpack.packb(allowed, use_bin_type=True)
        assert canonical.encode(allowed) == data
        assert canonical.decode(data, object) == allowed
        with pytest.raises(BadEncoding):
            canonical.decode(msgpack.packb(too_much, use_bin_type=True), object)
        with pytest.raises(LocalProtocolError):
            canonical.encode(too_much)


def test_number_of_values_at_and_above_the_limit() -> None:
    # one outer array and eight inner ones, together exactly MAX_VALUES values
    inner, rest = divmod(limits.MAX_VALUES - 9, 8)
    exact = [[0] * inner for _ in range(7)] + [[0] * (inner + rest)]
    assert canonical.decode(msgpack.packb(exact), object) == exact
    exact[0].append(0)
    with pytest.raises(BadEncoding, match="many values"):
        canonical.decode(msgpack.packb(exact), object)


def test_whole_size_limit() -> None:
    piece = b"x" * limits.MAX_BIN_BYTES
    head = len(canonical.encode([piece] * 7)) + 3  # and the head of one more byte string
    exact = [piece] * 7 + [b"x" * (limits.MAX_FRAME_BYTES - head)]
    data = canonical.encode(exact)
    assert len(data) == limits.MAX_FRAME_BYTES
    assert canonical.decode(data, object) == exact
    with pytest.raises(BadEncoding, match="larger"):
        canonical.decode(data + b"\x00", object)


class Sample(Frame, frozen=True):
    number: int
    share: float
    name: str


@pytest.mark.parametrize(
    "value",
    [[True, 1.0, "a"], ["1", 1.0, "a"], [1, "1.0", "a"], [1, 1.0, b"a"], [1, 1.0], [1, 1.0, "a", None], [1, 1.0, None]],
)
def test_types_are_strict(value: list[object]) -> None:
    with pytest.raises(BadFrame):
        canonical.decode(msgpack.packb(value), Sample)


def test_an_int_in_a_float_field_has_no_second_encoding() -> None:
    with pytest.raises(BadEncoding):
        canonical.decode(msgpack.packb([1, 1, "a"]), Sample)
    assert canonical.encode(Sample(1, 1, "a")) == canonical.encode(Sample(1, 1.0, "a"))


@pytest.mark.parametrize(
    "value",
    [
        Beat(-1), Beat(2**32), Beat(True), Beat("1"), Beat(None),
        Sample(1, math.nan, "a"), Sample(1, math.inf, "a"), Sample(1, 1.0, "\ud800"), Sample(2**64, 1.0, "a"),
        object(), {1: 2}, {"a": {2: 3}}, math.nan, [["x" * 300_000]],
    ],
)  # fmt: skip
def test_what_breaks_its_own_bounds_is_not_sent(value: object) -> None:
    with pytest.raises(LocalProtocolError):
        canonical.encode(value)


def test_a_value_that_contains_itself_is_not_sent() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(LocalProtocolError):
        canonical.encode(endless)


def test_messages_of_errors_carry_none_of_the_peers_words() -> None:
    data = msgpack.packb([1, "secret-words", "secret-words"])
    with pytest.raises(BadFrame) as caught:
        canonical.decode(data, Sample)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("protocol", names.PROTOCOLS)
def test_every_specimen_decodes_by_its_tag(protocol: str) -> None:
    for frame in SAMPLES[protocol].values():
        again = canonical.decode(canonical.encode(frame), names.FRAMES[protocol])
        assert again == frame
        assert type(again) is type(frame)


@pytest.mark.parametrize("protocol", names.PROTOCOLS)
def test_specimens_changed_by_hand_are_refused(protocol: str) -> None:
    union = names.FRAMES[protocol]
    for frame in SAMPLES[protocol].values():
        fields = msgpack.unpackb(canonical.encode(frame))
        changed = ([*fields, None], [99, *fields[1:]], [str(fields[0]), *fields[1:]], fields[1:], {})
        for wrong in changed:
            with pytest.raises(BadFrame):
                canonical.decode(msgpack.packb(wrong), union)
        for wrong in (fields[:-1], fields[:1]):  # leaving out a field that has a default is a second encoding
            with pytest.raises((BadFrame, BadEncoding)):
                canonical.decode(msgpack.packb(wrong), union)


@settings(max_examples=400)
@given(st.sampled_from(names.PROTOCOLS), st.data())
def test_damaged_frames_raise_only_the_two_errors(protocol: str, data: st.DataObject) -> None:
    frame = data.draw(st.sampled_from(list(SAMPLES[protocol].values())))
    raw = bytearray(canonical.encode(frame))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        again = canonical.decode(bytes(raw), names.FRAMES[protocol])
    except (BadEncoding, BadFrame):
        return
    assert canonical.encode(again) == bytes(raw)


@settings(max_examples=400)
@given(st.binary(max_size=64))
def test_noise_raises_only_the_two_errors(data: bytes) -> None:
    try:
        frame = canonical.decode(data, LinkFrame)
    except (BadEncoding, BadFrame):
        return
    assert canonical.encode(frame) == data


def test_negative_control_a_lenient_decoder_takes_what_ours_refuses() -> None:
    taken = 0
    for text in NOT_CANONICAL.values():
        try:
            msgspec.msgpack.decode(bytes.fromhex(text))
            taken += 1
        except (msgspec.DecodeError, UnicodeError, TypeError):
            pass
    assert taken >= 20
