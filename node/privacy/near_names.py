"""Names with one typing error: a letter missing, added, changed, or two swapped; and names with the ending of a case.

Looks words up by what is left after one deletion (both sides), so the cost per word does not grow with the number of
names; the candidate is then measured exactly. Must not know texts' original positions or what a hit leads to.
"""

import re
from collections.abc import Iterator

from rapidfuzz.distance import OSA

from node.privacy.normalise import fold_word
from node.privacy.word_names import EVERYDAY

__all__ = ["NearNames"]

_WORD = re.compile(r"[^\W\d_]{3,32}")
_Found = tuple[frozenset[int], bool, int]
_SHORTEST_ALONE = 6     # letters of a misspelt name that counts by itself
_SHORTEST_PAIRED = 4    # letters of one that counts beside another name of the same person
_SHORTEST_BEFORE_ENDING = 4     # letters of a name that an ending follows, also of one that lost its last vowel to it
_SHORTEST_BEFORE_LETTER = 5     # where that ending is one letter and the script Latin: Chin is no part of China


def _folded(text: str) -> frozenset[str]:
    return frozenset(fold_word(word) for word in text.split())


# Of names in the Slavic languages and in Finnish, one script after the other.
_ENDINGS = _folded("""
a e i o u y om em ou im ovi owi evi ovu ova ove ovo ego ega emu ima ih iem ie ju ja ji jem jo in ina ino ine ini ami ach
n en lla lle lta ssa sta ksi
а е и о у ы ом ем ой ою ей ею ю я ым им ых ого ому ова ову ами ах ям ин ина ину
""")
_LONGEST_ENDING = 3
_VOWELS = _folded("a e i o u y а е и о у ы я ю й ь")


def _deletions(word: str) -> set[str]:
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


class NearNames:
    """A growing set of folded name words, each belonging to numbered persons."""

    def __init__(self) -> None:
        self._persons: dict[str, set[int]] = {}
        self._by_deletion: dict[str, list[str]] = {}
        self._by_stem: dict[str, set[int]] = {}

    def add(self, word: str, person: int) -> None:
        """word: one folded name word; anything but 3 to 32 letters is left out."""
        if not _WORD.fullmatch(word):
            return
        if word not in self._persons and len(word) >= _SHORTEST_PAIRED:
            for shorter in _deletions(word):
                self._by_deletion.setdefault(shorter, []).append(word)
        self._persons.setdefault(word, set()).add(person)
        if word[-1] in _VOWELS and len(word) > _SHORTEST_BEFORE_ENDING and word not in EVERYDAY:
            self._by_stem.setdefault(word[:-1], set()).add(person)

    def knows(self, word: str) -> bool:
        """Whether this is one of the words, spelt exactly so."""
        return word in self._persons

    def find(self, folded: str) -> Iterator[tuple[int, int, bool]]:
        """(start, end, sure) of misspelt names in a folded text. sure: beside another name of the same person;
        otherwise the caller should want one more sign (a capital letter).
        """
        if not self._by_deletion:
            return
        cache: dict[str, _Found] = {}
        last_end = -2
        last: _Found = (frozenset(), True, _SHORTEST_ALONE)
        last_span = (0, 0)
        for match in _WORD.finditer(folded):
            word = match[0]
            found = cache.get(word)
            if found is None:
                found = cache[word] = self._look_up(word)
            persons, exact, shortest = found
            if persons:
                touching = match.start() - last_end == 1 and bool(persons & last[0])
                if touching and not (exact and last[1]):
                    yield last_span[0], match.end(), True
                elif not exact and len(word) >= shortest and word not in EVERYDAY:
                    yield match.start(), match.end(), False
            last, last_end, last_span = found, match.end(), match.span()

    def _look_up(self, word: str) -> "_Found":
        """The persons whose name this is, whether it is spelt exactly so, and from how many letters it counts alone."""
        exact = self._persons.get(word)
        if exact is not None:
            return frozenset(exact), True, _SHORTEST_ALONE
        if len(word) < _SHORTEST_PAIRED:
            return frozenset(), False, _SHORTEST_ALONE
        for at in range(len(word) - 1, len(word) - _LONGEST_ENDING - 1, -1):
            if word[at:] in _ENDINGS and (inflected := self._before(word[:at], len(word) - at)):
                return inflected, False, _SHORTEST_BEFORE_ENDING
        names = {name for shorter in _deletions(word) for name in self._by_deletion.get(shorter, ())}
        persons: set[int] = set()
        for name in names:
            if OSA.distance(name, word, score_cutoff=1) <= 1:
                persons |= self._persons[name]
        return frozenset(persons), False, _SHORTEST_ALONE

    def _before(self, stem: str, ending: int) -> frozenset[int]:
        """The persons whose name is this, or this and a vowel, where an ending of so many letters may follow it."""
        least = _SHORTEST_BEFORE_LETTER if ending == 1 and stem.isascii() else _SHORTEST_BEFORE_ENDING
        whole = self._persons.get(stem, ()) if len(stem) >= least and stem not in EVERYDAY else ()
        return frozenset({*whole, *self._by_stem.get(stem, ())})
