"""The ledger's rows in the node's database. Must not know what an entry says."""

from collections.abc import Callable, Sequence
from typing import Any

from node.store import ledger as table
from node.store.connection import Connection
from node.store.database import Database
from node.store.ledger import Head, LedgerRow, NewEntry, ReceiptRow
from protocol.frames.receipt import Receipt

__all__ = ["StoredLedgerRows"]


class StoredLedgerRows:
    """LedgerRows over kith.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(
        self, make: Callable[[Head], NewEntry], also: Callable[[Any], None] | None,
    ) -> NewEntry:
        """One transaction: read the head, add what follows it, run also."""
        return await self._database.write(_append, make, also)

    async def close(self, seq: int, closed: bytes, now_ms: int, frames: bytes | None) -> None:
        """Keep a close record and the sealed bytes."""
        await self._database.write(table.close, seq, closed, now_ms, frames)

    def close_in(self, tx: Connection, seq: int, closed: bytes, now_ms: int, frames: bytes | None) -> None:
        """Keep a close record inside somebody's transaction."""
        table.close(tx, seq, closed, now_ms, frames)

    async def open_row(self, peer_id: str, request_id: str) -> LedgerRow | None:
        """The newest open row of a request."""
        return await self._database.read(table.open_row, peer_id, request_id)

    async def open_rows(self) -> Sequence[LedgerRow]:
        """Every open row."""
        return await self._database.read(table.open_rows)

    async def get(self, seq: int) -> LedgerRow | None:
        """One row."""
        return await self._database.read(table.get, seq)

    async def page(self, after_seq: int, limit: int) -> Sequence[LedgerRow]:
        """Rows in order."""
        return await self._database.read(table.rows, after_seq=after_seq, limit=limit)

    async def newest(self, limit: int, peer_id: str | None, since_ms: int | None) -> Sequence[LedgerRow]:
        """Rows, newest first."""
        return await self._database.read(table.rows_backward, limit=limit, peer_id=peer_id, since_ms=since_ms)

    async def receipts(self, first_seq: int, last_seq: int) -> Sequence[ReceiptRow]:
        """Receipts of these entries."""
        return await self._database.read(table.receipts, first_seq, last_seq)

    async def add_receipt(self, peer_id: str, receipt: Receipt, now_ms: int) -> bool:
        """Keep one with its entry."""
        return await self._database.write(
            table.add_receipt, peer_id=peer_id, purpose=receipt.purpose, request_id=receipt.request_id.hex(),
            size_bytes=receipt.size_bytes, digest=receipt.digest, signature=receipt.signature, now_ms=now_ms,
        )

    async def kept_before(self, before_ms: int, limit: int) -> Sequence[LedgerRow]:
        """Old closed rows with their texts."""
        return await self._database.read(table.kept_before, before_ms, limit=limit)

    async def kept_of(self, conversation: str) -> Sequence[LedgerRow]:
        """Rows of a conversation with their texts."""
        return await self._database.read(table.kept_of, conversation)

    async def drop_kept(self, notes: Sequence[tuple[int, bytes]]) -> int:
        """Erase texts and bytes, leave the notes."""
        return await self._database.write(table.drop_kept, notes)

    async def prunable(self, before_ms: int) -> Head | None:
        """The last row of the beginning that may go."""
        return await self._database.read(table.prunable, before_ms)

    async def prune(self, upto: Head, record: bytes) -> int:
        """Remove up to it, keep the record."""
        return await self._database.write(table.prune, upto, record)

    async def checkpoint(self) -> bytes | None:
        """The record that stands for removed rows."""
        return await self._database.read(table.checkpoint)


def _append(tx: Connection, make: Callable[[Head], NewEntry], also: Callable[[Any], None] | None) -> NewEntry:
    new = make(table.head(tx))
    table.append(tx, new)
    if also is not None:
        also(tx)
    return new
