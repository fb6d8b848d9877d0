"""Which token comes next: greedy or drawn, and under a grammar when there is one.

A grammar over a whole vocabulary costs 8 ms a token, over the best 64 candidates 0.15 ms: so those first, all of it
only when every one of them is refused. Must not know requests, batches or text.
"""

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np
from llama_cpp import llama_cpp as C

from offload.engine.context import Context, Logits
from offload.engine.library import Model
from offload.errors import BadGrammar

__all__ = ["GRAMMAR_LIMIT_BYTES", "Sampler"]

GRAMMAR_LIMIT_BYTES = 64 * 1024
_TOP_K = 40
_FIRST_CANDIDATES = 64
Candidates = np.ndarray[Any, Any]
_CANDIDATE = np.dtype([("id", "i4"), ("logit", "f4"), ("p", "f4")])


class Sampler:
    """The sampler of one sequence. Close it."""

    def __init__(self, model: Model, *, temperature: float, top_p: float, seed: int, grammar: str | None) -> None:
        """Raises BadGrammar."""
        self._model = model
        self._greedy = temperature <= 0
        self._grammar: Any = None
        self._chain: Any = None
        if grammar is not None:
            # An empty one would mean "anything" to llama.cpp.
            if not 0 < len(grammar.strip().encode()) <= GRAMMAR_LIMIT_BYTES or "\0" in grammar:
                raise BadGrammar("The grammar is empty or too long.")
            self._grammar = C.llama_sampler_init_grammar(model.vocab, grammar.encode(), b"root")
            if not self._grammar:
                raise BadGrammar("The grammar can't be parsed.")
        if not self._greedy:
            self._chain = C.llama_sampler_chain_init(C.llama_sampler_chain_default_params())
            for part in (
                C.llama_sampler_init_top_k(_TOP_K), C.llama_sampler_init_top_p(top_p, 1),
                C.llama_sampler_init_temp(temperature), C.llama_sampler_init_dist(seed & 0xFFFFFFFF),
            ):
                C.llama_sampler_chain_add(self._chain, part)
        # Printed as text, a control token fits into a grammar's strings; as a token it would end or forge a turn.
        self._never = np.array(sorted(model.control_tokens - model.end_tokens), dtype=np.int64)

    def close(self) -> None:
        """Free what llama.cpp holds for it."""
        for sampler in (self._chain, self._grammar):
            if sampler:
                C.llama_sampler_free(sampler)
        self._chain = self._grammar = None

    def follow(self, tokens: Iterable[int]) -> None:
        """Tell the grammar what was written before. Raises BadGrammar when that breaks it."""
        if self._grammar is None:
            return
        for token in tokens:
            if self._allowed(np.array([token], dtype=np.int64), np.zeros(1, dtype=np.float32)).size == 0:
                raise BadGrammar("The text so far breaks the grammar.")
            C.llama_sampler_accept(self._grammar, token)

    def next(self, context: Context, row: int) -> int | None:
        """The next token after this row; None when the grammar allows nothing any more."""
        if self._grammar is None:
            if self._chain is None:
                return int(context.logits(row).argmax())
            return context.sample(self._chain, row)
        token = self._next_by_grammar(context.logits(row))
        if token is not None and token not in self._model.end_tokens:
            C.llama_sampler_accept(self._grammar, token)
            if self._chain is not None:
                C.llama_sampler_accept(self._chain, token)
        return token

    def _next_by_grammar(self, logits: Logits) -> int | None:
        masked = logits.copy()
        masked[self._never] = -np.inf
        best = np.argpartition(-masked, _FIRST_CANDIDATES)[:_FIRST_CANDIDATES] if masked.size > _FIRST_CANDIDATES \
            else np.arange(masked.size)
        best = best[np.argsort(-masked[best], kind="stable")]
        if self._greedy:
            first = self._allowed(best[:1], masked[best[:1]])
            if first.size:
                return int(first["id"][0])
        allowed = self._allowed(best, masked[best])
        if allowed.size == 0:
            everything = np.argsort(-masked, kind="stable")
            allowed = self._allowed(everything, masked[everything])
        if allowed.size == 0:
            return None
        return int(allowed["id"][0]) if self._greedy else self._draw(allowed)

    def _allowed(self, tokens: Candidates, logits: Logits) -> Candidates:
        """The candidates that the grammar takes, in the given order. Nothing is accepted yet."""
        candidates = np.zeros(tokens.size, dtype=_CANDIDATE)
        candidates["id"], candidates["logit"] = tokens, logits
        self._apply(self._grammar, candidates)
        allowed: Candidates = candidates[np.isfinite(candidates["logit"])]
        return allowed

    def _draw(self, allowed: Candidates) -> int:
        array = self._apply(self._chain, allowed)
        return int(array.data[array.selected].id) if array.selected >= 0 else int(allowed["id"][0])

    @staticmethod
    def _apply(sampler: Any, candidates: Candidates) -> Any:
        pointer = candidates.ctypes.data_as(ctypes.POINTER(C.llama_token_data))
        array = C.llama_token_data_array(pointer, candidates.size, -1, False)
        C.llama_sampler_apply(sampler, ctypes.byref(array))
        return array
