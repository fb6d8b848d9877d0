"""The records of the ledger: what an entry, its end, its dropped text and a receipt for it say, and how they stand.

Pure data and pure rules. Must not know keys, rows or how anything is stored.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

__all__ = [
    "CloseRecord", "Draft", "DropRecord", "Entry", "EntryView", "ReceiptView", "Report", "Standing", "Stretch",
    "body_digest", "standing", "texts_digest",
]

_RECEIPTED = frozenset({"infer", "query", "mail", "answer"})

Stretch = tuple[int, bytes]
"""Bytes that left as one piece, which the peer signs for as one: their number and their blake2b-32."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """What the chain covers, in canonical order; prev is the digest of the entry before, b"" for the first.

    Version 2 added conversation: whose text it holds, so that deleting the conversation finds it.
    """

    version: int
    seq: int
    prev: bytes
    at_ms: int
    peer_id: str
    purpose: str
    level: str
    texts_sha256: bytes
    text_count: int
    substitutions: int
    approved_by: str
    request_id: str
    conversation: str = ""


class CloseRecord(msgspec.Struct, frozen=True, array_like=True):
    """How an entry ended. digest: blake2b-32 over every byte written for it, in order.

    stretches: the distinct pieces among them; a message sent three times is three times the bytes and one piece.
    bodies_kept: how many of the pieces' exact bytes are sealed beside the entry.
    """

    seq: int
    at_ms: int
    sent_bytes: int
    digest: bytes
    outcome: str
    stretches: tuple[Stretch, ...] = ()
    bodies_kept: int = 0


class DropRecord(msgspec.Struct, frozen=True, array_like=True):
    """When and why the kept texts and bytes of an entry were erased: "age" or "deleted"."""

    at_ms: int
    why: str


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry before it has a place in the chain."""

    peer_id: str
    purpose: str
    level: str
    request_id: str
    texts: tuple[str, ...]
    substitutions: int
    approved_by: str
    conversation: str = ""


@dataclass(frozen=True, slots=True)
class ReceiptView:
    """What the peer signed: it received this many bytes with this digest."""

    size_bytes: int
    digest: bytes
    signature: bytes
    received_ms: int


class Standing(StrEnum):
    """What the peer's side says of an entry."""

    NOT_DUE = "no receipt due"     # nobody there who signs: a model hub, a model file, another program, the own test
    OPEN = "open"                  # still running
    NOTHING = "nothing sent"       # no byte left
    UNRECEIPTED = "unreceipted"    # bytes left and the peer signed for none
    RECEIPTED = "receipted"        # the peer signed for exactly what left
    UNCOUNTED = "uncounted"        # the peer signed, but a crash took this side's own count
    MISMATCH = "mismatch"          # the peer signed for other bytes than those that left


@dataclass(frozen=True, slots=True)
class EntryView:
    """One entry as the owner reads it. texts, bodies: None when they were dropped or not kept; close: None while it is
    open. bodies: the exact bytes of each stretch, length prefixes included."""

    entry: Entry
    digest: bytes
    texts: tuple[str, ...] | None
    close: CloseRecord | None
    bodies: tuple[bytes, ...] | None = None
    dropped: DropRecord | None = None
    receipts: tuple[ReceiptView, ...] = ()
    signs: bool = True
    """False for what no paired node is behind: the node's own test, an engine of another program."""

    @property
    def standing(self) -> Standing:
        """What the peer's receipts say of it."""
        due = self.signs and self.entry.purpose in _RECEIPTED
        return standing(self.close, self.receipts) if due else Standing.NOT_DUE


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of verify(). problems: in words, each naming its entry; empty when everything holds. disputes: the
    same for receipts that speak of other bytes. first: the first entry that is still there; those before are covered by
    a signed checkpoint."""

    entries: int
    open_entries: int
    head_digest: bytes
    problems: tuple[str, ...]
    disputes: tuple[str, ...] = ()
    first: int = 1
    standings: dict[Standing, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Nothing was changed here, and no peer contradicts."""
        return not self.problems and not self.disputes


def standing(close: CloseRecord | None, receipts: Sequence[ReceiptView]) -> Standing:
    """How the peer's word and ours fit. One receipt for other bytes outweighs any number of fitting ones."""
    if close is None:
        return Standing.OPEN
    if receipts:
        sent = set(close.stretches)
        if all((one.size_bytes, one.digest) in sent for one in receipts):
            return Standing.RECEIPTED
        return Standing.MISMATCH if sent else Standing.UNCOUNTED
    return Standing.UNRECEIPTED if close.sent_bytes else Standing.NOTHING


def texts_digest(texts: Sequence[str]) -> bytes:
    """SHA-256 over the msgpack encoding of the outgoing texts."""
    return hashlib.sha256(msgspec.msgpack.encode(tuple(texts))).digest()


def body_digest(body: bytes) -> bytes:
    """The digest of a stretch, as receipts carry it."""
    return hashlib.blake2b(body, digest_size=32).digest()
