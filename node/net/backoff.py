"""How long to wait before calling an unreachable peer again: short at first, longer the longer it is away, never in
step.

Pure: time and entropy are passed in. Must not know peers or connections.
"""

from node.clock import Entropy
from node.net.limits import LinkTiming

__all__ = ["Backoff"]

_JITTER = 0.2


class Backoff:
    """first_s, first_s * factor, ... up to a cap that is cap_s after a fresh loss and cap_share of the absence
    later."""

    def __init__(self, entropy: Entropy, timing: LinkTiming) -> None:
        self._entropy = entropy
        self._timing = timing
        self._attempts = 0

    def next_s(self, away_s: float) -> float:
        """The pause before the next attempt, for a peer that has been away for away_s; within 20 % of the plan, so that
        two nodes never call each other in step for long."""
        timing = self._timing
        cap = min(timing.ceiling_s, max(timing.cap_s, away_s * timing.cap_share))
        # the exponent is bounded: beyond it every product is above any cap
        planned = min(cap, timing.first_s * timing.factor ** min(self._attempts, 64))
        self._attempts += 1
        swing = int.from_bytes(self._entropy.bytes(2), "big") / 0xFFFF * 2 - 1
        return planned * (1 + _JITTER * swing)

    def reset(self) -> None:
        """The peer was reached, or something changed: start short again."""
        self._attempts = 0
