"""Routes about other nodes: pairing, trust, grants.

HTTP in, one service call, JSON out. Must not know how a service does its work.
"""

from typing import Annotated, Any

import msgspec
from starlette.requests import Request

from node.api.exchange import Counter, Row, read_body
from node.api.ports import GrantChange

__all__ = ["PeerRoutes"]


class PairOpen(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/pair/open."""

    trust: str | None = None


class PairJoin(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/pair/join."""

    code: str
    at: str | None = None
    trust: str | None = None


class TrustChange(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/peers/{name}/trust."""

    trust: str


class PingInput(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/peers/{name}/ping."""

    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=60)] = 5.0


class WakeInput(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/peers/{name}/wake; hardware: its network card's address, kept for later."""

    hardware: str | None = None
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=600)] = 60.0


class PeerRoutes:
    """The handlers, bound to the services of one node."""

    def __init__(self, at: Counter) -> None:
        self._at = at

    def table(self) -> list[Row]:
        """Method, path and handler of each route."""
        return [
            ("POST", "/v1/pair/open", self.pair_open),
            ("POST", "/v1/pair/join", self.pair_join),
            ("GET", "/v1/peers", self.peers),
            ("POST", "/v1/peers/{name:str}/trust", self.trust),
            ("DELETE", "/v1/peers/{name:str}", self.forget),
            ("POST", "/v1/peers/{name:str}/ping", self.ping),
            ("POST", "/v1/peers/{name:str}/wake", self.wake),
            ("GET", "/v1/peers/{name:str}/grant", self.grant),
            ("PATCH", "/v1/peers/{name:str}/grant", self.grant_edit),
            ("DELETE", "/v1/peers/{name:str}/grant", self.grant_revoke),
        ]

    async def pair_open(self, request: Request) -> Any:
        pairing, body = self._at.part("pairing"), read_body(request, PairOpen)
        return self._at.stream(lambda emit: pairing.open(body.trust, emit))

    async def pair_join(self, request: Request) -> Any:
        pairing, body = self._at.part("pairing"), read_body(request, PairJoin)
        return self._at.stream(lambda emit: pairing.join(body.code, body.at, body.trust, emit))

    async def peers(self, _: Request) -> Any:
        return await self._at.part("peers").all()

    async def trust(self, request: Request) -> Any:
        return await self._at.part("peers").trust(
            request.path_params["name"], read_body(request, TrustChange).trust
        )

    async def forget(self, request: Request) -> Any:
        return {"forgotten": await self._at.part("peers").forget(request.path_params["name"])}

    async def ping(self, request: Request) -> Any:
        return await self._at.part("peers").ping(request.path_params["name"], read_body(request, PingInput).timeout_s)

    async def wake(self, request: Request) -> Any:
        body = read_body(request, WakeInput)
        return await self._at.part("waking").wake(
            request.path_params["name"], hardware=body.hardware, wait_s=body.wait_s
        )

    async def grant(self, request: Request) -> Any:
        return await self._at.part("granting").show(request.path_params["name"])

    async def grant_edit(self, request: Request) -> Any:
        body = read_body(request, GrantChange)
        return await self._at.part("granting").edit(request.path_params["name"], body)

    async def grant_revoke(self, request: Request) -> Any:
        return await self._at.part("granting").revoke(request.path_params["name"])
