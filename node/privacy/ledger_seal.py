"""The ledger's two keys at work: links of the chain, keyed marks on what may change later, seals around kept texts.

Must not know rows, heads or what an entry means.
"""

import hashlib
import hmac
from typing import TypeVar

import msgspec
from nacl.exceptions import CryptoError
from nacl.secret import Aead

from node.privacy.errors import LedgerBroken
from node.privacy.ledger_records import CloseRecord, DropRecord, Entry, EntryView, ReceiptView
from node.store.ledger import LedgerRow, ReceiptRow

__all__ = ["LedgerSeal"]

_KEY_BYTES = 32
_TEXTS, _BODIES = b"kith-ledger-texts", b"kith-ledger-bytes"

T = TypeVar("T")


class LedgerSeal:
    """Makes and opens what stands in a ledger row."""

    def __init__(self, chain_key: bytes, seal_key: bytes, never_sign: frozenset[str] = frozenset()) -> None:
        """Two different sub-keys of 32 bytes. never_sign: ids that no paired node is behind. Raises ValueError for
        anything else."""
        if len(chain_key) != _KEY_BYTES or len(seal_key) != _KEY_BYTES or chain_key == seal_key:
            raise ValueError("the ledger needs two different keys of 32 bytes")
        self._chain_key = chain_key
        self._never_sign = never_sign
        self._box = Aead(seal_key)

    def link(self, raw: bytes) -> bytes:
        """The digest of an entry; raw holds the digest before it."""
        return self._keyed(raw, b"kith-ledger-1")

    def follows(self, row: LedgerRow) -> bool:
        """Whether the row's digest is that of its bytes."""
        return hmac.compare_digest(row.digest, self.link(row.entry))

    def seal_texts(self, seq: int, texts: tuple[str, ...]) -> bytes:
        """The outgoing texts, readable with the seal key only and for this entry only."""
        return self._seal(_TEXTS, seq, texts)

    def seal_bodies(self, seq: int, bodies: tuple[bytes, ...]) -> bytes | None:
        """The exact bytes that left, likewise; None for none."""
        return self._seal(_BODIES, seq, bodies) if bodies else None

    def mark_close(self, digest: bytes, record: CloseRecord) -> bytes:
        """The close record, bound to its entry."""
        return self._mark(b"kith-close-1", digest, record)

    def mark_drop(self, digest: bytes, record: DropRecord) -> bytes:
        """The note that an entry's kept text was erased, bound to its entry."""
        return self._mark(b"kith-dropped-1", digest, record)

    def view(self, row: LedgerRow, receipts: tuple[ReceiptRow, ...] = ()) -> EntryView:
        """The row in clear. Raises LedgerBroken when anything in it does not belong there."""
        try:
            entry = msgspec.msgpack.decode(row.entry, type=Entry)
            return EntryView(
                entry, row.digest,
                self._open(_TEXTS, row.seq, row.outgoing, tuple[str, ...]),
                self._marked(b"kith-close-1", row, row.closed, CloseRecord),
                self._open(_BODIES, row.seq, row.frames, tuple[bytes, ...]),
                self._marked(b"kith-dropped-1", row, row.dropped, DropRecord),
                tuple(ReceiptView(one.size_bytes, one.digest, one.signature, one.received_ms) for one in receipts),
                signs=entry.peer_id not in self._never_sign,
            )
        except (CryptoError, msgspec.MsgspecError, ValueError) as error:
            raise LedgerBroken("the kept texts or the close record were changed") from error

    def _seal(self, what: bytes, seq: int, value: object) -> bytes:
        return bytes(self._box.encrypt(msgspec.msgpack.encode(value), b"%s|%d" % (what, seq)))

    def _open(self, what: bytes, seq: int, sealed: bytes | None, kind: type[T]) -> T | None:
        if sealed is None:
            return None
        return msgspec.msgpack.decode(self._box.decrypt(sealed, b"%s|%d" % (what, seq)), type=kind)

    def _mark(self, what: bytes, digest: bytes, record: msgspec.Struct) -> bytes:
        raw = msgspec.msgpack.encode(record)
        return self._keyed(digest + raw, what) + raw

    def _marked(self, what: bytes, row: LedgerRow, marked: bytes | None, kind: type[T]) -> T | None:
        if marked is None:
            return None
        mac, raw = marked[:_KEY_BYTES], marked[_KEY_BYTES:]
        if not hmac.compare_digest(mac, self._keyed(row.digest + raw, what)):
            raise ValueError("the record does not belong to this entry")
        return msgspec.msgpack.decode(raw, type=kind)

    def _keyed(self, data: bytes, person: bytes) -> bytes:
        return hashlib.blake2b(data, digest_size=32, key=self._chain_key, person=person).digest()
