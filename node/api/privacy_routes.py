"""Routes about what left this device.

HTTP in, one service call, JSON out. Must not know how a service does its work.
"""

from typing import Any

import msgspec
from starlette.requests import Request

from node.api.exchange import Counter, Row, read_body, row_number, whole_number
from node.api.failures import UsageFault
from node.api.privacy_ports import LevelChange

__all__ = ["PrivacyRoutes"]


class LedgerCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """peer: whom to ask for missing receipts first."""

    peer: str | None = None


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
            ("GET", "/v1/ledger/export", self.ledger_export),
            ("POST", "/v1/audit", self.audit),
            ("GET", "/v1/privacy", self.privacy),
            ("POST", "/v1/privacy", self.privacy_set),
            ("DELETE", "/v1/privacy/denials/{number:int}", self.allow_again),
        ]

    async def ledger(self, request: Request) -> Any:
        query = request.query_params
        return await self._at.part("ledger").entries(
            since=query.get("since"), peer=query.get("peer"), limit=whole_number(query.get("limit"), 100)
        )

    async def ledger_entry(self, request: Request) -> Any:
        return await self._at.part("ledger").entry(row_number(request.path_params["id"]))

    async def audit(self, _: Request) -> Any:
        return await self._at.part("auditing").look()

    async def privacy(self, request: Request) -> Any:
        return await self._at.part("privacy").show(request.query_params.get("peer"))

    async def privacy_set(self, request: Request) -> Any:
        return await self._at.part("privacy").set(read_body(request, LevelChange))

    async def allow_again(self, request: Request) -> Any:
        return await self._at.part("privacy").allow_again(row_number(request.path_params["number"]))

    async def ledger_verify(self, request: Request) -> Any:
        return await self._at.part("ledger").verify(read_body(request, LedgerCheck).peer)

    async def ledger_export(self, request: Request) -> Any:
        query = request.query_params
        after = query.get("after", "0")
        if not after.isdecimal() or len(after) > 15:
            raise UsageFault("after takes the number of an entry")
        return await self._at.part("ledger").export(int(after), with_texts=query.get("texts") == "yes")
