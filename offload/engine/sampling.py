"""Which token comes next: greedy or drawn, and under a rule when there is one.

A grammar over a whole vocabulary costs 8 ms a token, over the best 64 candidates 0.15 ms: so the best one first, then
those, and all of it only when every one of them is refused. The first allowed one in falling order of logits is the
greedy choice under the rule. Must not know requests, batches or text.
"""

import ctypes
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from offload.engine.context import Context, Logits
from offload.engine.library import C
from offload.engine.rules import Rule
from offload.errors import BadGrammar

__all__ = ["Sampler"]

_TOP_K = 40
_FIRST_CANDIDATES = 64
_CANDIDATE = np.dtype([("id", "i4"), ("logit", "f4"), ("p", "f4")])
Tokens = npt.NDArray[np.int64]


class Vocabulary(Protocol):
    """What a sampler needs to know of its model."""

    end_tokens: frozenset[int]
    control_tokens: frozenset[int]


class Sampler:
    """The sampler of one sequence. Close it."""

    def __init__(
        self, model: Vocabulary, *, temperature: float, top_p: float, seed: int, rule: Rule | None = None,
    ) -> None:
        """Owns the rule from now on."""
        self._model = model
        self._greedy = temperature <= 0
        self._rule = rule
        self._chain: Any = None
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
        if self._chain:
            C.llama_sampler_free(self._chain)
            self._chain = None
        if self._rule is not None:
            self._rule.close()

    def follow(self, tokens: Iterable[int]) -> None:
        """Tell the rule what was written before. Raises BadGrammar when that breaks it."""
        if self._rule is None:
            return
        for token in tokens:
            if not self._rule.allowed(np.array([token], dtype=np.int64))[0]:
                raise BadGrammar("The text so far breaks the grammar.")
            self._rule.accept(token)

    def next(self, context: Context, row: int) -> int | None:
        """The next token after this row; None when the rule allows nothing any more."""
        if self._rule is None and self._chain is not None:
            return context.sample(self._chain, row)
        token = self.choose(context, row)
        if token is not None and token not in self._model.end_tokens:
            self.accept(token)
        return token

    def choose(self, context: Context, row: int) -> int | None:
        """As `next`, but the rule does not go on yet."""
        logits = context.logits(row)
        if self._rule is None:
            return int(logits.argmax()) if self._greedy else self._draw(np.arange(logits.size), logits)
        return self._choose_by_rule(self._rule, logits)

    def accept(self, token: int) -> None:
        """Let the rule go on behind a chosen token."""
        if self._rule is not None:
            self._rule.accept(token)
        if self._chain is not None:
            C.llama_sampler_accept(self._chain, token)

    def _choose_by_rule(self, rule: Rule, logits: Logits) -> int | None:
        masked = logits.copy()
        masked[self._never] = -np.inf
        if self._greedy:
            first = int(masked.argmax())
            if rule.allowed(np.array([first]))[0]:
                return first
        best = np.argpartition(-masked, _FIRST_CANDIDATES)[:_FIRST_CANDIDATES] if masked.size > _FIRST_CANDIDATES \
            else np.arange(masked.size)
        best = self._allowed(rule, best, masked)
        if best.size == 0:
            best = np.flatnonzero(rule.allowed(np.arange(masked.size)) & np.isfinite(masked))
            best = best[np.argsort(-masked[best], kind="stable")]
        if best.size == 0:
            return None
        return int(best[0]) if self._greedy else self._draw(best, masked[best])

    @staticmethod
    def _allowed(rule: Rule, tokens: Tokens, logits: Logits) -> Tokens:
        """Those that the rule takes and that are not shut out, in falling order of logits."""
        tokens = tokens[np.isfinite(logits[tokens])]
        ordered = tokens[np.argsort(-logits[tokens], kind="stable")]
        return ordered[rule.allowed(ordered)] if ordered.size else ordered

    def _draw(self, tokens: Tokens, logits: Logits) -> int:
        candidates = np.zeros(tokens.size, dtype=_CANDIDATE)
        candidates["id"], candidates["logit"] = tokens, logits
        pointer = candidates.ctypes.data_as(ctypes.POINTER(C.llama_token_data))
        array = C.llama_token_data_array(pointer, candidates.size, -1, False)
        C.llama_sampler_apply(self._chain, ctypes.byref(array))
        return int(array.data[array.selected].id) if array.selected >= 0 else int(tokens[0])
