"""A node that keeps count of what its engine worker decodes, in decodes.jsonl of its home. A program for tests.

The worker is asked for its own counter all the time; nothing of the node's behaviour is changed. One line per change:
what happened ("pong" or "cancel"), decodes since the worker's start, and how many answers are at work.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import trio

from node.daemon.__main__ import run_node
from node.daemon.composition import Composition
from offload.child.errors import ChildGone
from offload.model_host import Job, ModelHost
from offload.worker_frames import Ping, Pong, decode_report, encode

LOG = Path(os.environ["KITH_HOME"]) / "decodes.jsonl"
PING_EVERY_S = 0.02

_run, _received, _cancel = ModelHost.run, ModelHost.received, ModelHost.cancel
_last: tuple[int, int] | None = None


def _note(what: str, decodes: int, running: int) -> None:
    with LOG.open("a") as file:
        file.write(json.dumps({"what": what, "decodes": decodes, "running": running}) + "\n")


async def _run_counted(self: ModelHost) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_keep_asking, self)
        await _run(self)


async def _keep_asking(host: ModelHost) -> None:
    while True:
        await trio.sleep(PING_EVERY_S)
        await _ask(host)


async def _ask(host: ModelHost) -> None:
    child = host.supervisor.child
    if child is not None and host.supervisor.state == "ready":
        try:
            await child.send(encode(Ping()))
        except ChildGone:
            return


def _received_counted(self: ModelHost, payload: bytes) -> None:
    global _last
    report: Any = decode_report(payload)
    if isinstance(report, Pong) and (report.decodes, report.running) != _last:
        _last = (report.decodes, report.running)
        _note("pong", *_last)
    _received(self, payload)


async def _cancel_counted(self: ModelHost, job: Job) -> None:
    if not job.over:
        _note("cancel", -1, -1)
        with trio.CancelScope(shield=True):  # half a frame would be the worker's end
            await _ask(self)  # the answer to this one says how far the worker was when it was told to stop
    await _cancel(self, job)


if __name__ == "__main__":
    ModelHost.run = _run_counted  # type: ignore[method-assign]
    ModelHost.received = _received_counted  # type: ignore[method-assign]
    ModelHost.cancel = _cancel_counted  # type: ignore[method-assign]
    sys.exit(run_node(sys.argv[1:], Composition()))
