"""The ledger: what left this device, to whom, why and approved by whom, in a chain that shows every change.

Each entry's bytes are hashed with a key together with the hash before it, so a flipped bit, a swapped or missing entry
is found at its number; a cut-off tail is found against a signed head kept in a second place. The exact outgoing texts
are sealed (XChaCha20-Poly1305) beside the entry. An entry is durable before its first byte leaves; a close record with
the byte count and digest of what really left is bound to it by a keyed hash. Must not know frames, trust or SQL.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import trio
from nacl.exceptions import CryptoError
from nacl.secret import Aead

from node.clock import Clock, to_ms
from node.privacy.errors import LedgerBroken
from node.privacy.ledger_head import HeadKeeper, SignedHead, Signer, sign_head, verify_head
from node.store.ledger import Head, LedgerRow, NewEntry

__all__ = ["CloseRecord", "Draft", "Entry", "EntryView", "Ledger", "LedgerRows", "Report", "texts_digest"]

_PAGE = 500
_KEY_BYTES = 32


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """What the chain covers, in canonical order; prev is the digest of the entry before, b"" for the first."""

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


class CloseRecord(msgspec.Struct, frozen=True, array_like=True):
    """How an entry ended. digest: blake2b-32 over every byte written for it, in order."""

    seq: int
    at_ms: int
    sent_bytes: int
    digest: bytes
    outcome: str


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


@dataclass(frozen=True, slots=True)
class EntryView:
    """One entry as the owner reads it. texts: None when the kept bytes were dropped; close: None while it is open."""

    entry: Entry
    digest: bytes
    texts: tuple[str, ...] | None
    close: CloseRecord | None


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of verify(). problems: in words, each naming its entry; empty when everything holds."""

    entries: int
    open_entries: int
    head_digest: bytes
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Nothing was changed."""
        return not self.problems


class LedgerRows(Protocol):
    """Where the rows live. Each call is one durable transaction."""

    async def append(
        self, make: Callable[[Head], NewEntry], also: Callable[[Any], None] | None,
    ) -> NewEntry:
        """Store what make says follows the head; also runs in the same transaction."""
        ...

    async def close(self, seq: int, closed: bytes, now_ms: int) -> None:
        """Keep the close record of an entry."""
        ...

    def close_in(self, tx: Any, seq: int, closed: bytes, now_ms: int) -> None:
        """close() inside somebody's transaction."""
        ...

    async def open_row(self, peer_id: str, request_id: str) -> LedgerRow | None:
        """The newest entry of this peer and request that is not closed."""
        ...

    async def open_rows(self) -> Sequence[LedgerRow]:
        """Every entry that is not closed."""
        ...

    async def get(self, seq: int) -> LedgerRow | None:
        """One row."""
        ...

    async def page(self, after_seq: int, limit: int) -> Sequence[LedgerRow]:
        """Rows in order."""
        ...

    async def newest(self, limit: int, peer_id: str | None, since_ms: int | None) -> Sequence[LedgerRow]:
        """Rows, newest first."""
        ...


class Ledger:
    """The chain over rows. One per node."""

    def __init__(
        self, rows: LedgerRows, heads: HeadKeeper, signer: Signer, *, chain_key: bytes, seal_key: bytes, clock: Clock,
    ) -> None:
        """chain_key, seal_key: two sub-keys of the device key, 32 bytes each."""
        if len(chain_key) != _KEY_BYTES or len(seal_key) != _KEY_BYTES or chain_key == seal_key:
            raise ValueError("the ledger needs two different keys of 32 bytes")
        self._rows = rows
        self._heads = heads
        self._signer = signer
        self._chain_key = chain_key
        self._box = Aead(seal_key)
        self._clock = clock
        self._head_turn = trio.Lock()
        self._head_seq = 0

    async def append(self, draft: Draft, *, also: Callable[[Any], None] | None = None) -> Head:
        """The entry's number and digest, once it is durable. also: run in the same transaction."""
        new = await self._rows.append(lambda head: self._next(head, draft), also)
        async with self._head_turn:
            await self._keep_head(new)
        return Head(new.seq, new.digest)

    async def close(self, place: Head, *, sent_bytes: int, digest: bytes, outcome: str) -> None:
        """Keep how the entry ended. Raises StoreConflict when it is closed already."""
        now_ms, closed = self._close_record(place, sent_bytes, digest, outcome)
        await self._rows.close(place.seq, closed, now_ms)

    def closing(self, place: Head, *, sent_bytes: int, digest: bytes, outcome: str) -> Callable[[Any], None]:
        """close() as a step of somebody's transaction: call the result with the connection."""
        now_ms, closed = self._close_record(place, sent_bytes, digest, outcome)
        return lambda tx: self._rows.close_in(tx, place.seq, closed, now_ms)

    async def find_open(self, peer_id: str, request_id: str) -> EntryView | None:
        """The newest open entry for a request, for a message that goes on after a restart."""
        row = await self._rows.open_row(peer_id, request_id)
        return None if row is None else self._view(row)

    async def close_crashed(self, *, purposes: frozenset[str]) -> int:
        """Close what a crash left open, for these purposes; how many. Byte count 0 stands for unknown here."""
        count = 0
        for row in await self._rows.open_rows():
            if row.purpose in purposes:
                await self.close(Head(row.seq, row.digest), sent_bytes=0, digest=b"", outcome="crashed")
                count += 1
        return count

    async def view(self, seq: int) -> EntryView | None:
        """One entry with its texts. Raises LedgerBroken when it does not decode."""
        row = await self._rows.get(seq)
        return None if row is None else self._view(row)

    async def newest(
        self, *, limit: int, peer_id: str | None = None, since_ms: int | None = None,
    ) -> list[EntryView]:
        """The newest entries first."""
        return [self._view(row) for row in await self._rows.newest(limit, peer_id, since_ms)]

    async def missing_at_end(self) -> int:
        """How many entries the signed head knows of and the rows do not: the database was emptied or replaced.

        Ask before the first append of a life: that moves the head.
        """
        head = await self._load_head([])
        newest = await self._rows.newest(1, None, None)
        return max(0, head.seq - (newest[0].seq if newest else 0)) if head is not None else 0

    async def verify(self) -> Report:
        """Walk the whole chain and compare it with the signed head. Changes nothing."""
        problems: list[str] = []
        seq, digest, open_entries = 0, b"", 0
        head = await self._load_head(problems)
        while page := await self._rows.page(seq, _PAGE):
            for row in page:
                problems += self._check(row, Head(seq, digest))
                if head is not None and row.seq == head.seq and not hmac.compare_digest(row.digest, head.digest):
                    problems.append(f"entry {row.seq}: not the entry that the signed head names")
                open_entries += row.closed is None
                seq, digest = row.seq, row.digest
        if head is not None and head.seq > seq:
            problems.append(f"entries {seq + 1} to {head.seq} are missing: the end was cut off")
        return Report(seq, open_entries, digest, tuple(problems))

    # -- one entry ----------------------------------------------------------------------------------------------------

    def _next(self, head: Head, draft: Draft) -> NewEntry:
        body = msgspec.msgpack.encode(draft.texts)
        entry = Entry(
            version=1, seq=head.seq + 1, prev=head.digest, at_ms=to_ms(self._clock.now()), peer_id=draft.peer_id,
            purpose=draft.purpose, level=draft.level, texts_sha256=texts_digest(draft.texts),
            text_count=len(draft.texts), substitutions=draft.substitutions, approved_by=draft.approved_by,
            request_id=draft.request_id,
        )
        raw = msgspec.msgpack.encode(entry)
        return NewEntry(
            seq=entry.seq, digest=self._link(raw), request_id=entry.request_id, peer_id=entry.peer_id,
            purpose=entry.purpose, at_ms=entry.at_ms, entry=raw,
            outgoing=bytes(self._box.encrypt(body, _sealed_for(entry.seq))),
        )

    def _check(self, row: LedgerRow, before: Head) -> list[str]:
        where = f"entry {row.seq}"
        if row.seq != before.seq + 1:
            return [f"{where}: entry {before.seq + 1} is missing before it"]
        try:
            entry = msgspec.msgpack.decode(row.entry, type=Entry)
        except msgspec.MsgspecError:
            return [f"{where}: its bytes are damaged"]
        found = []
        if not hmac.compare_digest(row.digest, self._link(row.entry)):
            found.append(f"{where}: it was changed")
        if entry.prev != before.digest or entry.seq != row.seq:
            found.append(f"{where}: it does not follow entry {before.seq}")
        columns = (row.request_id, row.peer_id, row.purpose, row.at_ms)
        if columns != (entry.request_id, entry.peer_id, entry.purpose, entry.at_ms):
            found.append(f"{where}: its columns differ from what the chain says")
        try:
            view = self._view(row)
        except LedgerBroken as error:
            return [*found, f"{where}: {error.text}"]
        if view.texts is not None and texts_digest(view.texts) != entry.texts_sha256:
            found.append(f"{where}: the kept texts are not those that left")
        return found

    def _view(self, row: LedgerRow) -> EntryView:
        try:
            entry = msgspec.msgpack.decode(row.entry, type=Entry)
            texts = None
            if row.outgoing is not None:
                body = self._box.decrypt(row.outgoing, _sealed_for(row.seq))
                texts = msgspec.msgpack.decode(body, type=tuple[str, ...])
            return EntryView(entry, row.digest, texts, self._closed(row))
        except (CryptoError, msgspec.MsgspecError, ValueError) as error:
            raise LedgerBroken("the kept texts or the close record were changed") from error

    def _closed(self, row: LedgerRow) -> CloseRecord | None:
        if row.closed is None:
            return None
        mac, raw = row.closed[:_KEY_BYTES], row.closed[_KEY_BYTES:]
        if not hmac.compare_digest(mac, self._close_mac(row.digest, raw)):
            raise ValueError("the close record does not belong to this entry")
        return msgspec.msgpack.decode(raw, type=CloseRecord)

    def _close_record(self, place: Head, sent_bytes: int, digest: bytes, outcome: str) -> tuple[int, bytes]:
        now_ms = to_ms(self._clock.now())
        raw = msgspec.msgpack.encode(CloseRecord(place.seq, now_ms, sent_bytes, digest, outcome))
        return now_ms, self._close_mac(place.digest, raw) + raw

    def _link(self, raw: bytes) -> bytes:
        return hashlib.blake2b(raw, digest_size=32, key=self._chain_key, person=b"kith-ledger-1").digest()

    def _close_mac(self, digest: bytes, raw: bytes) -> bytes:
        return hashlib.blake2b(digest + raw, digest_size=32, key=self._chain_key, person=b"kith-close-1").digest()

    async def _keep_head(self, new: NewEntry) -> None:
        if new.seq > self._head_seq:
            await self._heads.store(sign_head(self._signer, new.seq, new.digest))
            self._head_seq = new.seq

    async def _load_head(self, problems: list[str]) -> SignedHead | None:
        stored = await self._heads.load()
        if stored is None:
            if await self._rows.page(0, 1):
                problems.append("the signed head is missing: a cut-off end could not be noticed")
            return None
        head = verify_head(self._signer.public_key, stored)
        if head is None:
            problems.append("the signed head was changed or is another device's")
        return head


def texts_digest(texts: Sequence[str]) -> bytes:
    """SHA-256 over the msgpack encoding of the outgoing texts."""
    return hashlib.sha256(msgspec.msgpack.encode(tuple(texts))).digest()


def _sealed_for(seq: int) -> bytes:
    return b"kith-ledger-texts|%d" % seq
