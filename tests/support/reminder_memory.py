"""Reminders in a dict: the agent's ReminderBook for tests."""

from collections.abc import Sequence

from node.agent.tools.reminders import KeptReminder


class MemoryReminders:
    """Waiting and cancelled ones."""

    def __init__(self) -> None:
        self.kept: dict[str, KeptReminder] = {}
        self.cancelled: dict[str, KeptReminder] = {}

    async def waiting(self) -> Sequence[KeptReminder]:
        return sorted(self.kept.values(), key=lambda one: one.due)

    async def put(self, reminder: KeptReminder) -> None:
        self.kept.setdefault(reminder.reminder_id, reminder)

    async def take_out(self, reminder_id: str) -> bool:
        return self.kept.pop(reminder_id, None) is not None

    async def cancel(self, reminder_id: str) -> bool:
        found = self.kept.pop(reminder_id, None)
        if found is not None:
            self.cancelled[reminder_id] = found
        return found is not None

    async def restore(self, reminder_id: str) -> bool:
        found = self.cancelled.pop(reminder_id, None)
        if found is not None:
            self.kept[reminder_id] = found
        return found is not None
