"""Starting net_child.py and looking at it from outside."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import trio

_SUPPORT = Path(__file__).parent
_ROOT = _SUPPORT.parents[1]


@dataclass
class Child:
    """A running child."""

    process: trio.Process
    peer_id: str
    addresses: list[str]

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    @property
    def rss_mib(self) -> float:
        return psutil.Process(self.process.pid).memory_info().rss / 2**20

    @property
    def alive(self) -> bool:
        return self.process.poll() is None


@asynccontextmanager
async def child(kind: str, name: str, *allowed: str, listen: str = "/ip4/127.0.0.1/tcp/0") -> AsyncIterator[Child]:
    """A node in its own process; killed at the end, frozen or not."""
    process = await trio.lowlevel.open_process(
        [sys.executable, str(_SUPPORT / "net_child.py"), kind, name, listen, *allowed],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{_ROOT}:{_SUPPORT}"},
    )
    try:
        assert process.stdout is not None
        line = b""
        with trio.fail_after(30):
            while not line.endswith(b"\n"):
                piece = await process.stdout.receive_some()
                assert piece, "the child ended before it served"
                line += piece
        said = json.loads(line)
        yield Child(process, said["peer_id"], said["addresses"])
    finally:
        with trio.CancelScope(shield=True):
            process.kill()
            await process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    await pipe.aclose()
