"""The node's side of the detectors' process: texts in, spans out; started on need, stopped when nobody asks any more.

Must not know which detectors there are, labels, placeholders or peers.
"""

from collections.abc import Sequence

import trio

from node.scan.answering import AnsweringChild, FrontOfChild
from node.scan.errors import ScanTooLarge, ScanTooLate, ScanUnavailable
from node.scan.frames import Detect, Spans
from offload.child.errors import ChildError
from offload.child.policy import RestartPolicy
from offload.child.process import start_child

__all__ = ["DetectWorker"]

_MODULE = "node.scan.detect_worker"
_MOST_CHARS = 1_000_000
_START_S = 60.0             # importing and loading take 3 to 15 s
_CHARS_PER_S = 400.0        # a tenth of what one slow core does


class DetectWorker(FrontOfChild):
    """Spans of what may be personal. run() must be running."""

    def __init__(
        self, *, idle_stop_s: float = 900.0, deadline_s: float = _START_S, policy: RestartPolicy | None = None,
    ) -> None:
        """deadline_s: for one call, besides a second per 400 characters; a process that misses it is ended."""
        self._deadline_s = deadline_s
        super().__init__(AnsweringChild(
            "detector", launch=lambda: start_child(_MODULE), greeting=Detect(0, [], []), idle_stop_s=idle_stop_s,
            policy=policy,
        ))

    async def warm(self) -> None:
        """Have the process started before it is needed. Raises ScanUnavailable."""
        try:
            await self._child.warm()
        except ChildError as error:
            raise ScanUnavailable(f"The detector failed: {error}.") from error

    async def detect(self, texts: Sequence[str], foreign: Sequence[bool]) -> list[list[tuple[int, int, str]]]:
        """For each text, in order, (start, end, type) of what may be personal. foreign: it is mostly not English.

        Raises ScanTooLarge, ScanBusy, ScanTooLate or ScanUnavailable. A process that dies on it is tried once more.
        """
        size = sum(len(text) for text in texts)
        if size > _MOST_CHARS:
            raise ScanTooLarge()
        listed, other = list(texts), list(foreign)
        with trio.move_on_after(self._deadline_s + size / _CHARS_PER_S) as scope:
            report = await self._child.ask(lambda number: Detect(number, listed, other))
        if scope.cancelled_caught:
            self._child.kill()
            raise ScanTooLate()
        if not isinstance(report, Spans) or len(report.spans) != len(listed):
            raise ScanUnavailable("The detector answered something else than was asked.")
        return report.spans
