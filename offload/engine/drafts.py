"""Guessing what comes next from what was there before: texts that copy, edit or quote repeat long stretches.

A draft is what followed the last occurrence of the last few tokens: of four in the prompt, of eight in the answer
itself, for free text repeats short turns of phrase and then goes on differently; of three once a draft was right to its
end, until one fails at its beginning. One decode checks all of it: what the model would
have chosen anyway stays, the rest is taken out of the memory again. Greedy answers only. Must not know requests,
batches or text.
"""

from collections.abc import Sequence

from offload.engine.context import Context
from offload.engine.writing import Advance

__all__ = ["LONGEST_DRAFT", "DraftWriter", "Lookup"]

# With the token before it a draft makes a batch of 4 or 8: kernels work in tiles of four tokens, so that 5 cost as much
# as 8 (measured, in decodes of one token, all rows wanted: 4 2.9, 5 3.9, 7 5.0, 8 4.3, 11 6.5, 12 6.3).
_SHORT_DRAFT = 3
LONGEST_DRAFT = 7
_GRAM = 3
# How many tokens must be the same before the first draft. Simulated over 10 free texts and 5 copies, with these costs,
# tokens a decode's cost against undrafted, worst and mean: 3 and 3 .97 .99 (copies 1.27), 4 and 8 .98 1.01 (1.25).
_SAME_AS_PROMPT = 4
_SAME_AS_ANSWER = 8
_LEAST_ACCEPTED = 0.55
_REST_TOKENS = 32           # after a draft that failed; twice as many each further time, until one is right
_LONGEST_REST_TOKENS = 128
_LONG_AGO_TOKENS = 32       # drafted; then what was before counts half


class Lookup:
    """The tokens so far, and where each three in a row came last."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = list(tokens)
        self._answer_from = len(self._tokens)
        self._places = {tuple(self._tokens[at - _GRAM:at]): at for at in range(_GRAM, len(self._tokens))}

    def add(self, tokens: Sequence[int]) -> None:
        """Go on with these."""
        for token in tokens:
            if len(self._tokens) >= _GRAM:
                self._places[tuple(self._tokens[-_GRAM:])] = len(self._tokens)
            self._tokens.append(token)

    def following(self, most: int, *, sure: bool = True) -> list[int]:
        """What followed the last time, up to `most` tokens. sure: as few equal tokens as there can be are enough."""
        place = self._places.get(tuple(self._tokens[-_GRAM:]))
        if place is None:
            return []
        if not sure:
            same = _SAME_AS_PROMPT if place < self._answer_from else _SAME_AS_ANSWER
            if place < same or self._tokens[place - same:place] != self._tokens[-same:]:
                return []
        return self._tokens[place:place + most]


class DraftWriter:
    """Writes one greedy answer."""

    looks = 1

    def __init__(self, so_far: Sequence[int], never: frozenset[int]) -> None:
        """so_far: prompt and text so far. never: tokens that no draft may hold (control and end tokens)."""
        self._lookup = Lookup(so_far)
        self._never = never
        self._drafted: tuple[int, ...] = ()
        self._length = _SHORT_DRAFT
        self._proposed = 0
        self._accepted = 0
        self._rests = 0
        self._next_rest = _REST_TOKENS
        self._plain = False
        self._sure = False

    def begin(self, _left: int) -> tuple[int, ...]:
        """Nothing is known before the first decode."""
        return ()

    def advance(self, context: Context, rows: Sequence[int], _left: int) -> Advance:
        """The drafted tokens that the model chose too, and the one it chose behind them."""
        drafted, self._drafted = self._drafted, ()
        chosen: list[int] = []
        for place, row in enumerate(rows):
            chosen.append(int(context.logits(row).argmax()))
            if place == len(drafted) or chosen[-1] != drafted[place]:
                break
        self._lookup.add(chosen)
        self._learn(len(drafted), len(chosen) - 1)
        return Advance(tuple(chosen), (chosen[-1],), surplus=len(drafted) + 1 - len(chosen))

    def guess(self, spare: int) -> tuple[int, ...]:
        """A draft, when one pays and is to be had."""
        self._drafted = ()
        if self._plain or self._rests > 0:
            return ()
        least, most = _SHORT_DRAFT, max(0, min(spare, self._length))
        if most + 1 == spare:       # the tile's last place costs less than nothing
            least = most = spare
        draft = self._lookup.following(most, sure=self._sure)
        stop = next((place for place, token in enumerate(draft) if token in self._never), len(draft))
        if stop >= least:       # shorter, it costs more than it could save
            self._drafted = tuple(draft[:stop])
        return self._drafted

    def skip(self, tokens: Sequence[int]) -> None:
        """Others wrote these."""
        self._lookup.add(tokens)

    def ending(self) -> tuple[int, ...]:
        """None: free words may end anywhere."""
        return ()

    def stay_plain(self) -> None:
        """Draft no more."""
        self._plain = True

    def close(self) -> None:
        """Nothing to free."""

    def _learn(self, drafted: int, accepted: int) -> None:
        self._rests = max(0, self._rests - 1 - accepted)
        if not drafted:
            return
        if accepted == drafted:
            self._next_rest, self._sure = _REST_TOKENS, True
        elif accepted < _GRAM - 1:
            self._sure = False
        self._length = LONGEST_DRAFT if accepted == drafted or accepted > _SHORT_DRAFT else _SHORT_DRAFT
        self._proposed += drafted
        self._accepted += accepted
        if self._accepted < _LEAST_ACCEPTED * self._proposed:
            self._rests, self._length = self._next_rest, _SHORT_DRAFT
            self._next_rest = min(_LONGEST_REST_TOKENS, 2 * self._next_rest)
            self._proposed = self._accepted = 0
        elif self._proposed >= _LONG_AGO_TOKENS:
            self._proposed //= 2
            self._accepted //= 2
