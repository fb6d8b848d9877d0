"""The detectors together: Presidio's patterns, spaCy's entities, Rampart, and capitalised words nobody knows.

The union, since they fail on different texts. What of it is masked is weighed elsewhere (node/privacy/weighing.py).
Loaded in the detectors' process only.
"""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

from node.scan.detectors.entities import Entities
from node.scan.detectors.rampart import Rampart
from node.scan.detectors.unfamiliar import find_unfamiliar

__all__ = ["Detectors"]

_WORD = re.compile(r"[^\W\d_]+")
_BEGINS = re.compile(r"(?:^|[.!?:;\n>#*•-])[\s\"'(#>*•-]*\Z")


class Detectors:
    """All of them, loaded."""

    names = ("patterns", "entities", "rampart", "unfamiliar")

    def __init__(self, rampart: Path | None) -> None:
        """Raises what loading raises; FileNotFoundError without the weights."""
        if rampart is None:
            raise FileNotFoundError("the Rampart weights are not installed")
        self._entities = Entities()
        self._rampart = Rampart(rampart)

    def find(self, text: str, *, foreign: bool = False) -> list[tuple[int, int, str]]:
        """(start, end, type) in any order; they may overlap. Edges hold no white space or punctuation.

        foreign: the text is mostly not English. Rampart alone then finds nearly as much; the others, made for English,
        would take a quarter of the text for names.
        """
        if foreign:
            return sorted(set(_trimmed(text, self._rampart.find(text))))
        sure = [*_trimmed(text, self._rampart.find(text)), *find_unfamiliar(text, self._entities.vocabulary)]
        entities = _doubted(text, _trimmed(text, self._entities.find(text)), sure, self._entities.vocabulary)
        return sorted({*sure, *entities})


def _doubted(
    text: str, entities: Iterable[tuple[int, int, str]], sure: Sequence[tuple[int, int, str]], known: Container[str],
) -> Iterator[tuple[int, int, str]]:
    """The entities less what spaCy too often takes for a name: a common word whose capital comes from beginning a
    sentence ("Roof"), alone or before a name ("Tell Dana"), and a verb behind one ("Dana Whitfield mended").

    A word of the vocabulary counts there only when another finding covers it.
    """
    for start, end, type_ in entities:
        words = list(_WORD.finditer(text, start, end)) if type_ in ("PERSON", "ORG", "PLACE") else []
        if words and words[0][0][0].isupper():
            while len(words) > 1 and words[-1][0] in known and not _covered(words[-1], sure):
                words.pop()     # in lower case: `known` holds nothing else
                end = words[-1].end()
            if _is_common(words[0], sure, known) and _BEGINS.search(text, max(0, start - 8), start):
                if len(words) == 1:
                    continue
                if any(_covered(word, sure) for word in words[1:]):
                    start = words[1].start()
        yield start, end, type_


def _is_common(word: "re.Match[str]", sure: Sequence[tuple[int, int, str]], known: Container[str]) -> bool:
    return word[0][0].isupper() and word[0].lower() in known and not _covered(word, sure)


def _covered(word: "re.Match[str]", sure: Sequence[tuple[int, int, str]]) -> bool:
    return any(start < word.end() and word.start() < end for start, end, _ in sure)


def _trimmed(text: str, spans: Iterable[tuple[int, int, str]]) -> Iterable[tuple[int, int, str]]:
    for start, end, type_ in spans:
        begin, stop = start, end
        while begin < stop and not text[begin].isalnum() and text[begin] not in "+(":
            begin += 1
        while stop > begin and not text[stop - 1].isalnum():
            stop -= 1
        if begin < stop:
            yield begin, stop, type_
