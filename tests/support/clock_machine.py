"""A machine whose clock jumps, and the lives of a node on it: for tests of what is removed by date."""

from datetime import timedelta

from fixed import FixedClock

from node.daemon.removal_clock import RemovalClock
from node.store.database import Database

__all__ = ["DAY", "MONTHS", "Machine"]

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
