"""A machine whose clock jumps, and the lives of a node on it: for tests of what is removed by date."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import trio
from fixed import FixedClock

from node.daemon.removal_clock import RemovalClock
from node.store.database import Database
from node.store.schema import KITH

__all__ = ["DAY", "MONTHS", "Machine", "machine_in"]

DAY = timedelta(days=1)
MONTHS = timedelta(days=200)


class Machine:
    """A machine's clocks, and the lives of a node on it."""

    def __init__(self, database: Database) -> None:
        self.clock = FixedClock()
        self.slept_s = 0.0
        self.database = database

    async def life(self) -> RemovalClock:
        found = RemovalClock(self.clock, self.database, lambda: self.slept_s)
        await found.begin()
        return found

    def jump(self, by: timedelta) -> None:
        self.clock.set(self.clock.now() + by)

    def run(self, time: timedelta) -> None:
        self.clock.advance(time.total_seconds())


@asynccontextmanager
async def machine_in(folder: Path) -> AsyncIterator[Machine]:
    """A machine with an empty database there."""
    database = await Database.open(folder / "kith.db", b"k" * 32, KITH)
    try:
        yield Machine(database)
    finally:
        with trio.CancelScope(shield=True):
            await database.close()
