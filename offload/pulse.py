"""Whether a worker lives and moves, by what it answers when it is asked. Must not know processes or clocks."""

from offload.worker_frames import Pong

__all__ = ["Pulse"]

_PONG_DEADLINE_S = 30.0
_STALL_S = 120.0
_NOTABLE_STANDSTILL_S = 10.0


class Pulse:
    """Of one worker while it has work. All times are a monotonic clock's seconds, passed in."""

    def __init__(self) -> None:
        self._pong_s = 0.0
        self._decodes = -1
        self._moved_s = 0.0

    def begin(self, now_s: float) -> None:
        """It is alive now, and nothing is known of its decodes."""
        self._pong_s = self._moved_s = now_s
        self._decodes = -1

    def beat(self, pong: Pong, now_s: float) -> None:
        """It answered."""
        self._pong_s = now_s
        if pong.decodes != self._decodes or not pong.running:
            self._decodes, self._moved_s = pong.decodes, now_s

    def standstill_s(self, now_s: float) -> float | None:
        """How long no decode has finished, once that is worth telling."""
        still_s = now_s - self._moved_s
        return still_s if still_s >= _NOTABLE_STANDSTILL_S else None

    def lost(self, now_s: float) -> bool:
        """Whether it gives no answer any more, or answers and decodes nothing."""
        return now_s - self._pong_s > _PONG_DEADLINE_S or now_s - self._moved_s > _STALL_S
