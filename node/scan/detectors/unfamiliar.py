"""Words with a capital letter that a large English vocabulary does not know: most are names of people, firms or places.

It finds what the two models miss (invented firms, rare surnames), costs little and masks few words that are no names;
the exceptions stand in node/privacy/public_names.py. Must not know models or what a span leads to.
"""

import re
from collections.abc import Container, Iterator

__all__ = ["find_unfamiliar"]

_SHORTEST = 4
_WORD = re.compile(r"(?<![\w@./\\#$_-])[^\W\d_](?:[^\W_]|[’'-](?=[^\W_]))*(?![\w@/\\_]|\.\w|\()")
_ENDINGS = ("s", "es", "ed", "d", "ing", "er", "ers", "ly", "ness", "able", "ish", "y", "al", "ism", "ist", "ists")


def find_unfamiliar(text: str, known: Container[str]) -> Iterator[tuple[int, int, str]]:
    """(start, end, "NAME") of every such word. known: lower-case words."""
    for match in _WORD.finditer(text):
        bare = re.split("[’']", match[0])[0]
        if any(_is_unfamiliar(part, known) for part in bare.split("-")):
            yield match.start(), match.start() + len(bare), "NAME"


def _is_unfamiliar(word: str, known: Container[str]) -> bool:
    if len(word) < _SHORTEST or not word[0].isupper() or word.isupper() or not word.isalpha():
        return False
    return not _is_known(word.lower(), known)


def _is_known(word: str, known: Container[str]) -> bool:
    if word in known:
        return True
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= 3 and (
            stem in known or f"{stem}e" in known or f"{stem}y" in known or (stem[-1] == stem[-2] and stem[:-1] in known)
        ):
            return True
    return False
