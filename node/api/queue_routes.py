"""Routes about requests that wait for a better answer.

HTTP in, one service call, JSON out. Must not know how a service does its work.
"""

from typing import Any

import msgspec
from starlette.requests import Request

from node.api.exchange import Counter, Row, read_body, whole_number

__all__ = ["QueueRoutes"]


class Decision(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/queue/{id}/decision; digest is the question's: a yes counts for exactly what was shown."""

    allow: bool
    digest: str = ""


class QueueRoutes:
    """The handlers."""

    def __init__(self, at: Counter) -> None:
        self._at = at

    def table(self) -> list[Row]:
        """Every route of this group."""
        return [
            ("GET", "/v1/queue", self.all),
            ("DELETE", "/v1/queue", self.clear),
            ("GET", "/v1/queue/{id:str}", self.one),
            ("DELETE", "/v1/queue/{id:str}", self.cancel),
            ("POST", "/v1/queue/{id:str}/decision", self.decide),
        ]

    async def all(self, request: Request) -> Any:
        return await self._at.part("queue").all(whole_number(request.query_params.get("limit"), 50))

    async def one(self, request: Request) -> Any:
        return await self._at.part("queue").one(request.path_params["id"])

    async def cancel(self, request: Request) -> Any:
        return await self._at.part("queue").cancel(request.path_params["id"])

    async def decide(self, request: Request) -> Any:
        body = read_body(request, Decision)
        return await self._at.part("queue").decide(request.path_params["id"], allow=body.allow, digest=body.digest)

    async def clear(self, _: Request) -> Any:
        return await self._at.part("queue").clear()
