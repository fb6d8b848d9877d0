"""Tells reminders when they are due: at once, after quiet hours, or at the next start when this node was off.

Implements node.agent.tools.reminders.ReminderBook and node.api.reminder_ports.Reminders. Being told is a durable row
that stays until the owner has looked; events and notices only point at it, and hold no text. Must not know how a
request for a reminder is understood.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import trio

from node.agent.tools.reminders import KeptReminder
from node.api.reminder_views import ReminderView
from node.clock import Clock, from_ms, to_ms
from node.counting import counted
from node.daemon.persevering import Persevering
from node.errors import UsageError
from node.store import reminders
from node.store.database import Database
from node.store.reminders import Reminder

__all__ = ["QuietHours", "Reminding"]

log = logging.getLogger(__name__)

LOOK_S = 20.0
"""The wall clock may be set, or the machine sleep: a wait is looked at again this often."""
LATE_S = 60.0
"""Told later than this counts as missed."""
RETRY_S = 30.0


class QuietHours:
    """A part of the day in which nothing is told, by the owner's wall clock; it may pass midnight."""

    def __init__(self, text: str, zone: ZoneInfo) -> None:
        """text: "22:00-07:00", or empty for none. Raises ValueError."""
        self._zone = zone
        self._hours: tuple[time, time] | None = None
        if text:
            begin, _, end = text.partition("-")
            self._hours = time.fromisoformat(begin.strip()), time.fromisoformat(end.strip())
            if self._hours[0] == self._hours[1]:
                raise ValueError("quiet hours that begin and end together")

    def until(self, now: datetime) -> datetime | None:
        """When the quiet that is now ends; None when it is not quiet."""
        if self._hours is None:
            return None
        begin, end = self._hours
        local = now.astimezone(self._zone)
        at = local.time().replace(tzinfo=None)
        quiet = begin <= at < end if begin < end else at >= begin or at < end
        if not quiet:
            return None
        day = local.date() + timedelta(days=1 if at >= end else 0)
        return datetime.combine(day, end, self._zone)


class Reminding:
    """The reminders of one node; run() tells them."""

    def __init__(
        self, database: Database, clock: Clock, quiet: QuietHours, publish: Callable[[Mapping[str, Any]], None],
        notice: Callable[[str], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._quiet = quiet
        self._publish = publish
        self._notice = notice
        self._changed = trio.Event()
        self._next_wait_s = RETRY_S

    # -- telling --

    async def run(self) -> None:
        """Tell what is due, until cancelled. What can't be written is tried again."""
        telling = Persevering("telling reminders")
        while True:
            self._changed = trio.Event()
            self._next_wait_s = RETRY_S     # stays so when something fails: what is due would be due again at once
            await telling.attempt(self._look)
            with trio.move_on_after(self._next_wait_s):
                await self._changed.wait()

    async def _look(self) -> None:
        await self._tell_due()
        with trio.move_on_after(RETRY_S):
            self._next_wait_s = await self._wait_s()

    async def _tell_due(self) -> None:
        now = self._clock.now()
        if self._quiet.until(now) is not None:
            return
        due = await self._database.read(reminders.due, to_ms(now))
        if not due:
            return
        late_ms = to_ms(now) - round(LATE_S * 1000)
        missed = [one.reminder_id for one in due if one.due_ms < late_ms]
        told = await self._database.write(
            lambda tx: reminders.tell(tx, [one.reminder_id for one in due], to_ms(now), missed=missed)
        )
        for one in told:
            self._publish({"event": "reminder", "id": one.reminder_id, "missed": one.missed})
        if told:
            log.info("told %s, %d of them late", counted(len(told), "reminder"), sum(one.missed for one in told))
            self._notice("A reminder is due. See it with: kith reminders")

    async def _wait_s(self) -> float:
        now = self._clock.now()
        next_ms = await self._database.read(reminders.next_due_ms)
        if next_ms is None:
            return float("inf")
        at = max(from_ms(next_ms), self._quiet.until(now) or from_ms(next_ms))
        return min(LOOK_S, max(0.0, (at - now).total_seconds()))

    # -- for the agent's tools --

    async def waiting(self) -> Sequence[KeptReminder]:
        """Those that wait, by their time."""
        rows = await self._database.read(reminders.listed, 1000)
        return [
            KeptReminder(one.reminder_id, one.text, from_ms(one.due_ms)) for one in rows
            if one.state is reminders.ReminderState.WAITING
        ]

    async def put(self, reminder: KeptReminder) -> None:
        """Keep one. The same id again changes nothing."""
        await self._database.write(
            reminders.add, reminder.reminder_id, reminder.text, to_ms(reminder.due), to_ms(self._clock.now())
        )
        self._changed.set()

    async def take_out(self, reminder_id: str) -> bool:
        """Whether a waiting one was there to take out."""
        return await self._database.write(reminders.remove, reminder_id)

    async def cancel(self, reminder_id: str) -> bool:
        """Whether a waiting one was there to cancel."""
        return await self._database.write(reminders.cancel, reminder_id, to_ms(self._clock.now()))

    async def restore(self, reminder_id: str) -> bool:
        """Whether a cancelled one waits again."""
        found = await self._database.write(reminders.restore, reminder_id)
        self._changed.set()
        return found

    # -- for the owner --

    async def all(self, limit: int) -> list[ReminderView]:
        """Waiting ones, then what is over; what was told counts as looked at from now on."""
        now_ms = to_ms(self._clock.now())

        def look(tx: Any) -> list[Reminder]:
            rows = reminders.listed(tx, limit)
            reminders.see(tx, now_ms)
            return rows

        return [_view(one) for one in await self._database.write(look)]

    async def drop(self, name: str) -> ReminderView:
        """Cancel a waiting one by its id, or a unique start of it. Raises UsageError."""
        rows = [one for one in await self._database.read(reminders.listed, 1000) if one.reminder_id.startswith(name)]
        waiting = [one for one in rows if one.state is reminders.ReminderState.WAITING]
        if len(waiting) != 1 or not name:
            what = "Several reminders wait" if len(waiting) > 1 else "No reminder waits"
            raise UsageError(f"{what} under {name[:40]!r}.", hint="See the ids with: kith reminders")
        await self.cancel(waiting[0].reminder_id)
        found = await self._database.read(reminders.get, waiting[0].reminder_id)
        return _view(found or waiting[0])


def _view(one: Reminder) -> ReminderView:
    return ReminderView(
        reminder_id=one.reminder_id, text=one.text, due=from_ms(one.due_ms).isoformat(timespec="seconds"),
        state=one.state.value, missed=one.missed, new=one.state is reminders.ReminderState.TOLD and one.seen_ms is None,
    )
