"""The ledger: what left this device, to whom, why and approved by whom, in a chain that shows every change.

Each entry's bytes are hashed with a key together with the hash before it, so a flipped bit, a swapped or missing entry
is found at its number; a cut-off tail is found against a signed head kept in a second place. The exact outgoing texts
and bytes are sealed (XChaCha20-Poly1305) beside the entry. An entry is durable before its first byte leaves; a close
record with the byte count and digest of what really left is bound to it by a keyed hash; the peer's countersignature
of what it received stands beside it. Must not know frames, trust or SQL.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
import trio

from node.clock import Clock, to_ms
from node.privacy.ledger_check import ChainCheck
from node.privacy.ledger_head import (
    CHECKPOINT,
    HeadKeeper,
    SignedHead,
    Signer,
    sign_head,
    verify_head,
)
from node.privacy.ledger_records import (
    CloseRecord,
    Draft,
    DropRecord,
    Entry,
    EntryView,
    ReceiptView,
    Report,
    Stretch,
    texts_digest,
)
from node.privacy.ledger_seal import LedgerSeal
from node.store.ledger import Head, LedgerRow, NewEntry, ReceiptRow
from protocol.errors import LocalProtocolError, RemoteProtocolError
from protocol.frames.receipt import Receipt
from protocol.receipts import is_genuine

__all__ = ["CloseRecord", "Draft", "Entry", "EntryView", "Ledger", "LedgerRows", "Report", "texts_digest"]

_PAGE = 500
_VERSION = 2


class LedgerRows(Protocol):
    """Where the rows live. Each call is one durable transaction."""

    async def append(
        self, make: Callable[[Head], NewEntry], also: Callable[[Any], None] | None,
    ) -> NewEntry:
        """Store what make says follows the head; also runs in the same transaction."""
        ...

    async def close(self, seq: int, closed: bytes, now_ms: int, frames: bytes | None) -> None:
        """Keep the close record of an entry, and the sealed bytes."""
        ...

    def close_in(self, tx: Any, seq: int, closed: bytes, now_ms: int, frames: bytes | None) -> None:
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

    async def receipts(self, first_seq: int, last_seq: int) -> Sequence[ReceiptRow]:
        """Receipts of these entries."""
        ...

    async def add_receipt(self, peer_id: str, receipt: Receipt, now_ms: int) -> bool:
        """Keep one with the entry it belongs to; False when there is none, or it is known."""
        ...

    async def kept_before(self, before_ms: int, limit: int) -> Sequence[LedgerRow]:
        """Closed entries older than this whose texts are still kept."""
        ...

    async def kept_of(self, conversation: str) -> Sequence[LedgerRow]:
        """Entries of a conversation whose texts are still kept."""
        ...

    async def drop_kept(self, notes: Sequence[tuple[int, bytes]]) -> int:
        """Erase texts and bytes, leave the notes."""
        ...

    async def prunable(self, before_ms: int) -> Head | None:
        """The last entry of the beginning that may go."""
        ...

    async def prune(self, upto: Head, record: bytes) -> int:
        """Remove up to it, keep the record."""
        ...

    async def checkpoint(self) -> bytes | None:
        """The record that stands for removed entries."""
        ...


class Ledger:
    """The chain over rows. One per node."""

    def __init__(
        self, rows: LedgerRows, heads: HeadKeeper, signer: Signer, *, chain_key: bytes, seal_key: bytes, clock: Clock,
        own_id: str = "", never_sign: frozenset[str] = frozenset(),
    ) -> None:
        """chain_key, seal_key: two sub-keys of the device key, 32 bytes each. own_id: whose receipts these are.
        never_sign: ids that no paired node is behind, so that no receipt of theirs is missing."""
        self._seal = LedgerSeal(chain_key, seal_key, never_sign)
        self._rows = rows
        self._heads = heads
        self._signer = signer
        self._clock = clock
        self._own_id = own_id
        self._head_turn = trio.Lock()
        self._head_seq = 0
        self._newest = Head(0, b"")

    async def append(self, draft: Draft, *, also: Callable[[Any], None] | None = None) -> Head:
        """The entry's number and digest, once it is durable. also: run in the same transaction."""
        new = await self._rows.append(lambda head: self._next(head, draft), also)
        if new.seq > self._newest.seq:
            self._newest = Head(new.seq, new.digest)
        async with self._head_turn:
            if new.seq > self._head_seq:    # the one who had the turn before kept the head of all who waited
                await self._keep_head(self._newest)
        return Head(new.seq, new.digest)

    async def close(
        self, place: Head, *, sent_bytes: int, digest: bytes, outcome: str, stretches: tuple[Stretch, ...] = (),
        bodies: tuple[bytes, ...] = (),
    ) -> None:
        """Keep how the entry ended, and the exact bytes of its first stretches. Raises StoreConflict when it is closed
        already."""
        now_ms, closed, frames = self._closing(place, sent_bytes, digest, outcome, stretches, bodies)
        await self._rows.close(place.seq, closed, now_ms, frames)

    def closing(
        self, place: Head, *, sent_bytes: int, digest: bytes, outcome: str, stretches: tuple[Stretch, ...] = (),
        bodies: tuple[bytes, ...] = (),
    ) -> Callable[[Any], None]:
        """close() as a step of somebody's transaction: call the result with the connection."""
        now_ms, closed, frames = self._closing(place, sent_bytes, digest, outcome, stretches, bodies)
        return lambda tx: self._rows.close_in(tx, place.seq, closed, now_ms, frames)

    async def find_open(self, peer_id: str, request_id: str) -> EntryView | None:
        """The newest open entry for a request, for a message that goes on after a restart."""
        row = await self._rows.open_row(peer_id, request_id)
        return None if row is None else self._seal.view(row)

    async def close_crashed(self, *, purposes: frozenset[str]) -> int:
        """Close what a crash left open, for these purposes; how many. Byte count 0 stands for unknown here."""
        count = 0
        for row in await self._rows.open_rows():
            if row.purpose in purposes:
                await self.close(Head(row.seq, row.digest), sent_bytes=0, digest=b"", outcome="crashed")
                count += 1
        return count

    async def open_requests(self, purpose: str) -> list[tuple[Head, str]]:
        """Place and request id of each entry for this purpose that is not closed, oldest first."""
        return [(Head(row.seq, row.digest), row.request_id) for row in await self._rows.open_rows()
                if row.purpose == purpose]

    # -- reading ------------------------------------------------------------------------------------------------------

    async def view(self, seq: int) -> EntryView | None:
        """One entry with its texts. Raises LedgerBroken when it does not decode."""
        row = await self._rows.get(seq)
        return None if row is None else self._seal.view(row, tuple(await self._rows.receipts(seq, seq)))

    async def newest(
        self, *, limit: int, peer_id: str | None = None, since_ms: int | None = None,
    ) -> list[EntryView]:
        """The newest entries first."""
        rows = await self._rows.newest(limit, peer_id, since_ms)
        if not rows:
            return []
        by_entry = _by_entry(await self._rows.receipts(rows[-1].seq, rows[0].seq))
        return [self._seal.view(row, tuple(by_entry.get(row.seq, ()))) for row in rows]

    async def page(self, after_seq: int, limit: int = _PAGE) -> list[EntryView]:
        """Entries in the chain's order, for an export."""
        rows = await self._rows.page(after_seq, limit)
        by_entry = _by_entry(await self._rows.receipts(rows[0].seq, rows[-1].seq)) if rows else {}
        return [self._seal.view(row, tuple(by_entry.get(row.seq, ()))) for row in rows]

    async def missing_at_end(self) -> int:
        """How many entries the signed head knows of and the rows do not: the database was emptied or replaced.

        Ask before the first append of a life: that moves the head.
        """
        stored = await self._heads.load()
        head = None if stored is None else verify_head(self._signer.public_key, stored)
        newest = await self._rows.newest(1, None, None)
        return max(0, head.seq - (newest[0].seq if newest else 0)) if head is not None else 0

    async def verify(self) -> Report:
        """Walk the whole chain and compare it with the signed head and the peers' receipts. Changes nothing."""
        problems: list[str] = []
        start = await self._start(problems)
        check = ChainCheck(self._seal, await self._load_head(problems), start, self._is_genuine)
        for problem in problems:
            check.note(problem)
        after = 0
        while page := await self._rows.page(after, _PAGE):
            by_entry = _by_entry(await self._rows.receipts(page[0].seq, page[-1].seq))
            for row in page:
                check.add(row, by_entry.get(row.seq, ()))
            after = page[-1].seq
        return check.report()

    # -- the peers' side ----------------------------------------------------------------------------------------------

    async def take_receipt(self, peer_id: str, receipt: Receipt) -> bool:
        """Keep a peer's countersignature with its entry. False for one that is not the peer's, that names no entry of
        its own, or that is known."""
        if not self._own_id or not is_genuine(receipt, sender=self._own_id, receiver=peer_id):
            return False
        return await self._rows.add_receipt(peer_id, receipt, to_ms(self._clock.now()))

    def _is_genuine(self, entry: Entry, view: ReceiptView) -> bool:
        try:
            receipt = Receipt(
                bytes.fromhex(entry.request_id), entry.purpose, view.size_bytes, view.digest,  # type: ignore[arg-type]
                view.signature,
            )
            return is_genuine(receipt, sender=self._own_id, receiver=entry.peer_id)
        except (LocalProtocolError, RemoteProtocolError, ValueError):
            return False

    # -- thinning out -------------------------------------------------------------------------------------------------

    async def drop_older(self, before_ms: int) -> int:
        """Erase the kept texts and bytes of closed entries older than this; the entries and their hashes stay."""
        count = 0
        while rows := await self._rows.kept_before(before_ms, _PAGE):
            count += await self._drop(rows, "age")
        return count

    async def drop_conversation(self, conversation: str) -> int:
        """Erase what is kept of one conversation; the entries and their hashes stay."""
        return await self._drop(await self._rows.kept_of(conversation), "deleted")

    async def prune(self, before_ms: int) -> int:
        """Remove the oldest entries, closed and older than this, and sign a checkpoint in their place."""
        upto = await self._rows.prunable(before_ms)
        if upto is None:
            return 0
        return await self._rows.prune(upto, sign_head(self._signer, upto.seq, upto.digest, CHECKPOINT))

    async def _drop(self, rows: Sequence[LedgerRow], why: str) -> int:
        record = DropRecord(to_ms(self._clock.now()), why)
        notes = [(row.seq, self._seal.mark_drop(row.digest, record)) for row in rows]
        return await self._rows.drop_kept(notes) if notes else 0

    # -- one entry ----------------------------------------------------------------------------------------------------

    def _next(self, head: Head, draft: Draft) -> NewEntry:
        entry = Entry(
            version=_VERSION, seq=head.seq + 1, prev=head.digest, at_ms=to_ms(self._clock.now()),
            peer_id=draft.peer_id, purpose=draft.purpose, level=draft.level, texts_sha256=texts_digest(draft.texts),
            text_count=len(draft.texts), substitutions=draft.substitutions, approved_by=draft.approved_by,
            request_id=draft.request_id, conversation=draft.conversation,
        )
        raw = msgspec.msgpack.encode(entry)
        return NewEntry(
            seq=entry.seq, digest=self._seal.link(raw), request_id=entry.request_id, peer_id=entry.peer_id,
            purpose=entry.purpose, at_ms=entry.at_ms, entry=raw, outgoing=self._seal.seal_texts(entry.seq, draft.texts),
            conversation=entry.conversation,
        )

    def _closing(
        self, place: Head, sent_bytes: int, digest: bytes, outcome: str, stretches: tuple[Stretch, ...],
        bodies: tuple[bytes, ...],
    ) -> tuple[int, bytes, bytes | None]:
        now_ms = to_ms(self._clock.now())
        record = CloseRecord(place.seq, now_ms, sent_bytes, digest, outcome, stretches, len(bodies))
        return now_ms, self._seal.mark_close(place.digest, record), self._seal.seal_bodies(place.seq, bodies)

    # -- both ends of the chain ---------------------------------------------------------------------------------------

    async def _keep_head(self, newest: Head) -> None:
        await self._heads.store(sign_head(self._signer, newest.seq, newest.digest))
        self._head_seq = newest.seq

    async def _start(self, problems: list[str]) -> Head:
        stored = await self._rows.checkpoint()
        if stored is None:
            return Head(0, b"")
        mark = verify_head(self._signer.public_key, stored, CHECKPOINT)
        if mark is None:
            problems.append("the checkpoint that stands for removed entries was changed")
            return Head(0, b"")
        return Head(mark.seq, mark.digest)

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


def _by_entry(receipts: Sequence[ReceiptRow]) -> dict[int, list[ReceiptRow]]:
    found: dict[int, list[ReceiptRow]] = {}
    for one in receipts:
        found.setdefault(one.seq, []).append(one)
    return found
