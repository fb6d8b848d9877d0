"""The Porter stemmer for English words, with its author's two later changes (-bli, -logi), as SQLite's tokeniser has
it.

Written from the paper: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980. Gives the stems that
FTS5's `porter` tokeniser gives, so that a word's document frequency can be looked up in the index. Must not know
text or ranking. Like SQLite, and unlike the paper, it does not treat a whole word as an ending ("eed", "sses").
"""

from functools import lru_cache

__all__ = ["stem"]

_VOWELS = frozenset("aeiou")
LONGEST = 64
"""Longer words are left as they are, and so are words of less than 3 letters."""

# Longest endings first within each last letter; m > 0 of what is left before the ending.
_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("logi", "log"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"),
    ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"),
    ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
)
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)
_STEP_4 = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ion",
    "al", "er", "ic", "ou",
)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The stem of a lower-case word; words with other characters than a-z come back as they are."""
    if not 3 <= len(word) <= LONGEST or not (word.isascii() and word.isalpha()):
        return word
    word = _step_1a(word)
    word = _step_1b(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = f"{word[:-1]}i"
    word = _replace(word, _STEP_2)
    word = _replace(word, _STEP_3)
    word = _step_4(word)
    return _step_5(word)


def _step_1a(word: str) -> str:
    if (word.endswith("sses") and len(word) > 4) or (word.endswith("ies") and len(word) > 3):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _step_1b(word: str) -> str:
    if word.endswith("eed") and len(word) > 3:
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        left = word.removesuffix(ending)
        if left != word:
            return _tidy(left) if _has_vowel(left) else word
    return word


def _tidy(word: str) -> str:
    """What is left after -ed or -ing: hop(p)ing, conflat(e)d, fil(e)ing."""
    if word.endswith(("at", "bl", "iz")):
        return f"{word}e"
    if _double_consonant(word) and word[-1] not in "lsz":
        return word[:-1]
    return f"{word}e" if _measure(word) == 1 and _short(word) else word


def _replace(word: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for ending, instead in pairs:
        if word.endswith(ending):
            left = word[: -len(ending)]
            return left + instead if _measure(left) > 0 else word
    return word


def _step_4(word: str) -> str:
    for ending in _STEP_4:
        if word.endswith(ending):
            left = word[: -len(ending)]
            if _measure(left) > 1 and (ending != "ion" or left.endswith(("s", "t"))):
                return left
            return word
    return word


def _step_5(word: str) -> str:
    if word.endswith("e"):
        left = word[:-1]
        size = _measure(left)
        if size > 1 or (size == 1 and not _short(left)):
            word = left
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


def _consonant(word: str, at: int) -> bool:
    if word[at] == "y":
        return at == 0 or not _consonant(word, at - 1)
    return word[at] not in _VOWELS


def _measure(word: str) -> int:
    """How often a vowel is followed by a consonant."""
    count, after_vowel = 0, False
    for at in range(len(word)):
        if not _consonant(word, at):
            after_vowel = True
        elif after_vowel:
            count, after_vowel = count + 1, False
    return count


def _has_vowel(word: str) -> bool:
    return any(not _consonant(word, at) for at in range(len(word)))


def _double_consonant(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and word[-1] not in _VOWELS


def _short(word: str) -> bool:
    """Ends consonant-vowel-consonant, the last of them not w, x or y."""
    last = len(word) - 1
    return (
        last >= 2 and _consonant(word, last) and not _consonant(word, last - 1) and _consonant(word, last - 2)
        and word[-1] not in "wxy"
    )
