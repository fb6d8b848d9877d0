"""Routes about the node itself: how it is, its figures, its mode, its end.

HTTP in, one service call, JSON out. Must not know how a service does its work.
"""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from node.api.exchange import Counter, Row, read_body, reply

__all__ = ["NodeRoutes"]

NOT_READY = 503
PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class ModeChange(msgspec.Struct, forbid_unknown_fields=True):
    """Body of PUT /v1/mode."""

    mode: str


class NodeRoutes:
    """The handlers, bound to the services of one node."""

    def __init__(self, at: Counter) -> None:
        self._at = at

    def table(self) -> list[Row]:
        """Method, path and handler of each route."""
        return [
            ("GET", "/v1/status", self.status),
            ("GET", "/v1/health", self.health),
            ("GET", "/v1/doctor", self.doctor),
            ("POST", "/v1/clock/confirm", self.confirm_clock),
            ("GET", "/metrics", self.metrics),
            ("GET", "/v1/mode", self.mode_now),
            ("PUT", "/v1/mode", self.mode),
            ("GET", "/v1/net", self.net),
            ("POST", "/v1/stop", self.stop),
        ]

    async def status(self, _: Request) -> Any:
        return self._at.services.node.status()

    async def health(self, request: Request) -> Any:
        view = await self._at.services.node.health(probe=request.query_params.get("probe") == "1")
        return reply(view, 200 if view.ready else NOT_READY)

    async def doctor(self, _: Request) -> Any:
        return await self._at.services.node.doctor()

    async def confirm_clock(self, _: Request) -> Any:
        return await self._at.services.node.confirm_clock()

    async def metrics(self, _: Request) -> Any:
        return Response(await self._at.part("measuring").text(), headers={"Content-Type": PROMETHEUS_TEXT})

    async def mode_now(self, _: Request) -> Any:
        return self._at.services.node.mode_now()

    async def mode(self, request: Request) -> Any:
        return await self._at.services.node.set_mode(read_body(request, ModeChange).mode)

    async def net(self, _: Request) -> Any:
        return self._at.part("reachability").view()

    async def stop(self, _: Request) -> Any:
        self._at.services.node.stop()
        return {"stopping": True}
