"""The local API as one application: the groups of routes behind one door, failures as JSON.

Reached over a Unix socket of mode 0600: whoever can open it is the owner. The Host header must be "kith", so that no
web page can reach it through a proxy. Must not know what a route does.
"""

import logging
from collections.abc import Awaitable, Callable

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from node.api.asking_routes import AskingRoutes
from node.api.event_routes import EventRoutes
from node.api.exchange import Counter, Handler, Row, reply, take_body
from node.api.failures import HTTP_STATUS, UsageFault, describe_failure
from node.api.key_routes import KeyRoutes
from node.api.lesson_routes import LessonRoutes
from node.api.mail_routes import MailRoutes
from node.api.model_routes import ModelRoutes
from node.api.node_routes import NodeRoutes
from node.api.peer_routes import PeerRoutes
from node.api.privacy_routes import PrivacyRoutes
from node.api.questions import Questions
from node.api.queue_routes import QueueRoutes
from node.api.reminder_routes import ReminderRoutes
from node.api.secret_routes import SecretRoutes
from node.api.services import Services

__all__ = ["build_app"]

SOCKET_HOST = "kith"
GROUPS = (
    NodeRoutes, AskingRoutes, PeerRoutes, PrivacyRoutes, SecretRoutes, KeyRoutes, ModelRoutes, MailRoutes, EventRoutes,
    QueueRoutes, ReminderRoutes, LessonRoutes,
)

log = logging.getLogger(__name__)


def build_app(services: Services, questions: Questions) -> Starlette:
    """The ASGI application of one node."""
    at = Counter(services, questions)
    table: list[Row] = [row for group in GROUPS for row in group(at).table()]
    return Starlette(routes=[Route(path, _endpoint(handler), methods=[method]) for method, path, handler in table])


def _endpoint(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def run(request: Request) -> Response:
        if request.headers.get("host", "") != SOCKET_HOST:
            return reply(
                msgspec.to_builtins(describe_failure(UsageFault("this socket serves the host name kith only"))), 421
            )
        try:
            await take_body(request)
            result = await handler(request)
        except ClientDisconnect:     # hung up before its request was whole: nothing was done, nobody to tell
            return Response(status_code=400)
        except Exception as error:
            view = describe_failure(error)
            if view.code == "bug":
                log.error("%s %s failed", request.method, request.scope["route"].path, exc_info=error)
            return reply(msgspec.to_builtins(view), HTTP_STATUS.get(view.exit_code, 422))
        return result if isinstance(result, Response) else reply(result)

    return run
