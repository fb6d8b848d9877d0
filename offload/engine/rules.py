"""What an answer's tokens are held to: a llama.cpp grammar, or an automaton made from a JSON schema or a plain grammar.

Must not know logits, requests or batches.
"""

import ctypes
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from offload.engine.automaton import Automaton, State
from offload.engine.gbnf import language_of_grammar
from offload.engine.library import C, Model, json_schema_to_gbnf
from offload.errors import BadGrammar
from offload.schema import BeyondAutomaton, read_schema, schema_language

__all__ = ["GRAMMAR_LIMIT_BYTES", "GrammarRule", "Pieces", "Rule", "SchemaRule", "rule_for"]

GRAMMAR_LIMIT_BYTES = 64 * 1024
_MANY = 256     # above, tokens whose first byte is wrong are sorted out together
_CANDIDATE = np.dtype([("id", "i4"), ("logit", "f4"), ("p", "f4")])
Tokens = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Pieces(Protocol):
    """What a rule needs to know of the vocabulary."""

    end_tokens: frozenset[int]
    @property
    def first_bytes(self) -> npt.NDArray[np.int16]:
        """The first byte of each token, -1 for one without."""
        ...

    def piece(self, token: int) -> bytes:
        """The bytes of a token, empty for a control token."""
        ...


class Rule(Protocol):
    """Says which tokens may come next."""

    def allowed(self, tokens: Tokens) -> Flags:
        """Which of these may come next. Nothing is taken yet."""
        ...

    def accept(self, token: int) -> None:
        """Go on behind this token, which must be allowed."""
        ...

    def close(self) -> None:
        """Free it."""
        ...


class GrammarRule:
    """A GBNF grammar with a rule `root`."""

    def __init__(self, model: Model, grammar: str) -> None:
        """Raises BadGrammar."""
        # An empty one would mean "anything" to llama.cpp.
        if not 0 < len(grammar.strip().encode()) <= GRAMMAR_LIMIT_BYTES or "\0" in grammar:
            raise BadGrammar("The grammar is empty or too long.")
        self._sampler: Any = C.llama_sampler_init_grammar(model.vocab, grammar.encode(), b"root")
        if not self._sampler:
            raise BadGrammar("The grammar can't be parsed.")

    def allowed(self, tokens: Tokens) -> Flags:
        """Which of these may come next. 6 to 17 ms for 50,000 candidates, 0.15 ms for 64."""
        candidates = np.zeros(tokens.size, dtype=_CANDIDATE)
        candidates["id"] = tokens
        pointer = candidates.ctypes.data_as(ctypes.POINTER(C.llama_token_data))
        array = C.llama_token_data_array(pointer, candidates.size, -1, False)
        C.llama_sampler_apply(self._sampler, ctypes.byref(array))
        flags: Flags = np.isfinite(candidates["logit"])
        return flags

    def accept(self, token: int) -> None:
        """Go on behind this token. A refused one would end the process: ask `allowed` first."""
        C.llama_sampler_accept(self._sampler, token)

    def close(self) -> None:
        """Free the grammar."""
        if self._sampler:
            C.llama_sampler_free(self._sampler)
            self._sampler = None


class SchemaRule:
    """An automaton over bytes. Its state can be set back, so that forced text and seams can be worked out."""

    def __init__(self, pieces: Pieces, automaton: Automaton) -> None:
        self.automaton = automaton
        self.state: State = automaton.start
        self._pieces = pieces

    @property
    def done(self) -> bool:
        """Whether nothing may follow any more."""
        return self.automaton.done(self.state)

    def allowed(self, tokens: Tokens) -> Flags:
        """Which of these may come next. A control token has no bytes and never may; an end token only at an end."""
        if tokens.size <= _MANY:
            return self._each(tokens)
        first = self._pieces.first_bytes[tokens]
        begins = np.array([*(self.state.next_bytes >> byte & 1 for byte in range(256)), 0], dtype=np.bool_)
        flags: Flags = begins[first] | np.isin(tokens, list(self._pieces.end_tokens))
        flags[flags] = self._each(tokens[flags])
        return flags

    def _each(self, tokens: Tokens) -> Flags:
        return np.fromiter((self._takes(token) for token in tokens.tolist()), dtype=np.bool_, count=tokens.size)

    def accept(self, token: int) -> None:
        """Go on behind this token. Raises BadGrammar when it is not allowed."""
        self.state = self.behind(self.state, self._pieces.piece(token))

    def behind(self, state: State, data: bytes) -> State:
        """The state behind these bytes. Raises BadGrammar when they are not allowed."""
        following = self.automaton.walk(state, data)
        if following is None:
            raise BadGrammar("The text breaks the schema.")
        return following

    def close(self) -> None:
        """Nothing to free."""

    def _takes(self, token: int) -> bool:
        if token in self._pieces.end_tokens:
            return self.state.may_end
        piece = self._pieces.piece(token)
        return bool(piece) and self.automaton.walk(self.state, piece) is not None


def rule_for(
    model: Model, *, grammar: str | None, schema: str | None, quick: bool = False,
) -> GrammarRule | SchemaRule | None:
    """The rule that a request asks for, None for neither.

    A schema beyond the automaton becomes a grammar; quick: a grammar within it becomes an automaton. Raises BadGrammar.
    """
    if grammar is not None and schema is not None:
        raise BadGrammar("A request has a grammar or a schema, not both.")
    if grammar is not None:
        by_grammar = GrammarRule(model, grammar)
        automaton = _automaton_of(grammar) if quick else None
        if automaton is None:
            return by_grammar
        by_grammar.close()
        _ = model.first_bytes
        return SchemaRule(model, automaton)
    if schema is None:
        return None
    described = read_schema(schema)
    _ = model.first_bytes       # now, in the thread that prepares, and not between two decodes
    try:
        return SchemaRule(model, Automaton(schema_language(described)))
    except RecursionError as error:
        raise BadGrammar("The schema is nested too deep.") from error
    except BeyondAutomaton as beyond:
        try:
            return GrammarRule(model, json_schema_to_gbnf(schema))
        except (ValueError, TypeError, LookupError, AttributeError, AssertionError, RuntimeError) as error:
            raise BadGrammar(f"An answer can't be held to this schema: {beyond}.") from error


def _automaton_of(grammar: str) -> Automaton | None:
    try:
        return Automaton(language_of_grammar(grammar))
    except (BeyondAutomaton, RecursionError):
        return None
