"""Seeing that nothing new happens: a model that says the same again and again, a turn that repeats a step.

Each finding comes with a reason in words for the owner. Must not know models, tools or events.
"""

from dataclasses import dataclass, field

__all__ = ["RepeatedSteps", "RepeatedText"]

_WINDOW_CHARS = 2000
_LINE_TIMES = 4
_LINE_MIN_CHARS = 8
_TAIL_TIMES = 4
_TAIL_MIN_CHARS = 160
_PERIOD_MAX_CHARS = 400


@dataclass(slots=True)
class RepeatedText:
    """Watches a growing answer. Bounded memory: the last 2,000 characters."""

    _tail: str = ""
    reason: str | None = None

    def feed(self, piece: str) -> bool:
        """Take a piece; True once the answer goes in circles, with `reason` set."""
        self._tail = (self._tail + piece)[-_WINDOW_CHARS:]
        if self.reason is None:
            self.reason = _looping(self._tail)
        return self.reason is not None


def _looping(tail: str) -> str | None:
    lines = [line.strip() for line in tail.splitlines()[:-1] if line.strip()]
    if len(lines) >= _LINE_TIMES and len(lines[-1]) >= _LINE_MIN_CHARS and len(set(lines[-_LINE_TIMES:])) == 1:
        return f"the model repeated one line {_LINE_TIMES} times"
    period = _period(tail)
    if period and period * _TAIL_TIMES <= len(tail):
        covered = max(_TAIL_MIN_CHARS, period * _TAIL_TIMES)
        if covered <= len(tail) and tail[-covered:] == (tail[-period:] * (covered // period + 1))[-covered:]:
            return f"the model repeated the same {period} characters over and over"
    return None


def _period(tail: str) -> int | None:
    """The shortest length after which the end of tail repeats, up to a limit."""
    probe = tail[-24:]
    if len(probe) < 24:
        return None
    start = max(0, len(tail) - 24 - _PERIOD_MAX_CHARS)
    found = tail.rfind(probe, start, len(tail) - 1)
    return len(tail) - 24 - found if found >= 0 else None


@dataclass(slots=True)
class RepeatedSteps:
    """Counts and compares the steps of one turn."""

    limit: int = 8
    taken: int = 0
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def step(self, name: str, what: str) -> str | None:
        """Note a step about to be taken; a reason in words when it must not be: too many, or done before."""
        if self.taken >= self.limit:
            return f"this took {self.limit} steps already, which is the bound for one request"
        if (name, what) in self._seen:
            return f"{name} was asked for the same thing twice in one request"
        self._seen.add((name, what))
        self.taken += 1
        return None
