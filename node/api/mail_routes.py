"""Routes of messages, search and what peers may search.

HTTP in, one service call, JSON out. Must not know how a service does its work.
"""

from typing import Annotated, Any

import msgspec
from starlette.requests import Request

from node.api.exchange import Counter, Row, read_body, whole_number

__all__ = ["MailRoutes"]


class MessageOut(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/messages."""

    to: str
    body: str


class SearchInput(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/search."""

    query: str
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    local: bool = False


class ShareInput(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/shares; preview shows what would be handed out."""

    folder: str
    peers: list[str]
    preview: bool = False


class FolderInput(msgspec.Struct, forbid_unknown_fields=True):
    """Body of DELETE /v1/shares."""

    folder: str


class MailRoutes:
    """The handlers, bound to the services of one node."""

    def __init__(self, at: Counter) -> None:
        self._at = at

    def table(self) -> list[Row]:
        """Method, path and handler of each route."""
        return [
            ("POST", "/v1/messages", self.send),
            ("GET", "/v1/inbox", self.inbox),
            ("GET", "/v1/outbox", self.outbox),
            ("POST", "/v1/search", self.search),
            ("GET", "/v1/shares", self.shares),
            ("POST", "/v1/shares", self.share),
            ("DELETE", "/v1/shares", self.unshare),
        ]

    async def send(self, request: Request) -> Any:
        body = read_body(request, MessageOut)
        return await self._at.part("messages").send(body.to, body.body)

    async def inbox(self, request: Request) -> Any:
        return await self._at.part("messages").inbox(whole_number(request.query_params.get("limit"), 50))

    async def outbox(self, request: Request) -> Any:
        return await self._at.part("messages").outbox(whole_number(request.query_params.get("limit"), 50))

    async def search(self, request: Request) -> Any:
        body = read_body(request, SearchInput)
        return await self._at.part("searching").search(body.query, body.limit, body.local)

    async def shares(self, _: Request) -> Any:
        return await self._at.part("searching").shares()

    async def share(self, request: Request) -> Any:
        searching, body = self._at.part("searching"), read_body(request, ShareInput)
        act = searching.preview_share if body.preview else searching.share
        return await act(body.folder, body.peers)

    async def unshare(self, request: Request) -> Any:
        return {"unshared": await self._at.part("searching").unshare(read_body(request, FolderInput).folder)}
