"""How an answer gets from one decode to the next: one token at a time here, several at once in jump.py and drafts.py.

Must not know requests, batches or text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from offload.engine.context import Context

__all__ = ["Advance", "GrammarWriter", "NextToken", "PlainWriter", "RuledToken", "Writer"]


@dataclass(frozen=True, slots=True)
class Advance:
    """What a decode brought.

    tokens: the answer's next ones. feed: what to decode next: the last of `tokens`, and maybe some that are not yet
    part of the answer. looks: how many rows at the end of the feed are wanted. surplus: how many tokens at the end of
    what was just decoded are to be taken out of the memory again. ended: nothing may follow. hurried: it had to come to
    its end, for want of room.
    """

    tokens: tuple[int, ...] = ()
    feed: tuple[int, ...] = ()
    looks: int = 1
    surplus: int = 0
    ended: bool = False
    hurried: bool = False


class NextToken(Protocol):
    """Chooses tokens (sampling.Sampler)."""

    def next(self, context: Context, row: int) -> int | None:
        """The next token after this row of the last decode."""
        ...

    def close(self) -> None:
        """Free it."""
        ...


class RuledToken(NextToken, Protocol):
    """Chooses tokens under a rule."""

    def follow(self, tokens: Iterable[int]) -> None:
        """Tell the rule what was written before. Raises BadGrammar when that breaks it."""
        ...


class Writer(Protocol):
    """Writes one answer. Rows are those that the last decode was asked for, in order; the last one always exists."""

    looks: int      # how many rows at the end of the prompt are wanted

    def begin(self, left: int) -> tuple[int, ...]:
        """Tokens that can be read together with the prompt. `left`: how many the answer may still get."""
        ...

    def advance(self, context: Context, rows: Sequence[int], left: int) -> Advance:
        """Go on from a decode."""
        ...

    def guess(self, spare: int) -> tuple[int, ...]:
        """Up to `spare` more tokens for the feed that was just given; each adds a row that is wanted."""
        ...

    def skip(self, tokens: Sequence[int]) -> None:
        """These were written in its place, behind its last ones."""
        ...

    def ending(self) -> tuple[int, ...]:
        """The tokens that complete the answer at once, where it must have an end; they need not be decoded."""
        ...

    def stay_plain(self) -> None:
        """The memory took nothing back: never again ask for that."""
        ...

    def close(self) -> None:
        """Free it."""
        ...


class PlainWriter:
    """One token per decode."""

    looks = 1

    def __init__(self, sampler: NextToken) -> None:
        self._sampler = sampler

    def begin(self, _left: int) -> tuple[int, ...]:
        """Nothing is known before the first decode."""
        return ()

    def advance(self, context: Context, rows: Sequence[int], _left: int) -> Advance:
        """The next token."""
        token = self._sampler.next(context, rows[-1])
        return Advance(ended=True) if token is None else Advance((token,), (token,))

    def guess(self, _spare: int) -> tuple[int, ...]:
        """Nothing."""
        return ()

    def skip(self, tokens: Sequence[int]) -> None:
        """Its sampler looks at rows only."""

    def ending(self) -> tuple[int, ...]:
        """None: free words may end anywhere."""
        return ()

    def stay_plain(self) -> None:
        """It is."""

    def close(self) -> None:
        """Free the sampler."""
        self._sampler.close()


class GrammarWriter(PlainWriter):
    """One token per decode, under a grammar from its first token on."""

    def __init__(self, sampler: RuledToken) -> None:
        super().__init__(sampler)
        self._ruled = sampler

    def stand_behind(self, data: bytes) -> bool:
        """Never: a grammar reads tokens, not bytes."""
        return not data

    def follow(self, tokens: Sequence[int]) -> None:
        """These were written before. Raises BadGrammar when they break the grammar."""
        self._ruled.follow(tokens)
