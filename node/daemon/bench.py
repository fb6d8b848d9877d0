"""The speed of this node's models for the owner. Implements node.api.ports.Bench. Must not know how it is measured."""

import logging
from pathlib import Path

import msgspec
import trio

from node.api.ports import Emit
from node.errors import KithError
from offload.bench import BenchPlan, BenchRow, run_bench
from offload.joined_engine import JoinedEngine

__all__ = ["Bench"]

log = logging.getLogger(__name__)


class Bench:
    """One run at a time: two would measure each other."""

    def __init__(self, engine: JoinedEngine) -> None:
        self._engine = engine
        self._running = False

    async def run(self, plan: BenchPlan, emit: Emit) -> None:
        """Events: row after each line, then bench with the whole report. Raises KithError, OffloadError."""
        if self._running:
            raise KithError("Another measurement is running.", hint="Wait for its end.")
        self._running = True
        try:
            async def tell(row: BenchRow) -> None:
                await emit({"event": "row", **msgspec.to_builtins(row)})

            report = await run_bench(self._engine, plan, tell=tell, memory_bytes=self._memory_bytes)
            await emit({"event": "bench", **msgspec.to_builtins(report)})
            await trio.lowlevel.checkpoint()
        finally:
            self._running = False

    def _memory_bytes(self) -> int | None:
        """Resident bytes of the worker processes, mapped model files included; None when there is none to look at."""
        sizes = [size for pid in self._engine.worker_pids if (size := _resident_bytes(pid)) is not None]
        return sum(sizes) if sizes else None


def _resident_bytes(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines()
    except OSError as error:
        log.info("the memory of a worker is unknown: %s", error.strerror)
        return None
    for line in lines:
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return None
