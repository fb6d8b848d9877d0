"""What holds in all tests: no Hypothesis example has to be done in a given time, and time that jumps waits for threads.

A busy machine keeps neither. Fixtures of one subject belong beside its tests.
"""

from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, settings

settings.register_profile("kith", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kith")

THREAD_S = 2.0
"""Real time that time stands still for while a thread is at work. No limit at all would hang where a thread waits for
the jump itself."""


@pytest.fixture
def autojump_clock(monkeypatch: pytest.MonkeyPatch) -> trio.testing.MockClock:
    """Jumps to the next deadline once nothing is left to do. In place of pytest-trio's, which takes a task that waits
    for a thread (a database, a file) for one with nothing to do: how far time jumps then is a matter of how busy the
    machine is."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    run_sync, at_work, threshold = trio.to_thread.run_sync, 0, 0.0

    async def held(*call: Any, **options: Any) -> Any:
        nonlocal at_work, threshold
        if not at_work:
            threshold, clock.autojump_threshold = clock.autojump_threshold, max(THREAD_S, clock.autojump_threshold)
        at_work += 1
        try:
            return await run_sync(*call, **options)
        finally:
            at_work -= 1
            if not at_work:
                clock.autojump_threshold = threshold

    monkeypatch.setattr(trio.to_thread, "run_sync", held)
    return clock
