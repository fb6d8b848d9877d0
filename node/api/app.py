"""The local API's routes: HTTP in, service calls, JSON out. One table, no logic.

Reached over a Unix socket of mode 0600: whoever can open it is the owner. The Host header must be "kith", so that no
web page can
reach it through a proxy. Must not know how a service does its work.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from node.api.failures import HTTP_STATUS, Starting, UsageFault, describe_failure
from node.api.ports import AskInput, Emit, EvalInput, GrantChange, Services
from node.api.questions import Questions
from node.api.streaming import EventStream
from offload.bench import BenchPlan

__all__ = ["build_app"]

MAX_BODY_BYTES = 4 * 1024 * 1024
SOCKET_HOST = "kith"
NOT_READY = 503

log = logging.getLogger(__name__)

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Any]]


def reply(value: Any, status: int = 200) -> Response:
    """JSON bytes of any view; bare dicts and lists get the schema number."""
    if isinstance(value, list):
        value = {"schema": 1, "items": value}
    elif isinstance(value, dict):
        value = {"schema": 1, **value}
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")


async def take_body(request: Request) -> None:
    """Keep the request's bytes for read_body. Raises UsageFault for too many.

    Done before every handler, also one that wants no body: a reply that overtakes the rest of its request would end the
    connection while the client is still sending.
    """
    size_bytes = 0
    chunks: list[bytes] = []
    async for chunk in request.stream():
        size_bytes += len(chunk)
        if size_bytes > MAX_BODY_BYTES:
            raise UsageFault(f"the request is larger than {MAX_BODY_BYTES} bytes")
        chunks.append(chunk)
    request.state.body = b"".join(chunks)


def read_body(request: Request, type_: type[T]) -> T:
    """The request's JSON as a checked record; raises UsageFault for anything else."""
    try:
        return msgspec.json.decode(request.state.body or b"{}", type=type_)
    except msgspec.DecodeError as error:
        raise UsageFault(f"the request is not understood: {error}") from None


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


class ModeChange(msgspec.Struct, forbid_unknown_fields=True):
    """Body of PUT /v1/mode."""

    mode: str


class ModelSource(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/models: a path, or hf:OWNER/REPOSITORY[:FILE]."""

    source: str


class MessageOut(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/messages."""

    to: str
    body: str


class SearchInput(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/search."""

    query: str
    limit: int = 10
    local: bool = False


class ShareInput(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/shares; preview shows what would be handed out."""

    folder: str
    peers: list[str]
    preview: bool = False


class FolderInput(msgspec.Struct, forbid_unknown_fields=True):
    """Body of DELETE /v1/shares."""

    folder: str


class Routes:
    """The handlers, bound to the services and the open questions of one node."""

    def __init__(self, services: Services, questions: Questions) -> None:
        self._services = services
        self._questions = questions

    def _part(self, name: str) -> Any:
        part = getattr(self._services, name)
        if part is None:
            raise Starting(f"the node is still starting: {name} is not ready")
        return part

    def _stream(self, produce: Callable[[Emit], Awaitable[None]]) -> EventStream:
        async def listening(emit: Emit) -> None:
            self._questions.listen(emit)
            await produce(emit)

        def failed(error: Exception) -> dict[str, Any]:
            view = describe_failure(error)
            if view.code == "bug":
                log.error("a request failed", exc_info=error)
            return msgspec.to_builtins(view)  # type: ignore[no-any-return]

        return EventStream(listening, failed)

    async def status(self, _: Request) -> Any:
        return self._services.node.status()

    async def health(self, request: Request) -> Any:
        view = await self._services.node.health(probe=request.query_params.get("probe") == "1")
        return reply(view, 200 if view.ready else NOT_READY)

    async def doctor(self, _: Request) -> Any:
        return await self._services.node.doctor()

    async def mode(self, request: Request) -> Any:
        return await self._services.node.set_mode(read_body(request, ModeChange).mode)

    async def stop(self, _: Request) -> Any:
        self._services.node.stop()
        return {"stopping": True}

    async def ask(self, request: Request) -> Any:
        asking, body = self._part("asking"), read_body(request, AskInput)
        return self._stream(lambda emit: asking.ask(body, emit))

    async def explain(self, request: Request) -> Any:
        return await self._part("offloading").explain(read_body(request, AskInput))

    async def undo(self, _: Request) -> Any:
        return await self._part("asking").undo()

    async def questions(self, _: Request) -> Any:
        return [question.as_event() for question in self._questions.pending()]

    async def answer(self, request: Request) -> Any:
        self._questions.answer(request.path_params["id"], read_body(request, dict))
        return {"taken": True}

    async def pair_open(self, request: Request) -> Any:
        pairing, body = self._part("pairing"), read_body(request, PairOpen)
        return self._stream(lambda emit: pairing.open(body.trust, emit))

    async def pair_join(self, request: Request) -> Any:
        pairing, body = self._part("pairing"), read_body(request, PairJoin)
        return self._stream(lambda emit: pairing.join(body.code, body.at, body.trust, emit))

    async def peers(self, _: Request) -> Any:
        return await self._part("peers").all()

    async def trust(self, request: Request) -> Any:
        return await self._part("peers").trust(
            request.path_params["name"], read_body(request, TrustChange).trust
        )

    async def forget(self, request: Request) -> Any:
        return {"forgotten": await self._part("peers").forget(request.path_params["name"])}

    async def ping(self, request: Request) -> Any:
        return await self._part("peers").ping(request.path_params["name"], read_body(request, PingInput).timeout_s)

    async def grant(self, request: Request) -> Any:
        return await self._part("granting").show(request.path_params["name"])

    async def grant_edit(self, request: Request) -> Any:
        body = read_body(request, GrantChange)
        return await self._part("granting").edit(request.path_params["name"], body)

    async def grant_revoke(self, request: Request) -> Any:
        return await self._part("granting").revoke(request.path_params["name"])

    async def ledger(self, request: Request) -> Any:
        query = request.query_params
        return await self._part("ledger").entries(
            since=query.get("since"), peer=query.get("peer"), limit=whole_number(query.get("limit"), 100)
        )

    async def ledger_entry(self, request: Request) -> Any:
        return await self._part("ledger").entry(request.path_params["id"])

    async def ledger_verify(self, _: Request) -> Any:
        return await self._part("ledger").verify()

    async def models(self, _: Request) -> Any:
        return await self._part("models").all()

    async def model_info(self, request: Request) -> Any:
        return await self._part("models").info(request.path_params["name"])

    async def model_add(self, request: Request) -> Any:
        models, body = self._part("models"), read_body(request, ModelSource)
        return self._stream(lambda emit: models.add(body.source, emit))

    async def model_remove(self, request: Request) -> Any:
        return await self._part("models").remove(request.path_params["name"])

    async def model_use(self, request: Request) -> Any:
        return await self._part("models").use(request.path_params["name"])

    async def bench(self, request: Request) -> Any:
        bench, plan = self._part("bench"), read_body(request, BenchPlan)
        return self._stream(lambda emit: bench.run(plan, emit))

    async def evaluate(self, request: Request) -> Any:
        evaluating, body = self._part("evaluating"), read_body(request, EvalInput)
        return self._stream(lambda emit: evaluating.run(body, emit))

    async def send(self, request: Request) -> Any:
        body = read_body(request, MessageOut)
        return await self._part("messages").send(body.to, body.body)

    async def inbox(self, request: Request) -> Any:
        return await self._part("messages").inbox(whole_number(request.query_params.get("limit"), 50))

    async def outbox(self, request: Request) -> Any:
        return await self._part("messages").outbox(whole_number(request.query_params.get("limit"), 50))

    async def search(self, request: Request) -> Any:
        body = read_body(request, SearchInput)
        return await self._part("searching").search(body.query, body.limit, body.local)

    async def shares(self, _: Request) -> Any:
        return await self._part("searching").shares()

    async def share(self, request: Request) -> Any:
        searching, body = self._part("searching"), read_body(request, ShareInput)
        act = searching.preview_share if body.preview else searching.share
        return await act(body.folder, body.peers)

    async def unshare(self, request: Request) -> Any:
        return {"unshared": await self._part("searching").unshare(read_body(request, FolderInput).folder)}

    async def conversations(self, request: Request) -> Any:
        return await self._part("conversations").all(whole_number(request.query_params.get("limit"), 50))

    async def conversation(self, request: Request) -> Any:
        return await self._part("conversations").one(request.path_params["id"])

    async def conversation_delete(self, request: Request) -> Any:
        return {"deleted": await self._part("conversations").delete(request.path_params["id"])}


def whole_number(text: str | None, default: int) -> int:
    """A bounded count from a query string; raises UsageFault."""
    if text is None:
        return default
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise UsageFault("limit takes a whole number from 1 to 10000")
    return int(text)


def build_app(services: Services, questions: Questions) -> Starlette:
    """The ASGI application of one node."""
    routes = Routes(services, questions)

    def endpoint(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def run(request: Request) -> Response:
            if request.headers.get("host", "") != SOCKET_HOST:
                return reply(
                    msgspec.to_builtins(describe_failure(UsageFault("this socket serves the host name kith only"))), 421
                )
            try:
                await take_body(request)
                result = await handler(request)
            except Exception as error:
                view = describe_failure(error)
                if view.code == "bug":
                    log.error("%s %s failed", request.method, request.scope["route"].path, exc_info=error)
                return reply(msgspec.to_builtins(view), HTTP_STATUS.get(view.exit_code, 422))
            return result if isinstance(result, Response) else reply(result)

        return run

    table: list[tuple[str, str, Handler]] = [
        ("GET", "/v1/status", routes.status),
        ("GET", "/v1/health", routes.health),
        ("GET", "/v1/doctor", routes.doctor),
        ("PUT", "/v1/mode", routes.mode),
        ("POST", "/v1/stop", routes.stop),
        ("POST", "/v1/ask", routes.ask),
        ("POST", "/v1/offload/explain", routes.explain),
        ("POST", "/v1/undo", routes.undo),
        ("GET", "/v1/questions", routes.questions),
        ("POST", "/v1/questions/{id:str}", routes.answer),
        ("POST", "/v1/pair/open", routes.pair_open),
        ("POST", "/v1/pair/join", routes.pair_join),
        ("GET", "/v1/peers", routes.peers),
        ("POST", "/v1/peers/{name:str}/trust", routes.trust),
        ("DELETE", "/v1/peers/{name:str}", routes.forget),
        ("POST", "/v1/peers/{name:str}/ping", routes.ping),
        ("GET", "/v1/peers/{name:str}/grant", routes.grant),
        ("PATCH", "/v1/peers/{name:str}/grant", routes.grant_edit),
        ("DELETE", "/v1/peers/{name:str}/grant", routes.grant_revoke),
        ("GET", "/v1/ledger", routes.ledger),
        ("GET", "/v1/ledger/{id:int}", routes.ledger_entry),
        ("POST", "/v1/ledger/verify", routes.ledger_verify),
        ("GET", "/v1/models", routes.models),
        ("POST", "/v1/models", routes.model_add),
        ("GET", "/v1/models/{name:path}", routes.model_info),
        ("DELETE", "/v1/models/{name:path}", routes.model_remove),
        ("POST", "/v1/models/{name:path}/use", routes.model_use),
        ("POST", "/v1/bench", routes.bench),
        ("POST", "/v1/eval", routes.evaluate),
        ("POST", "/v1/messages", routes.send),
        ("GET", "/v1/inbox", routes.inbox),
        ("GET", "/v1/outbox", routes.outbox),
        ("POST", "/v1/search", routes.search),
        ("GET", "/v1/shares", routes.shares),
        ("POST", "/v1/shares", routes.share),
        ("DELETE", "/v1/shares", routes.unshare),
        ("GET", "/v1/conversations", routes.conversations),
        ("GET", "/v1/conversations/{id:str}", routes.conversation),
        ("DELETE", "/v1/conversations/{id:str}", routes.conversation_delete),
    ]
    return Starlette(routes=[Route(path, endpoint(handler), methods=[method]) for method, path, handler in table])
