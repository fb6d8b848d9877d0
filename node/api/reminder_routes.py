"""Routes about reminders.

HTTP in, one service call, JSON out. Must not know how a service does its work.
"""

from typing import Any

from starlette.requests import Request

from node.api.exchange import Counter, Row, whole_number

__all__ = ["ReminderRoutes"]


class ReminderRoutes:
    """The handlers."""

    def __init__(self, at: Counter) -> None:
        self._at = at

    def table(self) -> list[Row]:
        """Every route of this group."""
        return [
            ("GET", "/v1/reminders", self.all),
            ("DELETE", "/v1/reminders/{id:str}", self.drop),
        ]

    async def all(self, request: Request) -> Any:
        return await self._at.part("reminders").all(whole_number(request.query_params.get("limit"), 50))

    async def drop(self, request: Request) -> Any:
        return await self._at.part("reminders").drop(request.path_params["id"])
