"""The time by which things expire and are removed: the machine's, as long as what this node saw of time bears it out.

A clock that is months ahead for a while would otherwise expire every message and empty the ledger, and no later
correction brings them back. So a moment far beyond what passed since the last look is doubted: by this clock no more
time passes then than the steady count tells, until the machine's clock is right again or the owner says that it is. A
clock that is far behind removes nothing by itself; it is doubted too, so that the owner hears of it.

Must not know what expires or is removed.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import trio

from node.clock import Clock, from_ms, to_ms
from node.counting import counted
from node.daemon.machine_sleep import slept_since_boot_s
from node.errors import StorageError
from node.store import settings
from node.store.database import Database

__all__ = ["BETWEEN_LIVES", "SETTLING_S", "WITHIN_A_LIFE", "Correction", "RemovalClock"]

log = logging.getLogger(__name__)

KEY = "clock.seen_ms"
KEEP_EVERY_S = 3600.0
BETWEEN_LIVES = timedelta(days=21)
"""How long a node may have been off without being asked about the date."""
WITHIN_A_LIFE = timedelta(days=1)
"""How far the date may depart from the steady count while the node runs, all its steps together."""
SETTLING_S = 3600.0
"""A machine without a battery for its clock has the right date only once it has a network: until then the longer limit
holds."""

_CORRECTED_FROM_MS = 600_000      # less is of no account for what is kept for days


@dataclass(frozen=True, slots=True)
class Correction:
    """A clock that was behind was put right: what was stamped from since_ms to upto_ms happened by_ms later; or sooner,
    where that is negative: it had been ahead."""

    since_ms: int
    upto_ms: int
    by_ms: int


class _Stamps:
    """A clock that shows the latest that the present can be."""

    def __init__(self, dates: "RemovalClock") -> None:
        self._dates = dates

    def now(self) -> datetime:
        """See RemovalClock.latest."""
        return self._dates.latest()

    def monotonic_s(self) -> float:
        """The steady count."""
        return self._dates.monotonic_s()


class RemovalClock:
    """One per node. begin() before anything is removed: until then all things are young. A node.clock.Clock."""

    def __init__(self, clock: Clock, database: Database, slept_s: Callable[[], float] = slept_since_boot_s) -> None:
        """slept_s: how long the machine slept since it was started, which the steady count may leave out."""
        self._clock = clock
        self._database = database
        self._slept_s = slept_s
        self._seen_ms = 0
        self._seen_at_s = self._begun_s = self._steady_s()
        self._borne_out = (0, self._begun_s)
        self._latest_ms, self._latest_at_s = 0, self._begun_s
        self._doubted = False
        self._life_ms = 0
        self._corrections: list[Correction] = []
        self.stamps: Clock = _Stamps(self)
        """For noting when something was over that is kept for a time from then on; see corrections()."""

    def monotonic_s(self) -> float:
        """The steady count."""
        return self._clock.monotonic_s()

    def now(self) -> datetime:
        """The present instant, or as much of it as is borne out."""
        return from_ms(min(self._look(), to_ms(self._clock.now())))

    def latest(self) -> datetime:
        """The latest that the present can be, by the machine's clock or by what was borne out in this life: a wait
        counted from here is not over already when a clock that was behind is put right.
        """
        steady_s = self._steady_s()
        kept_ms = self._latest_ms + int((steady_s - self._latest_at_s) * 1000)
        self._latest_ms, self._latest_at_s = max(kept_ms, self._look()), steady_s
        if self._life_ms and (by_ms := self._latest_ms - kept_ms) >= _CORRECTED_FROM_MS:
            self._corrections.append(Correction(self._life_ms, kept_ms, by_ms))
            self._life_ms += by_ms
        return from_ms(max(self._latest_ms, to_ms(self._clock.now())))

    def corrections(self) -> tuple[Correction, ...]:
        """How stamps of this life have to be moved, in order, and were not yet: a clock that is behind stays so until
        there is a network, or until the owner says which date is right. What is over would else look old at once.
        """
        self.latest()
        return tuple(self._corrections)

    def corrected(self, done: Correction) -> None:
        """The stamps were moved by this one."""
        self._corrections.remove(done)

    def doubt(self) -> str:
        """Why nothing is removed now, in words; empty when the date is borne out."""
        expected_ms = self._look()
        if not self._doubted:
            return ""
        apart = self._clock.now() - from_ms(expected_ms)
        days = counted(round(abs(apart) / timedelta(days=1)), "day")
        where = "ahead of" if apart > timedelta(0) else "behind"
        return (f"the clock shows {self._clock.now():%Y-%m-%d}, {days} {where} what this node saw pass; "
                "meanwhile nothing more expires or is removed for its age")

    async def begin(self) -> None:
        """Take up what earlier lives saw. Raises StorageError when that cannot be read."""
        kept = await self._database.read(settings.get, KEY)
        self._seen_ms = int(kept) if kept is not None else to_ms(self._clock.now())
        self._seen_at_s = self._begun_s = self._steady_s()
        self._borne_out = (self._seen_ms, self._seen_at_s)
        self._latest_ms, self._latest_at_s = self._borne_out
        self.latest()
        self._life_ms = self._latest_ms     # what passed between two lives corrects nothing
        if doubt := self.doubt():
            log.warning("%s", doubt)
        await self._try_to_keep()

    async def confirm(self) -> None:
        """The owner says that the machine's clock is right. Raises StorageError."""
        self.latest()
        self._borne_out = self._seen_ms, self._seen_at_s = to_ms(self._clock.now()), self._steady_s()
        if (by_ms := self._seen_ms - self._latest_ms) <= -_CORRECTED_FROM_MS:      # a date ahead was taken for right
            self._corrections.append(Correction(self._life_ms, self._latest_ms, by_ms))
            self._life_ms += by_ms
            self._latest_ms = self._seen_ms
        await self._keep()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep what was seen for the next life, until cancelled."""
        task_status.started()
        while True:
            await trio.sleep(KEEP_EVERY_S)
            await self._try_to_keep()

    async def _try_to_keep(self) -> None:
        try:
            await self._keep()
        except StorageError as error:
            log.warning("what was seen of time was not kept: %s", error.code)

    async def _keep(self) -> None:
        await self._database.write(settings.put, KEY, str(self._look()))

    def _steady_s(self) -> float:
        return self._clock.monotonic_s() + self._slept_s()

    def _look(self) -> int:
        """The moment that is borne out now: the clock's where it is near what was to be expected.

        That is counted from one moment, for many small steps are a large one: from what earlier lives saw while this
        one settles, then from what had been borne out by then.
        """
        if not self._seen_ms:
            return 0
        steady_s = self._steady_s()
        settling = steady_s - self._begun_s <= SETTLING_S
        if not settling and self._seen_at_s <= self._begun_s:
            self._seen_ms, self._seen_at_s = self._borne_out
        expected_ms = self._seen_ms + int((steady_s - self._seen_at_s) * 1000)
        now_ms = to_ms(self._clock.now())
        allowed = BETWEEN_LIVES if settling else WITHIN_A_LIFE
        doubted = abs(now_ms - expected_ms) > allowed // timedelta(milliseconds=1)
        if doubted is not self._doubted:
            log.info("the date is %s", "doubted" if doubted else "borne out again")
            self._doubted = doubted
        if doubted:
            return expected_ms
        self._borne_out = now_ms, steady_s
        return now_ms
