"""What of each conversation was read where: how much of a next prompt a place has read already.

A place remembers what it reads for a while; a prompt that begins like the last one there need not be read again from
the start. Holds digests of texts, never texts. Must not know places, peers or how long an engine really remembers.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["PrefixBook"]

REMEMBERED_S = 15 * 60.0
CONVERSATIONS = 256
Place = tuple[str | None, str]
"""A peer id, None for here, and a model digest."""


@dataclass(slots=True)
class _Read:
    parts: tuple[bytes, ...]
    tokens: tuple[int, ...]
    at_s: float


class PrefixBook:
    """Of one node. Lost at a restart, like most of what engines remember."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._read: OrderedDict[str, OrderedDict[Place, _Read]] = OrderedDict()

    def note(self, conversation: str, place: Place, parts: Sequence[str], tokens: Sequence[int]) -> None:
        """This place has just read these parts of a prompt, of about so many tokens each."""
        places = self._read.setdefault(conversation, OrderedDict())
        places[place] = _Read(tuple(map(_digest, parts)), tuple(tokens), self._now_s())
        places.move_to_end(place)
        self._read.move_to_end(conversation)
        if len(self._read) > CONVERSATIONS:
            self._read.popitem(last=False)

    def held(self, conversation: str, parts: Sequence[str]) -> dict[Place, int]:
        """Place -> tokens at the beginning of this prompt that it has read and may remember."""
        wanted = tuple(map(_digest, parts))
        found = {}
        for place, read in self._read.get(conversation, OrderedDict()).items():
            if self._now_s() - read.at_s <= REMEMBERED_S:
                same = 0
                while same < min(len(wanted), len(read.parts)) and wanted[same] == read.parts[same]:
                    same += 1
                if tokens := sum(read.tokens[:same]):
                    found[place] = tokens
        return found

    def last(self, conversation: str) -> str | None:
        """Where the conversation was answered last; "" when nowhere lately."""
        places = self._read.get(conversation)
        if not places:
            return ""
        (peer_id, _), read = next(reversed(places.items()))
        return peer_id if self._now_s() - read.at_s <= REMEMBERED_S else ""

    def forget(self, conversation: str) -> None:
        """The conversation is deleted."""
        self._read.pop(conversation, None)


def _digest(part: str) -> bytes:
    return hashlib.blake2b(part.encode(), digest_size=16, person=b"kith-prefix").digest()
