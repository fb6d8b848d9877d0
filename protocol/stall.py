"""Whether a provider still moves: any output counts, a sign of life only when it says something new.

A queue and a model that loads may stand still for longer, each for a stated time; nothing may be silent. Pure: times
come in. Must not know the machine that asks, its transport, or what happens after a stall.
"""

from typing import Literal

from protocol import limits
from protocol.frames.inference import Progress, ProgressState

__all__ = ["Movement", "StallReason"]

StallReason = Literal["stalled", "queued", "loading"]

_MAY_STAND_S: dict[ProgressState, tuple[float, StallReason]] = {
    "queued": (limits.QUEUED_STILL_S, "queued"),
    "loading": (limits.LOADING_STILL_S, "loading"),
}


class Movement:
    """What was heard of one answer, and when it last moved."""

    def __init__(self) -> None:
        self._heard_s = self._moved_s = 0.0
        self._state: ProgressState = "prefill"
        self._position = self._total = self._read = self._written = 0

    def begun(self, now_s: float, queue_position: int = 0) -> None:
        """The request is out, or was admitted at this place of a queue; 0 is at once."""
        self._heard_s = self._moved_s = now_s
        self._state, self._position = "queued" if queue_position else "prefill", queue_position

    def wrote(self, now_s: float, tokens: int) -> None:
        """Output came; so many tokens are here now."""
        self._heard_s = self._moved_s = now_s
        self._state, self._written = "decoding", max(self._written, tokens)

    def beat(self, told: Progress, now_s: float) -> None:
        """A sign of life. It counts as movement when its state changed or a counter went on."""
        self._heard_s = now_s
        reads = told.state == "prefill" and (told.prompt_done > self._read or told.prompt_total != self._total)
        waits_less = told.queue_position < self._position
        if told.state != self._state or waits_less or reads or told.output_tokens > self._written:
            self._moved_s = now_s
        self._state, self._position, self._total = told.state, told.queue_position, told.prompt_total
        self._read, self._written = told.prompt_done, max(self._written, told.output_tokens)

    @property
    def due_s(self) -> float:
        """When it will have stood still, or been silent, for too long."""
        return min(self._heard_s + limits.STALL_S, self._moved_s + self._patience[0])

    def verdict(self, now_s: float) -> StallReason | None:
        """Why to give it up now; None while it moves."""
        if now_s < self.due_s:
            return None
        return "stalled" if now_s >= self._heard_s + limits.STALL_S else self._patience[1]

    @property
    def _patience(self) -> tuple[float, StallReason]:
        return _MAY_STAND_S.get(self._state, (limits.STALL_S, "stalled"))
