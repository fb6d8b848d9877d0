"""Names with one typing error: a letter missing, added, changed, or two swapped.

Looks words up by what is left after one deletion (both sides), so the cost per word does not grow with the number of
names; the candidate is then measured exactly. Must not know texts' original positions or what a hit leads to.
"""

import re
from collections.abc import Iterator

from rapidfuzz.distance import OSA

from node.privacy.word_names import EVERYDAY

__all__ = ["NearNames"]

_WORD = re.compile(r"[^\W\d_]{3,32}")
_SHORTEST_ALONE = 6     # letters of a misspelt name that counts by itself
_SHORTEST_PAIRED = 4    # letters of one that counts beside another name of the same person


def _deletions(word: str) -> set[str]:
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


class NearNames:
    """A growing set of folded name words, each belonging to numbered persons."""

    def __init__(self) -> None:
        self._persons: dict[str, set[int]] = {}
        self._by_deletion: dict[str, list[str]] = {}

    def add(self, word: str, person: int) -> None:
        """word: one folded name word; anything but 3 to 32 letters is left out."""
        if not _WORD.fullmatch(word):
            return
        if word not in self._persons and len(word) >= _SHORTEST_PAIRED:
            for shorter in _deletions(word):
                self._by_deletion.setdefault(shorter, []).append(word)
        self._persons.setdefault(word, set()).add(person)

    def knows(self, word: str) -> bool:
        """Whether this is one of the words, spelt exactly so."""
        return word in self._persons

    def find(self, folded: str) -> Iterator[tuple[int, int, bool]]:
        """(start, end, sure) of misspelt names in a folded text. sure: beside another name of the same person;
        otherwise the caller should want one more sign (a capital letter).
        """
        if not self._by_deletion:
            return
        cache: dict[str, tuple[frozenset[int], bool]] = {}
        last_end = -2
        last: tuple[frozenset[int], bool] = (frozenset(), True)
        last_span = (0, 0)
        for match in _WORD.finditer(folded):
            word = match[0]
            found = cache.get(word)
            if found is None:
                found = cache[word] = self._look_up(word)
            persons, exact = found
            if persons:
                touching = match.start() - last_end == 1 and bool(persons & last[0])
                if touching and not (exact and last[1]):
                    yield last_span[0], match.end(), True
                elif not exact and len(word) >= _SHORTEST_ALONE and word not in EVERYDAY:
                    yield match.start(), match.end(), False
            last, last_end, last_span = found, match.end(), match.span()

    def _look_up(self, word: str) -> tuple[frozenset[int], bool]:
        """The persons whose name this is, and whether it is spelt exactly so."""
        exact = self._persons.get(word)
        if exact is not None:
            return frozenset(exact), True
        if len(word) < _SHORTEST_PAIRED:
            return frozenset(), False
        names = {name for shorter in _deletions(word) for name in self._by_deletion.get(shorter, ())}
        persons: set[int] = set()
        for name in names:
            if OSA.distance(name, word, score_cutoff=1) <= 1:
                persons |= self._persons[name]
        return frozenset(persons), False
