"""Who gets how much of the next decode: prompt tokens by deficit round robin, as many as a time budget allows.

The owner's prompts come first; guests share what is left, each the same, however much each of them has waiting. Pure:
sizes and times come in, counts go out. Must not know answers, slots or the context.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Literal

from offload.ports import OWNER

__all__ = ["Company", "Pace", "Shares", "Turns"]

# While a prompt is read: the owner reads an answer along, or does so while more prompts wait than answers are written;
# guests wait for their first or next words; the owner waits.
Company = Literal["watched", "burst", "guests", "alone"]

_QUANTUM = 64
# llama.cpp's attention takes 64 tokens of a decode together and the rest one by one, whoever they are of: with 3,500
# tokens read, 61 of a prompt beside three chats take 0.39 s, 64 take 0.61, 32 take 0.57 (measured).
_TILE = 64
_LEAST_CHUNK = 64
_LEAST_READ = 16
_MOST_CHUNK = 512
_FIRST_GUESS_PER_S = 64.0   # slow: a guest gives a machine up that shows nothing for three seconds
_FASTEST_GROWTH = 1.3   # from one decode to the next: a machine that was free for a moment is not a quick one
# Also how long a cancel can take, and how long nothing moves for whoever waits at a distance. A burst has one such stop
# instead of several shorter ones.
_TARGET_S: Mapping[Company, float] = {"watched": 0.25, "burst": 0.6, "guests": 1.0, "alone": 1.0}


class Shares:
    """Deficit round robin: a principal's turn brings a quantum of tokens; what it could not use yet it keeps."""

    def __init__(self) -> None:
        self._credit: OrderedDict[str, int] = OrderedDict()

    def split(self, wanted: Mapping[str, int], budget: int) -> dict[str, int]:
        """How many tokens each principal may read now, of those it wants. Who wants nothing keeps no credit."""
        given = dict.fromkeys(wanted, 0)
        if OWNER in wanted:
            given[OWNER] = min(budget, wanted[OWNER])
            budget -= given[OWNER]
        for who in [who for who in self._credit if not wanted.get(who)]:
            del self._credit[who]
        for who, count in wanted.items():
            if who != OWNER and count > 0:
                self._credit.setdefault(who, 0)
        while budget > 0 and self._credit:
            who = next(iter(self._credit))
            self._credit[who] = self._credit[who] or _QUANTUM
            count = min(wanted[who] - given[who], self._credit[who], budget)
            given[who] += count
            budget -= count
            self._credit[who] -= count
            if given[who] == wanted[who]:
                del self._credit[who]
            elif self._credit[who] == 0:
                self._credit.move_to_end(who)
        return given


class Turns:
    """Which group decodes next, where groups can't share a decode: each as often as its weight says, evenly spread."""

    OWNERS_WEIGHT = 3

    def __init__(self) -> None:
        self._credit: dict[str, int] = {}

    def next(self, groups: Mapping[str, Collection[str]]) -> str | None:
        """The group whose turn it is, of those at work now; groups: the principals in each. None for no group."""
        if len(groups) <= 1:
            self._credit.clear()
            return next(iter(groups), None)
        weights = {name: len(who) + (self.OWNERS_WEIGHT - 1 if OWNER in who else 0) for name, who in groups.items()}
        self._credit = {name: self._credit.get(name, 0) + weight for name, weight in weights.items()}
        chosen = max(self._credit, key=lambda name: self._credit[name])
        self._credit[chosen] -= sum(weights.values())
        return chosen


class Pace:
    """How many prompt tokens a decode may take: so many that it ends in time."""

    def __init__(self) -> None:
        self._tokens: dict[Company, int] = {"alone": _MOST_CHUNK}
        self._per_s = _FIRST_GUESS_PER_S

    def tokens(self, company: Company, beside: int = 0) -> int:
        """The most for the next decode: as learned in this company, else by how fast reading was in another one.

        beside: how many other tokens are in it; with them it comes to whole tiles.
        """
        whole = (self._known(company) + beside) // _TILE * _TILE - beside
        return whole if whole >= _LEAST_READ else whole + _TILE * (1 + (_LEAST_READ - 1 - whole) // _TILE)

    def all_at_once(self, company: Company, unread: int) -> bool:
        """Whether one decode can read as much as this in time."""
        return unread <= self._known(company)

    def learn(self, company: Company, read: int, elapsed_s: float, beside: int = 0) -> None:
        """A decode read so many prompt tokens and took so long."""
        known, most = self._known(company), self.tokens(company, beside)
        if read + beside >= _TILE:
            self._per_s = read / max(elapsed_s, 1e-6)
        if company == "burst":      # too rare to learn from but how fast reading is
            return
        in_time = read * _TARGET_S[company] / max(elapsed_s, 1e-6)
        if elapsed_s > _TARGET_S[company]:
            self._tokens[company] = _within(max(in_time, 0.5 * min(read, known)))
        elif read >= most:      # a short one that was quick says nothing about a long one
            self._tokens[company] = _within(max(known, min(in_time, known * _FASTEST_GROWTH)))

    def _known(self, company: Company) -> int:
        known = self._tokens.get(company)
        return known if known is not None else _within(self._per_s * _TARGET_S[company])


def _within(tokens: float) -> int:
    return max(_LEAST_CHUNK, min(_MOST_CHUNK, int(tokens)))
