"""One HTTP exchange of the local API: the request's bytes in, checked records, JSON out; streams of events.

Shared by the route groups beside this file. Must not know which routes there are, nor what a service does.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from node.api.failures import Starting, UsageFault, describe_failure
from node.api.ports import Emit
from node.api.questions import Questions
from node.api.services import Services
from node.api.streaming import EventStream
from node.errors import Locked

__all__ = ["Counter", "Handler", "Row", "read_body", "reply", "row_number", "take_body", "whole_number"]

MAX_BODY_BYTES = 4 * 1024 * 1024
MOST_ROWS = 2**63 - 1   # the database's largest whole number

log = logging.getLogger(__name__)

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Any]]
Row = tuple[str, str, Handler]
"""Method, path, handler: one line of the table of routes."""


class Counter:
    """What a group of routes stands on: the node's services and the questions that wait for the owner."""

    def __init__(self, services: Services, questions: Questions) -> None:
        self.services = services
        self.questions = questions

    def part(self, name: str) -> Any:
        """The service of this name. Raises Starting while the node has not come to it."""
        part = getattr(self.services, name)
        if part is None and self.services.locked():
            raise Locked
        if part is None:
            raise Starting(f"the node is still starting: {name} is not ready")
        return part

    def stream(self, produce: Callable[[Emit], Awaitable[None]]) -> EventStream:
        """A response of events, in which the owner's questions are asked too."""
        async def listening(emit: Emit) -> None:
            self.questions.listen(emit)
            await produce(emit)

        def failed(error: Exception) -> dict[str, Any]:
            view = describe_failure(error)
            if view.code == "bug":
                log.error("a request failed", exc_info=error)
            return msgspec.to_builtins(view)  # type: ignore[no-any-return]

        return EventStream(listening, failed)


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


def row_number(number: int) -> int:
    """A number from a path that the store can look up; raises UsageFault."""
    if number > MOST_ROWS:
        raise UsageFault("no entry has such a number")
    return number


def whole_number(text: str | None, default: int) -> int:
    """A bounded count from a query string; raises UsageFault."""
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 5 or not 1 <= int(text) <= 10_000:
        raise UsageFault("limit takes a whole number from 1 to 10000")
    return int(text)
