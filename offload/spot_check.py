"""Whether a peer runs the model that it names, from how likely that very model, here, holds a few of the peer's tokens.

A greedy answer takes the likeliest token each time. Computed elsewhere its last bits differ, and where two tokens are
about as likely the other one may win: so the loss in log-probability is compared with a measured tolerance, never the
tokens. Must not know peers, engines or when a check is made.

Measured with a model of 135M parameters, 12 answers: the mean loss per token of an honest answer was 0.011 at most over
threads 1 and 2, alone and in batches of 4, with and without a cached prompt; no single token lost more than 0.42. The
same weights in a coarser quantisation lost 0.2 to 1.0. Weights that were only packed anew, finer than before, compute
the same answers and are not told apart, which harms nobody.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MEAN_TOLERANCE", "SCORED_TOKENS", "Evidence", "Verdict"]

SCORED_TOKENS = 32
"""Of each answer, at most."""
MEAN_TOLERANCE = 0.05
"""Natural log units lost per token."""
FEWEST_TOKENS = 32
"""Fewer say nothing yet."""
CHECKS_KEPT = 4


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checks so far say. fits None: too little to say."""

    fits: bool | None
    mean_loss: float
    tokens: int


class Evidence:
    """The latest checks of one peer and model."""

    def __init__(self) -> None:
        self._checks: deque[tuple[float, int]] = deque(maxlen=CHECKS_KEPT)

    def add(self, chosen: Sequence[float], best: Sequence[float]) -> Verdict:
        """One more check: the log-probability of each of the peer's tokens here, and of the likeliest in its place."""
        loss = sum(top - one for one, top in zip(chosen, best, strict=True))
        self._checks.append((loss, len(chosen)))
        return self.verdict

    @property
    def verdict(self) -> Verdict:
        """Over all checks that are kept."""
        loss, tokens = sum(one for one, _ in self._checks), sum(count for _, count in self._checks)
        mean = loss / tokens if tokens else 0.0
        fits = None if tokens < FEWEST_TOKENS else mean <= MEAN_TOLERANCE
        return Verdict(fits, mean, tokens)
