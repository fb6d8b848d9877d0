"""A fake context that also has logits: what comes next is a function of the sequence's tokens, as with a real model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from fake_context import FakeContext

from offload.engine.context import Logits

__all__ = ["SpeakingContext"]


@dataclass
class SpeakingContext(FakeContext):
    """wants(tokens of a sequence) gives the tokens that should follow, best first."""

    wants: Callable[[Sequence[int]], Sequence[int]] = lambda _tokens: [0]
    size: int = 300
    refuse_cuts: int = 0        # how many of the next cuts are refused
    cuts: list[int] = field(default_factory=list)
    _rows: list[list[int]] = field(default_factory=list)

    def decode(self) -> int:
        rows = [
            self.memory[sequence][:position] + tokens[:count + 1]
            for sequence, position, tokens in self._batch for count in range(len(tokens))]
        result = super().decode()
        self._rows = rows
        return result

    def logits(self, row: int) -> Logits:
        logits = np.zeros(self.size, dtype=np.float32)
        for rank, token in enumerate(self.wants(self._rows[row])):
            logits[token] = 100.0 - rank
        return logits

    def cut(self, sequence: int, keep: int) -> bool:
        self.cuts.append(len(self.memory[sequence]) - keep)
        if self.refuse_cuts:
            self.refuse_cuts -= 1
            return False
        return super().cut(sequence, keep)
