"""Routes about what the agent has learnt.

HTTP in, one service call, JSON out. Must not know how a service does its work.
"""

from typing import Any

import msgspec
from starlette.requests import Request

from node.api.exchange import Counter, Row, read_body, whole_number

__all__ = ["LessonRoutes"]


class LearningSwitch(msgspec.Struct, forbid_unknown_fields=True):
    """Body of PUT /v1/memory."""

    on: bool


class LessonRoutes:
    """The handlers."""

    def __init__(self, at: Counter) -> None:
        self._at = at

    def table(self) -> list[Row]:
        """Every route of this group."""
        return [
            ("GET", "/v1/memory", self.all),
            ("PUT", "/v1/memory", self.switch),
            ("DELETE", "/v1/memory/{id:str}", self.forget),
        ]

    async def all(self, request: Request) -> Any:
        return await self._at.part("lessons").all(whole_number(request.query_params.get("limit"), 50))

    async def switch(self, request: Request) -> Any:
        return await self._at.part("lessons").switch(on=read_body(request, LearningSwitch).on)

    async def forget(self, request: Request) -> Any:
        return {"forgotten": await self._at.part("lessons").forget(request.path_params["id"])}
