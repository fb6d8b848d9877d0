"""What the API needs of the queue of requests that wait for a better answer. Must not know how it is kept or run."""

from typing import Protocol

from node.api.queue_views import ClearedView, QueuedDetail, QueuedView

__all__ = ["Queue"]


class Queue(Protocol):
    """Requests that were drafted here and wait for their upgrade. Names are ids, or unique starts of them."""

    async def all(self, limit: int) -> list[QueuedView]:
        """Live ones first, then the newest settled ones."""
        ...

    async def one(self, name: str) -> QueuedDetail:
        """One with its texts; looking at an answer makes it no longer new. Raises NoSuchIntent."""
        ...

    async def cancel(self, name: str) -> QueuedView:
        """Take one back before its answer came. Raises NoSuchIntent, IntentSettled."""
        ...

    async def decide(self, name: str, *, allow: bool, digest: str) -> QueuedView:
        """The owner's answer to the question that one waits with. Raises NoSuchIntent, NothingToDecide."""
        ...

    async def clear(self) -> ClearedView:
        """Remove settled ones from the list; answers stay in their conversations."""
        ...
