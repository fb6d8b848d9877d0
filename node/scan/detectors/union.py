"""The detectors together: Presidio's patterns, spaCy's entities, Rampart, and capitalised words nobody knows.

The union, since they fail on different texts. What of it is masked is weighed elsewhere (node/privacy/weighing.py).
Loaded in the detectors' process only.
"""

from collections.abc import Iterable
from pathlib import Path

from node.scan.detectors.entities import Entities
from node.scan.detectors.rampart import Rampart
from node.scan.detectors.unfamiliar import find_unfamiliar

__all__ = ["Detectors"]


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
        found = {
            *_trimmed(text, self._entities.find(text)), *_trimmed(text, self._rampart.find(text)),
            *find_unfamiliar(text, self._entities.vocabulary),
        }
        return sorted(found)


def _trimmed(text: str, spans: Iterable[tuple[int, int, str]]) -> Iterable[tuple[int, int, str]]:
    for start, end, type_ in spans:
        begin, stop = start, end
        while begin < stop and not text[begin].isalnum() and text[begin] not in "+(":
            begin += 1
        while stop > begin and not text[stop - 1].isalnum():
            stop -= 1
        if begin < stop:
            yield begin, stop, type_
