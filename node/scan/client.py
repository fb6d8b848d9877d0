"""The node's side of the scan worker: texts in, vectors out; started on need, stopped when nobody asks any more.

Implements the agent's Embedder. Must not know wordllama, detectors or what the vectors are for.
"""

import logging
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import trio
from trio import TaskStatus

from node.scan.errors import ScanBusy, ScanTooLarge, ScanTooLate, ScanUnavailable
from node.scan.frames import Embed, ScanReady, ScanRefused, Vectors, decode_report, encode
from offload.child.errors import ChildError, ChildStartFailed
from offload.child.policy import RestartPolicy
from offload.child.process import Child, Death, start_child
from offload.child.supervisor import ChildState, Supervisor

__all__ = ["ScanWorker"]

_MODULE = "node.scan.worker"
_BATCH_TEXTS = 256
_BATCH_CHARS = 1_000_000
_MOST_TEXTS = 20_000
_MOST_WAITING = 64
_FLOAT_BYTES = 4
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Waiting:
    done: trio.Event = field(default_factory=trio.Event)
    data: bytes | None = None
    reason: str = "the scan worker ended"


class ScanWorker:
    """Vectors of texts. run() must be running."""

    def __init__(
        self, *, idle_stop_s: float = 300.0, deadline_s: float = 30.0, policy: RestartPolicy | None = None,
    ) -> None:
        self._deadline_s = deadline_s
        self._waiting: dict[int, _Waiting] = {}
        self._numbers = 0
        self._dimensions = 0
        self.box: Mapping[str, str] = {}
        self.probe: Mapping[str, str] = {}
        self._supervisor = Supervisor(
            "scan worker", self, policy=policy, idle_stop_s=idle_stop_s, is_busy=lambda: bool(self._waiting))

    @property
    def state(self) -> ChildState:
        """How the worker is; idle also means not started yet."""
        return self._supervisor.state

    @property
    def pid(self) -> int | None:
        """The present worker process."""
        child = self._supervisor.child
        return child.pid if child is not None else None

    async def run(self, *, task_status: TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; the worker is then ended."""
        task_status.started()
        await self._supervisor.run()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text, in order, each of length 1 (zeros for a text without words).

        Raises ScanTooLarge, ScanBusy, ScanTooLate or ScanUnavailable. A worker that dies on it is tried once more.
        """
        if len(texts) > _MOST_TEXTS:
            raise ScanTooLarge()
        vectors: list[list[float]] = []
        with trio.move_on_after(self._deadline_s) as scope:
            for batch in _batches(texts):
                vectors += self._unpacked(await self._ask(batch), len(batch))
        if scope.cancelled_caught:
            raise ScanTooLate()
        return vectors

    async def _ask(self, texts: list[str]) -> bytes:
        data, reason = await self._ask_once(texts)
        if data is None:
            data, reason = await self._ask_once(texts)
        if data is None:
            raise ScanUnavailable(f"The text scanner failed: {reason}.")
        return data

    async def _ask_once(self, texts: list[str]) -> tuple[bytes | None, str]:
        if len(self._waiting) >= _MOST_WAITING:
            raise ScanBusy()
        self._numbers += 1
        number = self._numbers
        waiting = self._waiting[number] = _Waiting()
        try:
            child = await self._supervisor.ready()
            await child.send(encode(Embed(number, texts)))
            await waiting.done.wait()
        except ChildError as error:
            return None, str(error)
        finally:
            del self._waiting[number]
        return waiting.data, waiting.reason

    def _unpacked(self, data: bytes, count: int) -> list[list[float]]:
        if len(data) != count * self._dimensions * _FLOAT_BYTES:
            raise ScanUnavailable("The text scanner answered with the wrong number of vectors.")
        numbers = array("f", data)
        if sys.byteorder == "big":
            numbers.byteswap()
        values = numbers.tolist()
        size = self._dimensions
        return [values[start:start + size] for start in range(0, len(values), size)]

    # -- what the supervisor asks

    def launch(self) -> Child:
        """Start the worker's process."""
        return start_child(_MODULE)

    def greeting(self) -> bytes:
        """Nothing to set up yet."""
        return encode(Embed(0, []))

    def became_ready(self, payload: bytes) -> None:
        """Take note of the box."""
        match _decoded(payload):
            case ScanReady(dimensions=dimensions, box=box, probe=probe):
                self._dimensions, self.box, self.probe = dimensions, box, probe
                missing = {layer: state for layer, state in box.items() if state != "held"}
                open_ways = [attempt for attempt, found in probe.items() if found == "possible"]
                if missing or open_ways:
                    _log.warning("the scan worker's box has gaps: %s %s", missing, open_ways)
            case _:
                raise ChildStartFailed("it spoke out of turn")

    def received(self, payload: bytes) -> None:
        """Hand an answer to who waits for it."""
        match _decoded(payload):
            case Vectors(number=number, data=data):
                waiting = self._waiting.get(number)
                if waiting is not None:
                    waiting.data = data
                    waiting.done.set()
            case ScanRefused(number=number, reason=reason):
                waiting = self._waiting.get(number)
                if waiting is not None:
                    waiting.reason = reason
                    waiting.done.set()
            case _:
                raise ChildError("it spoke out of turn")

    def died(self, death: Death, *, was_ready: bool) -> bool:
        """Those who wait ask again, which starts it again."""
        wanted_back = bool(self._waiting)
        if was_ready:
            for waiting in self._waiting.values():
                waiting.reason = f"the scan worker ended ({death.reason})"
                waiting.done.set()
        return wanted_back

    def gave_up(self, reason: str) -> None:
        """Nobody needs to wait any longer."""
        for waiting in self._waiting.values():
            waiting.reason = reason
            waiting.done.set()


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts in order, in frames that stay well below the pipe's limit."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if len(text) > _BATCH_CHARS:
            raise ScanTooLarge()
        if batch and (len(batch) >= _BATCH_TEXTS or size + len(text) > _BATCH_CHARS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _decoded(payload: bytes) -> ScanReady | Vectors | ScanRefused:
    try:
        return decode_report(payload)
    except msgspec.DecodeError as error:
        raise ChildError("it sent what can't be read") from error
