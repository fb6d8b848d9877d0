"""From sampled bytes to text that may be shown: whole characters, never a part of a stop text, an eye on loops.

Pure. Must not know models, requests or pipes.
"""

import codecs
from collections.abc import Sequence

__all__ = ["LoopDetector", "TextStream"]


class TextStream:
    """Text released bit by bit. What could still become a stop text is held back until it can't."""

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.stopped = False

    def feed(self, data: bytes) -> str:
        """The text that these bytes release. Sets `stopped` at a stop text; what follows it is dropped."""
        return self._release(self._decoder.decode(data))

    def say(self, text: str) -> str:
        """As feed, for text that is whole already."""
        return self._release(text)

    def finish(self) -> str:
        """The rest at the end of the answer; half a character becomes U+FFFD."""
        text = self._release(self._decoder.decode(b"", final=True)) + ("" if self.stopped else self._held)
        self._held = ""
        return text

    def _release(self, text: str) -> str:
        if self.stopped:
            return ""
        self._held += text
        found = [place for stop in self._stops if (place := self._held.find(stop)) >= 0]
        if found:
            self.stopped = True
            released, self._held = self._held[:min(found)], ""
            return released
        keep = self._possible_stop_chars()
        cut = len(self._held) - keep
        released, self._held = self._held[:cut], self._held[cut:]
        return released

    def _possible_stop_chars(self) -> int:
        """How long the longest end of the held text is that begins some stop text."""
        longest = 0
        for stop in self._stops:
            for length in range(min(len(stop) - 1, len(self._held)), longest, -1):
                if self._held.endswith(stop[:length]):
                    longest = length
                    break
        return longest


class LoopDetector:
    """Notices that the last tokens are one stretch repeated over and over.

    A stretch of up to 64 tokens counts once it has come at least 4 times in a row and filled at least 64 tokens.
    """

    LONGEST_PERIOD = 64
    LEAST_REPEATS = 4
    LEAST_TOKENS = 64

    def __init__(self) -> None:
        self._count = 0
        self._places: dict[int, list[int]] = {}     # where each token was lately
        self._runs: dict[int, int] = {}     # by period: how many tokens in a row were those of one period before

    def feed(self, token: int) -> bool:
        """Whether the answer has got stuck with this token."""
        at, stuck = self._count, False
        places = self._places.setdefault(token, [])
        runs: dict[int, int] = {}
        for place in reversed(places):
            period = at - place
            if period > self.LONGEST_PERIOD:
                break
            run = runs[period] = self._runs.get(period, 0) + 1
            stuck |= run + period >= max(self.LEAST_TOKENS, period * self.LEAST_REPEATS)
        if len(places) > self.LONGEST_PERIOD:
            del places[0]
        places.append(at)
        self._count, self._runs = at + 1, runs
        return stuck
