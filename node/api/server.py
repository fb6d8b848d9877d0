"""Serves the local API on a Unix socket of mode 0600 until told to stop.

Started before the network is loaded. Must not know the routes.
"""

import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from hypercorn.typing import ASGIFramework

__all__ = ["serve_api"]


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
    config.graceful_timeout = 1
    config.include_server_header = False
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(
                lambda task_status: serve(app, config, shutdown_trigger=wait_for_stop, task_status=task_status)
            )
            os.chmod(socket_path, 0o600)
            task_status.started()
    finally:  # also when a request that hangs is cut off by the node's end
        _remove_socket(socket_path)


def _remove_socket(path: Path) -> None:
    if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
        path.unlink()
