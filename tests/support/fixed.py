"""Clocks and entropy under the test's control."""

import hashlib
from datetime import UTC, datetime, timedelta

__all__ = ["FixedClock", "SeededEntropy"]


class FixedClock:
    """A clock that stands until it is moved."""

    def __init__(self, start: datetime = datetime(2026, 3, 18, 9, 30, tzinfo=UTC)) -> None:
        self._now = start
        self._monotonic_s = 1000.0

    def now(self) -> datetime:
        return self._now

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += timedelta(seconds=seconds)
        self._monotonic_s += seconds

    def set(self, instant: datetime) -> None:
        """Set the date as an owner would: the steady count does not jump."""
        self._now = instant


class SeededEntropy:
    """Reproducible bytes, different for every call."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._calls = 0

    def bytes(self, n: int) -> "bytes":
        self._calls += 1
        return hashlib.shake_256(f"{self._seed}/{self._calls}".encode()).digest(n)
