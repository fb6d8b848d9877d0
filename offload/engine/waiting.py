"""Who waits for a slot, who is next, and when that may be.

The owner's answers come first, in order. Guests take turns: whoever has the fewest answers at work, then who came
first; so many requests of one do not keep the others waiting. Must not know slots, the context or the pipe.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from offload.engine.answer import Answer
from offload.ports import OWNER

__all__ = ["Forecast", "Line"]

_NEWEST_WEIGHT = 0.3


class Line:
    """The answers without a slot."""

    def __init__(self, limit: int) -> None:
        """limit: how many may wait, of the owner's and of all guests' each."""
        self._limit = limit
        self._owners: deque[Answer] = deque()
        self._guests: deque[Answer] = deque()
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._owners) + len(self._guests)

    @property
    def answers(self) -> list[Answer]:
        """All, in no order that matters."""
        return [*self._owners, *self._guests]

    @property
    def owner_waits(self) -> bool:
        """Whether one of the owner's waits."""
        return bool(self._owners)

    def put(self, answer: Answer, *, free: int) -> bool:
        """Let it wait; False when the line is full. free: slots that will be taken from it at once."""
        line = self._line_of(answer)
        if len(line) >= self._limit + free:
            return False
        self._arrivals += 1
        answer.arrival = self._arrivals
        line.append(answer)
        return True

    def put_back(self, answer: Answer) -> None:
        """One that was at work waits again, before those that came after it."""
        line = self._line_of(answer)
        place = next((place for place, other in enumerate(line) if other.arrival > answer.arrival), len(line))
        line.insert(place, answer)

    def take(self, answer: Answer) -> None:
        """It waits no longer."""
        self._line_of(answer).remove(answer)

    def find(self, request_id: str) -> Answer | None:
        """The one with this id."""
        return next((answer for answer in self.answers if answer.request_id == request_id), None)

    def next(self, at_work: Mapping[str, int]) -> Answer | None:
        """Who gets the next slot. at_work: answers with a slot, by principal."""
        return next(iter(self.order(at_work, most=1)), None)

    def order(self, at_work: Mapping[str, int], *, most: int | None = None) -> list[Answer]:
        """Who gets a slot when, as it stands now: the first ones, all by default."""
        order = list(self._owners)
        counts = Counter(at_work)
        guests = list(self._guests)
        while guests and (most is None or len(order) < most):
            answer = min(guests, key=lambda answer: (counts[answer.principal], answer.arrival))
            counts[answer.principal] += 1
            guests.remove(answer)
            order.append(answer)
        return order[:most]

    def _line_of(self, answer: Answer) -> deque[Answer]:
        return self._owners if answer.principal == OWNER else self._guests


class Forecast:
    """When a waiting answer may start, by how long answers took lately."""

    def __init__(self) -> None:
        self._typical_s: float | None = None

    def learn(self, took_s: float) -> None:
        """An answer took so long from its start to its end."""
        known = self._typical_s
        self._typical_s = took_s if known is None else known + _NEWEST_WEIGHT * (took_s - known)

    def expected_s(self, position: int, at_work_s: Sequence[float], slots: int) -> float | None:
        """Seconds until its turn, None while nothing is known. at_work_s: how long each one at work has been so."""
        if self._typical_s is None:
            return None
        typical_s = self._typical_s
        free_in_s = sorted([max(0.0, typical_s - past_s) for past_s in at_work_s] + [0.0] * (slots - len(at_work_s)))
        return round(free_in_s[position % slots] + position // slots * typical_s, 1)
