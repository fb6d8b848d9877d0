"""Removes what is over and older than the owner keeps it, now and then: texts and entries of the ledger, messages, the
agent's steps, usage and settled requests. Nothing unread, undelivered or unfinished ever goes.

A long backlog goes in small transactions, so that nobody's write waits for it. Must not know what a row says.
"""

import logging
from collections.abc import Callable
from datetime import timedelta

import trio

from node.clock import Clock, from_ms, to_ms
from node.counting import counted
from node.daemon.ledger_upkeep import LedgerUpkeep
from node.daemon.removal_clock import RemovalClock
from node.errors import KithError
from node.store import intents, journal, mail_archive, usage
from node.store.connection import Connection
from node.store.database import Database

__all__ = ["KEEP_REQUESTS_DAYS", "KEEP_USAGE_DAYS", "Tidying"]

log = logging.getLogger(__name__)

EVERY_S = 6 * 3600.0
FIRST_AFTER_S = 60.0
CORRECTED_EVERY_S = 60.0
"""How soon stamps are moved after the clock was put right; a life that ends before leaves them as they are."""
AT_ONCE = 500
"""Rows of one transaction."""
KEEP_USAGE_DAYS = 400
"""Days that what peers used of this node's models is kept: a year, and the month to compare it with."""
KEEP_REQUESTS_DAYS = 30
"""Days that a settled request stays in the queue's list; its answer stays in the conversation."""

Drop = Callable[[Connection, int], int]


class Tidying:
    """One per node; run() must be running."""

    def __init__(
        self, ledger: LedgerUpkeep, database: Database, clock: Clock, *, messages_days: int, steps_days: int,
        dates: RemovalClock | None = None,
    ) -> None:
        """Days that messages which are over, and steps of the agent, are kept; 0: for ever. dates: who knows by how
        much stamps of this life are to be moved; None: nobody."""
        self._dates = dates
        self._ledger = ledger
        self._database = database
        self._clock = clock
        self._messages_days = messages_days
        self._steps_days = steps_days

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled."""
        task_status.started()
        await trio.sleep(FIRST_AFTER_S)
        while True:
            await self.tidy()
            for _ in range(int(EVERY_S / CORRECTED_EVERY_S)):
                await trio.sleep(CORRECTED_EVERY_S)
                await self._move_stamps()

    async def tidy(self) -> int:
        """Remove what is older than wanted now; how many rows, the ledger's apart. What fails is logged, and done next
        time.
        """
        try:
            await self._ledger.tidy()
        except KithError as error:
            log.warning("the ledger was not thinned out: %s", error.code)
        if not await self._move_stamps():
            return 0
        gone = await self._drop("messages", self._messages_days, _read, _settled)
        gone += await self._drop("steps of the agent", self._steps_days, _steps)
        gone += await self._drop("days of usage", KEEP_USAGE_DAYS, _usage)
        return gone + await self._drop("settled requests", KEEP_REQUESTS_DAYS, intents.prune)

    async def _move_stamps(self) -> bool:
        """Whether each message that is over has the moment when it was, as far as that is known."""
        for correction in self._dates.corrections() if self._dates else ():
            try:
                moved = await self._database.write(
                    mail_archive.move_stamps, correction.since_ms, correction.upto_ms, correction.by_ms)
            except KithError as error:
                log.warning("the times of messages that were read by a slow clock stay as they are: %s", error.code)
                return False
            assert self._dates
            self._dates.corrected(correction)
            log.info("the clock was put right: %s moved with it", counted(moved, "message that is over was",
                                                                          "messages that are over were"))
        return True

    async def _drop(self, what: str, days: int, *drops: Drop) -> int:
        gone = 0
        try:
            for drop in drops if days else ():
                while count := await self._database.write(drop, to_ms(self._clock.now() - timedelta(days=days))):
                    gone += count
            if gone:
                await self._database.shrink_log()
                log.info("%s older than %s were removed: %d", what, counted(days, "day"), gone)
        except KithError as error:
            log.warning("%s that are old were not removed: %s", what, error.code)
        return gone


def _read(tx: Connection, before_ms: int) -> int:
    return mail_archive.drop_read(tx, before_ms, limit=AT_ONCE)


def _settled(tx: Connection, before_ms: int) -> int:
    return mail_archive.drop_settled(tx, before_ms, limit=AT_ONCE)


def _steps(tx: Connection, before_ms: int) -> int:
    return journal.drop_before(tx, before_ms, limit=AT_ONCE)


def _usage(tx: Connection, before_ms: int) -> int:
    return usage.drop_before(tx, from_ms(before_ms).date().isoformat())
