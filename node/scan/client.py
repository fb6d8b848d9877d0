"""The node's side of the scan worker: texts in, vectors out; started on need, stopped when nobody asks any more.

Implements the agent's Embedder. Must not know wordllama, detectors or what the vectors are for.
"""

import sys
from array import array
from collections.abc import Iterator, Sequence

import trio

from node.scan.answering import AnsweringChild, FrontOfChild
from node.scan.errors import ScanTooLarge, ScanTooLate, ScanUnavailable
from node.scan.frames import Embed, Vectors
from offload.child.policy import RestartPolicy
from offload.child.process import start_child

__all__ = ["ScanWorker"]

_MODULE = "node.scan.worker"
_BATCH_TEXTS = 256
_BATCH_CHARS = 1_000_000
_MOST_TEXTS = 20_000
_FLOAT_BYTES = 4


class ScanWorker(FrontOfChild):
    """Vectors of texts. run() must be running."""

    def __init__(
        self, *, idle_stop_s: float = 300.0, deadline_s: float = 30.0, policy: RestartPolicy | None = None,
    ) -> None:
        self._deadline_s = deadline_s
        super().__init__(AnsweringChild(
            "scan worker", launch=lambda: start_child(_MODULE), greeting=Embed(0, []), idle_stop_s=idle_stop_s,
            policy=policy,
        ))

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text, in order, each of length 1 (zeros for a text without words).

        Raises ScanTooLarge, ScanBusy, ScanTooLate or ScanUnavailable. A worker that dies on it is tried once more.
        """
        if len(texts) > _MOST_TEXTS:
            raise ScanTooLarge()
        vectors: list[list[float]] = []
        with trio.move_on_after(self._deadline_s) as scope:
            for batch in _batches(texts):
                vectors += await self._embed_batch(batch)
        if scope.cancelled_caught:
            raise ScanTooLate()
        return vectors

    async def _embed_batch(self, texts: list[str]) -> list[list[float]]:
        report = await self._child.ask(lambda number: Embed(number, texts))
        size = self._child.dimensions
        if not isinstance(report, Vectors) or len(report.data) != len(texts) * size * _FLOAT_BYTES:
            raise ScanUnavailable("The text scanner answered with the wrong number of vectors.")
        numbers = array("f", report.data)
        if sys.byteorder == "big":
            numbers.byteswap()
        values = numbers.tolist()
        return [values[start:start + size] for start in range(0, len(values), size)]


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
