"""What the node and its two scan workers say to each other over their pipes. Must not know who sends, or how."""

import msgspec

__all__ = [
    "Detect", "Embed", "Order", "ScanReady", "ScanRefused", "ScanReport", "Spans", "Vectors", "decode_order",
    "decode_report", "encode",
]


class Embed(msgspec.Struct, frozen=True, tag="embed"):
    """Order: vectors of these texts."""

    number: int
    texts: list[str]


class Detect(msgspec.Struct, frozen=True, tag="detect"):
    """Order: what may be personal in these texts. foreign: for each, whether it is mostly not English."""

    number: int
    texts: list[str]
    foreign: list[bool]


class ScanReady(msgspec.Struct, frozen=True, tag="ready"):
    """Report: loaded. nets: what it can do; dimensions: of its vectors, 0 for none; box, probe: as for the engine."""

    nets: list[str]
    dimensions: int
    box: dict[str, str]
    probe: dict[str, str]


class Vectors(msgspec.Struct, frozen=True, tag="vectors"):
    """Report: the vectors as little-endian 32-bit floats one after another."""

    number: int
    data: bytes


class Spans(msgspec.Struct, frozen=True, tag="spans"):
    """Report: for each text, (start, end, type) of what may be personal, in any order; they may overlap."""

    number: int
    spans: list[list[tuple[int, int, str]]]


class ScanRefused(msgspec.Struct, frozen=True, tag="refused"):
    """Report: this order failed. Says which kind of error, never a text."""

    number: int
    reason: str


Order = Embed | Detect
ScanReport = ScanReady | Vectors | Spans | ScanRefused

_encoder = msgspec.msgpack.Encoder()
_orders: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)
_reports: msgspec.msgpack.Decoder[ScanReport] = msgspec.msgpack.Decoder(ScanReport)


def encode(frame: Order | ScanReport) -> bytes:
    """The frame as msgpack. Raises UnicodeEncodeError for a text that is none (half of a surrogate pair)."""
    return _encoder.encode(frame)


def decode_order(payload: bytes) -> Order:
    """A frame to a worker. Raises msgspec.DecodeError."""
    return _orders.decode(payload)


def decode_report(payload: bytes) -> ScanReport:
    """A frame from a worker. Raises msgspec.DecodeError."""
    return _reports.decode(payload)
