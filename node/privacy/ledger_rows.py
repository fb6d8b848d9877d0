"""The ledger's rows in the node's database. Must not know what an entry says."""

from collections.abc import Callable, Sequence
from typing import Any

from node.store import ledger as table
from node.store.connection import Connection
from node.store.database import Database
from node.store.ledger import Head, LedgerRow, NewEntry

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

    async def close(self, seq: int, closed: bytes, now_ms: int) -> None:
        """Keep a close record."""
        await self._database.write(table.close, seq, closed, now_ms)

    def close_in(self, tx: Connection, seq: int, closed: bytes, now_ms: int) -> None:
        """Keep a close record inside somebody's transaction."""
        table.close(tx, seq, closed, now_ms)

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


def _append(tx: Connection, make: Callable[[Head], NewEntry], also: Callable[[Any], None] | None) -> NewEntry:
    new = make(table.head(tx))
    table.append(tx, new)
    if also is not None:
        also(tx)
    return new
