"""How likely a model holds given tokens behind a prompt: the log-probability of each, beside that of the likeliest.

A context of its own for each scoring, so that no answer's memory is touched; one decode at a time. One thread only.
Must not know requests, the pipe, or what the numbers are for.
"""

import numpy as np

from offload.engine.context import BATCH_TOKENS, Context
from offload.engine.library import Model
from offload.errors import EngineError, PromptTooLong

__all__ = ["MOST_SCORED_TOKENS", "Scoring"]

MOST_SCORED_TOKENS = 1536
"""Prompt and tokens together: a second context must fit into the worker's memory beside the first."""
_ROUND_TOKENS = 256


class Scoring:
    """One scoring under way. close() it."""

    def __init__(
        self, model: Model, prompt: list[int], answer: list[int], *, threads: int, chunk_tokens: int = BATCH_TOKENS,
    ) -> None:
        """chunk_tokens: how many are read in one decode. Raises PromptTooLong, ModelUnusable, EngineError."""
        if len(prompt) + len(answer) > MOST_SCORED_TOKENS:
            raise PromptTooLong()
        if not prompt or not answer or not all(0 <= token < model.size for token in answer):
            raise EngineError("There is nothing to score, or it is not of this model's vocabulary.")
        self._tokens = [*prompt, *answer[:-1]]
        self._answer = answer
        self._first_wanted = len(prompt) - 1
        self._chunk_tokens = min(chunk_tokens, BATCH_TOKENS)
        self._done = 0
        self.chosen: list[float] = []
        self.best: list[float] = []
        room = -(-len(self._tokens) // _ROUND_TOKENS) * _ROUND_TOKENS
        self._context = Context(model, context_tokens=room, sequences=1, threads=threads)

    def close(self) -> None:
        """Free the memory."""
        self._context.close()

    def step(self) -> bool:
        """Read one more chunk; True when chosen and best are complete. Raises EngineError."""
        begin, end = self._done, min(self._done + self._chunk_tokens, len(self._tokens))
        wanted = max(0, end - max(begin, self._first_wanted))
        self._context.begin_batch()
        last = self._context.add(0, begin, self._tokens[begin:end], want_last=wanted)
        if self._context.decode() != 0:
            raise EngineError("The model failed at scoring.")
        for row in range(last - wanted + 1, last + 1):
            self._look(row)
        self._done = end
        return end == len(self._tokens)

    def _look(self, row: int) -> None:
        logits = self._context.logits(row).astype(np.float64)
        top = float(logits.max())
        total = top + float(np.log(np.exp(logits - top).sum()))
        self.chosen.append(float(logits[self._answer[len(self.chosen)]]) - total)
        self.best.append(top - total)
