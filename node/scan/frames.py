"""What the node and its scan worker say to each other over their pipe. Must not know who sends, or how."""

import msgspec

__all__ = [
    "Embed", "Order", "ScanReady", "ScanRefused", "ScanReport", "Vectors", "decode_order", "decode_report", "encode",
]


class Embed(msgspec.Struct, frozen=True, tag="embed"):
    """Order: vectors of these texts."""

    number: int
    texts: list[str]


class ScanReady(msgspec.Struct, frozen=True, tag="ready"):
    """Report: loaded. nets: what it can do; box and probe as for the engine's worker."""

    nets: list[str]
    dimensions: int
    box: dict[str, str]
    probe: dict[str, str]


class Vectors(msgspec.Struct, frozen=True, tag="vectors"):
    """Report: the vectors as little-endian 32-bit floats one after another."""

    number: int
    data: bytes


class ScanRefused(msgspec.Struct, frozen=True, tag="refused"):
    """Report: this order failed. Says which kind of error, never a text."""

    number: int
    reason: str


Order = Embed
ScanReport = ScanReady | Vectors | ScanRefused

_encoder = msgspec.msgpack.Encoder()
_orders: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)
_reports: msgspec.msgpack.Decoder[ScanReport] = msgspec.msgpack.Decoder(ScanReport)


def encode(frame: Order | ScanReport) -> bytes:
    """The frame as msgpack."""
    return _encoder.encode(frame)


def decode_order(payload: bytes) -> Order:
    """A frame to the worker. Raises msgspec.DecodeError."""
    return _orders.decode(payload)


def decode_report(payload: bytes) -> ScanReport:
    """A frame from the worker. Raises msgspec.DecodeError."""
    return _reports.decode(payload)
