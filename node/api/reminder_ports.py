"""What the API needs of reminders. Must not know how they are kept or told."""

from typing import Protocol

from node.api.reminder_views import ReminderView

__all__ = ["Reminders"]


class Reminders(Protocol):
    """The owner's reminders."""

    async def all(self, limit: int) -> list[ReminderView]:
        """Waiting ones by their time, then what is over; looking makes told ones no longer new."""
        ...

    async def drop(self, name: str) -> ReminderView:
        """Cancel a waiting one by its id or a unique start of it."""
        ...
