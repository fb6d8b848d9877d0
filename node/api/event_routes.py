"""The stream of what happens at the node.

HTTP in, JSON lines out. Must not know where events come from.
"""

from typing import Any

from starlette.requests import Request

from node.api.exchange import Counter, Row

__all__ = ["EventRoutes"]


class EventRoutes:
    """The handlers."""

    def __init__(self, at: Counter) -> None:
        self._at = at

    def table(self) -> list[Row]:
        """Every route of this group."""
        return [("GET", "/v1/events", self.follow), ("POST", "/v1/events", self.follow)]

    async def follow(self, request: Request) -> Any:
        """?kinds=mode,peer,intent narrows it."""
        kinds = [one for one in request.query_params.get("kinds", "").split(",") if one]
        events = self._at.part("events")
        return self._at.stream(lambda emit: events.follow(kinds, emit))
