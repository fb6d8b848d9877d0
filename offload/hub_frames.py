"""What this node and its process that talks to a model hub say to each other.

Must not know how either does its part.
"""

import msgspec

__all__ = [
    "HubFailed", "HubFile", "HubGet", "HubGot", "HubList", "HubListing", "HubOrder", "HubProgress", "HubReport",
    "decode_order", "decode_report", "encode",
]


class HubFile(msgspec.Struct, frozen=True):
    """One file of a repository; sha256 in hex, empty when the hub does not say."""

    name: str
    size_bytes: int
    sha256: str = ""


class HubList(msgspec.Struct, frozen=True, tag="list"):
    """Order: what is in this repository?"""

    endpoint: str
    repository: str


class HubGet(msgspec.Struct, frozen=True, tag="get"):
    """Order: fetch one file behind what is already in target."""

    endpoint: str
    repository: str
    commit: str
    file: HubFile
    target: str


class HubListing(msgspec.Struct, frozen=True, tag="listing"):
    """Report: the files at one commit, and the licence that the repository names."""

    files: list[HubFile]
    commit: str
    licence: str


class HubProgress(msgspec.Struct, frozen=True, tag="progress"):
    """Report: so many bytes of the file are here."""

    done_bytes: int


class HubGot(msgspec.Struct, frozen=True, tag="got"):
    """Report: all of it is here."""


class HubFailed(msgspec.Struct, frozen=True, tag="failed"):
    """Report: it did not work; refused tells a no of the hub from a network that is down."""

    message: str
    refused: bool


HubOrder = HubList | HubGet
HubReport = HubListing | HubProgress | HubGot | HubFailed

_encoder = msgspec.msgpack.Encoder()
_orders: msgspec.msgpack.Decoder[HubOrder] = msgspec.msgpack.Decoder(HubOrder)
_reports: msgspec.msgpack.Decoder[HubReport] = msgspec.msgpack.Decoder(HubReport)


def encode(frame: HubOrder | HubReport) -> bytes:
    """The frame as msgpack."""
    return _encoder.encode(frame)


def decode_order(payload: bytes) -> HubOrder:
    """A frame to the process. Raises msgspec.DecodeError."""
    return _orders.decode(payload)


def decode_report(payload: bytes) -> HubReport:
    """A frame from it. Raises msgspec.DecodeError."""
    return _reports.decode(payload)
