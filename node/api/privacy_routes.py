"""Routes about what left this device.

HTTP in, one service call, JSON out. Must not know how a service does its work.
"""

from typing import Any

from starlette.requests import Request

from node.api.exchange import Counter, Row, whole_number

__all__ = ["PrivacyRoutes"]


class PrivacyRoutes:
    """The handlers, bound to the services of one node."""

    def __init__(self, at: Counter) -> None:
        self._at = at

    def table(self) -> list[Row]:
        """Method, path and handler of each route."""
        return [
            ("GET", "/v1/ledger", self.ledger),
            ("GET", "/v1/ledger/{id:int}", self.ledger_entry),
            ("POST", "/v1/ledger/verify", self.ledger_verify),
        ]

    async def ledger(self, request: Request) -> Any:
        query = request.query_params
        return await self._at.part("ledger").entries(
            since=query.get("since"), peer=query.get("peer"), limit=whole_number(query.get("limit"), 100)
        )

    async def ledger_entry(self, request: Request) -> Any:
        return await self._at.part("ledger").entry(request.path_params["id"])

    async def ledger_verify(self, _: Request) -> Any:
        return await self._at.part("ledger").verify()
