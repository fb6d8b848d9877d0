"""What the API needs of the agent's lessons. Must not know how they are kept or used."""

from typing import Protocol

from node.api.lesson_views import MemoryView

__all__ = ["Lessons"]


class Lessons(Protocol):
    """What the agent has learnt from confirmed actions."""

    async def all(self, limit: int) -> MemoryView:
        """The newest first."""
        ...

    async def forget(self, name: str) -> int:
        """How many were forgotten: one by its id, or "all"."""
        ...

    async def switch(self, *, on: bool) -> MemoryView:
        """Learn, or not."""
        ...
