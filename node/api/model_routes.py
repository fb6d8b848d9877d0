"""Routes about models: the shelf, measuring speed and tool calling.

HTTP in, one service call, JSON out. Must not know how a service does its work.
"""

from typing import Any

import msgspec
from starlette.requests import Request

from node.api.exchange import Counter, Row, read_body
from node.api.ports import EvalInput
from offload.bench import BenchPlan

__all__ = ["ModelRoutes"]


class ModelSource(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/models: a path, package:NAME, peer:PEER/MODEL or hf:OWNER/REPOSITORY[:FILE]."""

    source: str


class ModelRoutes:
    """The handlers, bound to the services of one node."""

    def __init__(self, at: Counter) -> None:
        self._at = at

    def table(self) -> list[Row]:
        """Method, path and handler of each route."""
        return [
            ("GET", "/v1/models", self.models),
            ("POST", "/v1/models", self.model_add),
            ("GET", "/v1/models/{name:path}", self.model_info),
            ("DELETE", "/v1/models/{name:path}", self.model_remove),
            ("POST", "/v1/models/{name:path}/use", self.model_use),
            ("POST", "/v1/bench", self.bench),
            ("POST", "/v1/eval", self.evaluate),
        ]

    async def models(self, _: Request) -> Any:
        return await self._at.part("models").all()

    async def model_info(self, request: Request) -> Any:
        return await self._at.part("models").info(request.path_params["name"])

    async def model_add(self, request: Request) -> Any:
        models, body = self._at.part("models"), read_body(request, ModelSource)
        return self._at.stream(lambda emit: models.add(body.source, emit))

    async def model_remove(self, request: Request) -> Any:
        return await self._at.part("models").remove(request.path_params["name"])

    async def model_use(self, request: Request) -> Any:
        return await self._at.part("models").use(request.path_params["name"])

    async def bench(self, request: Request) -> Any:
        bench, plan = self._at.part("bench"), read_body(request, BenchPlan)
        return self._at.stream(lambda emit: bench.run(plan, emit))

    async def evaluate(self, request: Request) -> Any:
        evaluating, body = self._at.part("evaluating"), read_body(request, EvalInput)
        return self._at.stream(lambda emit: evaluating.run(body, emit))
