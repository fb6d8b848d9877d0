"""The third net: detectors in a process of their own find personal data of people who stand in no list of the owner's.

Only new text is scanned: a text is cut into passages, and what was found in a passage is remembered under a keyed
digest. Findings are weighed before they count. Any failure of the process is one of the net. Must not know labels,
levels, peers or how the process runs.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import trio

from node.privacy.language import is_mostly_foreign
from node.privacy.public_names import PublicNames
from node.privacy.vault import Hit, Vault
from node.privacy.weighing import weigh

__all__ = ["Detector", "DetectorsNet", "passages"]

_PASSAGE_CHARS = 2_000
_ORDER_CHARS = 60_000       # passages scanned by one order: small enough that others get their turn between
_REMEMBERED = 4_096         # passages


class Detector(Protocol):
    """The detectors' process."""

    async def detect(self, texts: Sequence[str], foreign: Sequence[bool]) -> list[list[tuple[int, int, str]]]:
        """For each text, (start, end, type) of what may be personal; foreign: whether it is mostly not English.

        Raises when it cannot say.
        """
        ...


class DetectorsNet:
    """Implements node.privacy.nets.Net."""

    name = "detectors"

    def __init__(
        self, detector: Detector, *, public: Callable[[], PublicNames], this_year: Callable[[], int], key: bytes,
    ) -> None:
        """public: names that are never masked, as they are now. key: of the digests by which passages are known."""
        self._detector = detector
        self._public = public
        self._this_year = this_year
        self._key = key
        self._found: OrderedDict[bytes, tuple[tuple[int, int, str], ...]] = OrderedDict()
        self.scanned_chars = 0

    async def scan(self, text: str, returned: Vault) -> Sequence[Hit]:
        """What of the text is to be masked. Raises what the detector raises, ValueError for nonsense from it."""
        cut = list(passages(text))
        digests = [self._digest(passage) for _, passage in cut]
        known = {digest: self._found[digest] for digest in digests if digest in self._found}
        missing = {
            digest: passage for (_, passage), digest in zip(cut, digests, strict=True) if digest not in known
        }
        for order in _orders(missing):
            texts = [missing[digest] for digest in order]
            spans = await self._detector.detect(texts, [is_mostly_foreign(text) for text in texts])
            if len(spans) != len(order):
                raise ValueError("an answer for another number of texts")
            for digest, found in zip(order, spans, strict=True):
                known[digest] = _checked(found, len(missing[digest]))
                self.scanned_chars += len(missing[digest])
                self._remember(digest, known[digest])
        public, this_year = self._public(), self._this_year()
        hits: list[Hit] = []
        for (start, passage), digest in zip(cut, digests, strict=True):
            hits += [
                Hit(start + hit.start, start + hit.end, hit.type)
                for hit in weigh(passage, known[digest], public, this_year=this_year)
            ]
            await trio.lowlevel.checkpoint()
        return hits

    def _digest(self, passage: str) -> bytes:
        return hashlib.blake2b(passage.encode("utf-8", "surrogatepass"), key=self._key, digest_size=16).digest()

    def _remember(self, digest: bytes, found: tuple[tuple[int, int, str], ...]) -> None:
        self._found[digest] = found
        self._found.move_to_end(digest)
        while len(self._found) > _REMEMBERED:
            self._found.popitem(last=False)


def passages(text: str) -> Iterator[tuple[int, str]]:
    """(start, passage) of pieces of at most 2,000 characters that end where a paragraph, line, sentence or word does.

    What is appended to a text changes its last passage only.
    """
    start = 0
    while len(text) - start > _PASSAGE_CHARS:
        end = start + _PASSAGE_CHARS
        for mark in ("\n\n", "\n", ". ", " "):
            at = text.rfind(mark, start + _PASSAGE_CHARS // 4, end)
            if at > 0:
                end = at + len(mark)
                break
        yield start, text[start:end]
        start = end
    if start < len(text):
        yield start, text[start:]


def _orders(missing: dict[bytes, str]) -> Iterator[list[bytes]]:
    order: list[bytes] = []
    size = 0
    for digest, passage in missing.items():
        if order and size + len(passage) > _ORDER_CHARS:
            yield order
            order, size = [], 0
        order.append(digest)
        size += len(passage)
    if order:
        yield order


def _checked(found: Sequence[tuple[int, int, str]], length: int) -> tuple[tuple[int, int, str], ...]:
    for start, end, type_ in found:
        if not (isinstance(type_, str) and type_ and 0 <= start < end <= length):
            raise ValueError("a span outside its text")
    return tuple(found)
