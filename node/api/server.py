"""Serves the local API on a Unix socket of mode 0600 until told to stop.

Started before the network is loaded. A connection that fails ends alone: Hypercorn's own loop ends the whole server,
and the node with it, when a client hangs up at the wrong moment, so accepting is done here. Must not know the routes.
"""

import logging
import os
import stat
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import trio
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, ConnectionState
from hypercorn.utils import wrap_app

__all__ = ["serve_api"]

GRACE_S = 1.0   # what is running when the node stops may take this long to end

log = logging.getLogger(__name__)


async def serve_api(
    app: ASGIFramework,
    socket_path: Path,
    wait_for_stop: Callable[[], Awaitable[None]],
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run until wait_for_stop returns. A socket file left by a dead node is replaced: the caller holds the node's
    lock."""
    _remove_socket(socket_path)
    config = Config()
    config.bind = [f"unix:{socket_path}"]
    config.umask = 0o077
    config.accesslog = None
    config.errorlog = None
    config.include_server_header = False
    context = WorkerContext(None)
    wrapped = wrap_app(app, config.wsgi_max_body_size, "asgi")

    async def serve_one(stream: trio.SocketStream) -> None:
        await _alone(TCPServer(wrapped, config, context, ConnectionState({}), stream).run)

    try:
        listeners = _listen(config)
        os.chmod(socket_path, 0o600)
        async with trio.open_nursery() as connections:
            async with trio.open_nursery() as accepting:
                accepting.start_soon(
                    partial(trio.serve_listeners, serve_one, listeners, handler_nursery=connections)
                )
                task_status.started()
                await wait_for_stop()
                accepting.cancel_scope.cancel()
            await context.terminated.set()
            connections.cancel_scope.deadline = trio.current_time() + GRACE_S
    finally:  # also when a request that hangs is cut off by the node's end
        _remove_socket(socket_path)


def _listen(config: Config) -> list[trio.SocketListener]:
    listeners = []
    for sock in config.create_sockets().insecure_sockets:
        sock.listen(config.backlog)
        listeners.append(trio.SocketListener(trio.socket.from_stdlib_socket(sock)))  # noqa: TID251 - the local API
    return listeners


async def _alone(run: Callable[[], Awaitable[None]]) -> None:
    """Run one connection; what goes wrong in it is logged by kind, and no other connection's business."""
    try:
        await run()
    except* Exception as failed:
        log.info("a connection of the local API broke off: %s", ", ".join(sorted(_kinds(failed))))


def _kinds(error: BaseException) -> set[str]:
    if isinstance(error, BaseExceptionGroup):
        return {kind for one in error.exceptions for kind in _kinds(one)}
    return {type(error).__name__}


def _remove_socket(path: Path) -> None:
    if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
        path.unlink()
