"""Keeps the ledger as long as the owner wants it: old texts go first, much later the entries themselves.

Must not know what an entry says, nor when it is done.
"""

import logging
from datetime import timedelta

from node.clock import Clock, to_ms
from node.privacy.ledger import Ledger
from node.store.database import Database

__all__ = ["LedgerUpkeep"]

log = logging.getLogger(__name__)

_MS = timedelta(milliseconds=1)


class LedgerUpkeep:
    """One per node."""

    def __init__(
        self, ledger: Ledger, database: Database, clock: Clock, *, texts_days: int, entries_days: int,
    ) -> None:
        """Days after which texts and bytes, and whole entries, are removed; 0 keeps them."""
        self._ledger = ledger
        self._database = database
        self._clock = clock
        self._texts_days = texts_days
        self._entries_days = entries_days

    async def tidy(self) -> tuple[int, int]:
        """Remove what is older than wanted now: (texts, entries)."""
        texts = await self._ledger.drop_older(self._before(self._texts_days)) if self._texts_days else 0
        entries = await self._ledger.prune(self._before(self._entries_days)) if self._entries_days else 0
        if texts or entries:
            await self._database.shrink_log()
            log.info("of the ledger, %d old texts and %d old entries were removed", texts, entries)
        return texts, entries

    def _before(self, days: int) -> int:
        return to_ms(self._clock.now()) - timedelta(days=days) // _MS
