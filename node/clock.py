"""Time and entropy, handed to whoever needs them: real ones for the daemon, controllable ones for tests.

Everything else in the node takes a Clock and an Entropy as arguments. This module must not know who uses them.
"""

import os
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

__all__ = ["Clock", "Entropy", "SystemClock", "SystemEntropy", "from_ms", "new_id", "to_ms"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """The time of day for people and records, and a steady count of seconds for waits and ages."""

    def now(self) -> datetime:
        """The present instant, aware and in UTC. May jump when the owner sets the clock."""
        ...

    def monotonic_s(self) -> float:
        """Seconds from an unknown start; never goes back, says nothing about the date."""
        ...


class Entropy(Protocol):
    """Unpredictable bytes."""

    def bytes(self, n: int) -> bytes:
        """Exactly n fresh bytes, fit for keys."""
        ...


class SystemClock:
    """The operating system's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        return time.monotonic()


class SystemEntropy:
    """The operating system's random source."""

    def bytes(self, n: int) -> bytes:
        return os.urandom(n)


def to_ms(instant: datetime) -> int:
    """Milliseconds since 1970 in UTC, as the databases and the wire hold time. ValueError for a naive datetime."""
    if instant.tzinfo is None:
        raise ValueError("a datetime without a time zone has no place in time")
    return (instant - _EPOCH) // timedelta(milliseconds=1)


def from_ms(ms: int) -> datetime:
    """The aware UTC datetime for milliseconds since 1970."""
    return _EPOCH + timedelta(milliseconds=ms)


def new_id(entropy: Entropy) -> str:
    """A fresh 16-byte identifier as 32 hex digits, for requests, messages and conversations."""
    return entropy.bytes(16).hex()
