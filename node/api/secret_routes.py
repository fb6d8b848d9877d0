"""Routes about the owner's stored passwords. A value goes in and never comes out.

HTTP in, one service call, JSON out. Must not know how a service does its work.
"""

from typing import Any

from starlette.requests import Request

from node.api.exchange import Counter, Row, read_body
from node.api.privacy_ports import NewSecret

__all__ = ["SecretRoutes"]


class SecretRoutes:
    """The handlers, bound to the services of one node."""

    def __init__(self, at: Counter) -> None:
        self._at = at

    def table(self) -> list[Row]:
        """Method, path and handler of each route."""
        return [
            ("GET", "/v1/secrets", self.all),
            ("POST", "/v1/secrets", self.add),
            ("DELETE", "/v1/secrets/{name:str}", self.remove),
        ]

    async def all(self, _: Request) -> Any:
        return await self._at.part("secrets").all()

    async def add(self, request: Request) -> Any:
        return await self._at.part("secrets").add(read_body(request, NewSecret))

    async def remove(self, request: Request) -> Any:
        return {"removed": await self._at.part("secrets").remove(request.path_params["name"])}
