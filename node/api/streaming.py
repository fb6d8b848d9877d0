"""A reply that is a stream of JSON lines, produced by one task and cancelled when the client goes away.

Written as an ASGI response of its own because a nursery must not live inside an async generator. Must not know what
the events mean.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from node.api.ports import Emit

__all__ = ["EventStream"]


class EventStream(Response):
    """Runs `produce(emit)`; each emitted mapping becomes one line of application/x-ndjson."""

    media_type = "application/x-ndjson"

    def __init__(
        self, produce: Callable[[Emit], Awaitable[None]], on_error: Callable[[Exception], Mapping[str, Any]]
    ) -> None:
        super().__init__()
        self._produce = produce
        self._on_error = on_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        headers = [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

        async def emit(event: Mapping[str, Any]) -> None:
            body = msgspec.json.encode({"schema": 1, **event}) + b"\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})

        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            try:
                await self._produce(emit)
            except Exception as error:
                await emit({"event": "error", **self._on_error(error)})
            nursery.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
