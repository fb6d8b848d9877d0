"""Strict MessagePack: one value, one encoding, hard limits; bytes to a typed frozen Struct and back.

Three steps, each of which can only refuse: a scan of the shape (sizes, depth, no ext types, finite floats, nothing left
over) before anything is allocated, the typed strict decoding, and a re-encoding that must give the same bytes (shortest
forms, sorted and unique map keys, no omitted fields, no int where a float stands). Must not know frames, protocols or
streams.
"""

import functools
import math
import struct
from typing import Any, Final, TypeVar, overload

import msgspec

from protocol import limits
from protocol.errors import BadEncoding, BadFrame, LocalProtocolError

__all__ = ["decode", "encode"]

T = TypeVar("T")

_ENCODER: Final = msgspec.msgpack.Encoder(order="sorted")
_DOUBLE: Final = struct.Struct(">d")
_FIXED_BYTES: Final = {  # bytes that follow the first one
    0xC0: 0, 0xC2: 0, 0xC3: 0,  # nil, false, true
    0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8,  # integers
}
_STR_HEADS: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_BIN_HEADS: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_ARRAY_HEADS: Final = {0xDC: 2, 0xDD: 4}
_MAP_HEADS: Final = {0xDE: 2, 0xDF: 4}


def encode(obj: object) -> bytes:
    """The only encoding of obj.

    Raises LocalProtocolError when obj breaks its own type's bounds or the wire's limits: bounds are checked by decoding
    alone, so the encoding is read back before it may leave.
    """
    try:
        data = _ENCODER.encode(obj)
        _scan(data)
        if isinstance(obj, msgspec.Struct):
            data = _ENCODER.encode(_decoder(type(obj)).decode(data))  # also turns an int in a float field into a float
    except (BadEncoding, msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise LocalProtocolError(f"{type(obj).__name__} cannot go on the wire: {error}") from error
    return data


@overload
def decode(data: bytes, type_: type[T]) -> T: ...
@overload
def decode(data: bytes, type_: Any) -> Any: ...
def decode(data: bytes, type_: Any) -> Any:
    """The value of type_ that data encodes.

    Raises BadEncoding for bytes that are no canonical msgpack within the limits, BadFrame for a well-encoded value that
    is no type_. Size limit: MAX_FRAME_BYTES; the framing applies the smaller one of each protocol first.
    """
    _scan(data)
    try:
        value = _decoder(type_).decode(data)
    except msgspec.ValidationError as error:
        # the validator's own text may quote the peer's value, so only its path-free kind is kept
        raise BadFrame("well encoded, but not what this protocol expects") from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadEncoding("not msgpack, or a text that is no UTF-8") from error
    if _ENCODER.encode(value) != data:
        raise BadEncoding("not the one encoding of this value")
    return value


@functools.lru_cache(maxsize=128)
def _decoder(type_: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(type_, strict=True)


def _scan(data: bytes) -> None:
    """Walk the value once without building it. Iterative, so that depth costs no stack; raises BadEncoding."""
    size = len(data)
    if size > limits.MAX_FRAME_BYTES:
        raise BadEncoding("larger than any frame may be")
    open_items: list[int] = []  # values still missing in each open container, a map's keys and values counted singly
    open_maps: list[bool] = []
    at = values = 0
    while True:
        if at >= size:
            raise BadEncoding("truncated")
        head = data[at]
        at += 1
        values += 1
        if values > limits.MAX_VALUES:
            raise BadEncoding("too many values")
        is_text = 0xA0 <= head <= 0xBF or head in _STR_HEADS
        if open_maps and open_maps[-1] and open_items[-1] % 2 == 0 and not is_text:
            raise BadEncoding("a map key that is no text")
        items = -1
        if head <= 0x7F or head >= 0xE0:
            pass
        elif is_text:
            length, at = _length(data, at, head & 0x1F, _STR_HEADS.get(head, 0))
            at = _skip(at, length, limits.MAX_STR_BYTES, size)
        elif head in _BIN_HEADS:
            length, at = _length(data, at, 0, _BIN_HEADS[head])
            at = _skip(at, length, limits.MAX_BIN_BYTES, size)
        elif head <= 0x8F or head in _MAP_HEADS:
            items, at = _length(data, at, head & 0x0F, _MAP_HEADS.get(head, 0))
            if items > limits.MAX_MAP_ITEMS:
                raise BadEncoding("a map with too many entries")
            items *= 2
        elif head <= 0x9F or head in _ARRAY_HEADS:
            items, at = _length(data, at, head & 0x0F, _ARRAY_HEADS.get(head, 0))
            if items > limits.MAX_ARRAY_ITEMS:
                raise BadEncoding("an array with too many items")
        elif head == 0xCB:
            at = _skip(at, 8, 8, size)
            if not math.isfinite(_DOUBLE.unpack_from(data, at - 8)[0]):
                raise BadEncoding("a float that is no finite number")
        elif head in _FIXED_BYTES:
            at = _skip(at, _FIXED_BYTES[head], 8, size)
        else:  # ext types, float32 and the byte that msgpack never uses
            raise BadEncoding("a type that this protocol does not use")
        if items >= 0:
            if len(open_items) >= limits.MAX_DEPTH:
                raise BadEncoding("nested too deeply")
            open_items.append(items)
            open_maps.append(head <= 0x8F or head in _MAP_HEADS)
        elif open_items:
            open_items[-1] -= 1
        while open_items and open_items[-1] == 0:
            open_items.pop()
            open_maps.pop()
            if open_items:
                open_items[-1] -= 1
        if not open_items:
            break
    if at != size:
        raise BadEncoding("bytes after the value")


def _length(data: bytes, at: int, short: int, width: int) -> tuple[int, int]:
    """The length that a head announces (short form, or width bytes big-endian) and where its content starts."""
    if width == 0:
        return short, at
    if at + width > len(data):
        raise BadEncoding("truncated")
    return int.from_bytes(data[at : at + width], "big"), at + width


def _skip(at: int, length: int, limit: int, size: int) -> int:
    if length > limit:
        raise BadEncoding("a text or byte string above the limit")
    if at + length > size:
        raise BadEncoding("truncated")
    return at + length
