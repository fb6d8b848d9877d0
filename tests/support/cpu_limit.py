"""Stops what needs more CPU than it may: for tests that a piece of work grows with its input and not with its square.

A limit far above what is needed, so that it tells minutes from milliseconds and no slow machine from a fast one.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["cpu_limit"]


@contextmanager
def cpu_limit(limit_s: float = 20.0) -> Iterator[None]:
    """Raises AssertionError in the block once this process has spent limit_s seconds of CPU. Main thread only."""

    def stop(*_: object) -> None:
        raise AssertionError(f"needed more than {limit_s:g} s of CPU")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
