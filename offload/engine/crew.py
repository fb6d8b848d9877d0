"""How many threads a decode gets: of those it may have, as many as were quickest for one of its size lately.

Threads wait for each other some hundred times in a decode. Where something else wants a core, or a decode is little
work, the waiting costs more than a second thread saves (measured, 135M weights, two cores, ms of a decode by 1 and by 2
threads: 8 answers 25 and 14 on an idle machine, 28 and 39 beside a busy program). So each is tried from time to time.
A decode of several tokens has the same bits with any number; of one token alone it has not (its attention is split
among the threads), so that always gets the same. Pure: sizes and times come in. Must not know llama.cpp or answers.
"""

from collections import deque
from collections.abc import Sequence
from statistics import median

__all__ = ["Crew"]

_ALL_FROM_TOKENS = 64       # a prompt: all of them are never slower there (measured)
_SAMPLES = 3
_TRY_EVERY = 32             # decodes of a size; twice as many each time that it was for nothing
_TRY_SELDOM = 256
_LOOK_AGAIN = 8             # decodes with fewer threads, before all are tried again: a mistake there costs the most
_NOTABLY_SLOWER = 1.25
_CLEARLY_QUICKER = 1.15     # what fewer threads must be to be taken


class Crew:
    """Chooses, and learns from what each decode took."""

    def __init__(self, most: int, *, lone: int, steady: bool = False) -> None:
        """most: how many there may be. lone: how many one token alone gets.

        steady: all of them for everything else, whatever it takes.
        """
        self.most = most
        self._lone = lone
        self._steady = steady
        self._sizes: dict[int, _Size] = {}

    def threads(self, tokens: int) -> int:
        """For the next decode, of so many tokens."""
        if tokens <= 1:
            return min(self._lone, self.most)
        if not self._varies(tokens):
            return self.most
        return self._sizes.setdefault(tokens.bit_length(), _Size()).next(self._counts)

    def learn(self, tokens: int, threads: int, elapsed_s: float) -> None:
        """A decode of so many tokens took so long with so many threads."""
        if self._varies(tokens) and threads in self._counts:
            self._sizes.setdefault(tokens.bit_length(), _Size()).learn(threads, elapsed_s / tokens, self._counts)

    def _varies(self, tokens: int) -> bool:
        return 1 < tokens < _ALL_FROM_TOKENS and self.most > 1 and not self._steady

    @property
    def _counts(self) -> list[int]:
        """Those that are tried, most first."""
        return sorted({1, (self.most + 1) // 2, self.most}, reverse=True)


class _Size:
    """Decodes of about one size: what each count of threads took lately, per token."""

    def __init__(self) -> None:
        self._took_s: dict[int, deque[float]] = {}
        self._chosen = 0
        self._at_best_s = 0.0
        self._trying = 0        # 0: none
        self._tried = 0
        self._pause = self._until_try = _TRY_EVERY

    def next(self, counts: Sequence[int]) -> int:
        """For the next decode."""
        if (unknown := self._unknown(counts)) is not None:
            return unknown
        if self._chosen not in counts:
            self._choose(counts)
        if self._trying not in counts:
            self._trying = 0
        if not self._trying and self._until_try <= 0:
            self._trying = min((one for one in counts if one != self._chosen), key=self._usual_s)
            self._tried = 0
        return self._trying or self._chosen

    def learn(self, threads: int, per_token_s: float, counts: Sequence[int]) -> None:
        """A decode took so long."""
        self._took_s.setdefault(threads, deque(maxlen=_SAMPLES)).append(per_token_s)
        if self._unknown(counts) is not None or self._chosen not in counts:
            return
        if threads == self._trying:
            self._tried += 1
            if per_token_s > _NOTABLY_SLOWER * self._usual_s(self._chosen):
                self._rest(_TRY_SELDOM)
            elif self._tried >= _SAMPLES:
                before = self._chosen
                self._choose(counts)
                if self._chosen < before:
                    self._pause = _LOOK_AGAIN // 2
                self._rest(_TRY_SELDOM if self._chosen == before else _TRY_EVERY)
        elif threads == self._chosen:
            self._until_try -= 1
            if self._usual_s(threads) > _NOTABLY_SLOWER * self._at_best_s:      # look at once whether another is better
                self._at_best_s, self._until_try, self._pause = self._usual_s(threads), 0, _TRY_EVERY

    def _rest(self, most: int) -> None:
        self._pause = min(most, 2 * self._pause)
        self._trying, self._until_try = 0, self._pause

    def _choose(self, counts: Sequence[int]) -> None:
        most, best = max(counts), min(counts, key=self._usual_s)
        self._chosen = best if self._usual_s(most) > _CLEARLY_QUICKER * self._usual_s(best) else most
        self._at_best_s = self._usual_s(self._chosen)

    def _unknown(self, counts: Sequence[int]) -> int | None:
        return next((one for one in counts if len(self._took_s.get(one, ())) < _SAMPLES), None)

    def _usual_s(self, threads: int) -> float:
        return median(self._took_s[threads])
