"""The machine's sleep: kept off while answers for peers run, and noticed once it is over.

Must not know how a machine is kept awake (a SleepBlocker does), nor what is to be done after sleep (its caller does).
"""

import logging
import time
from collections.abc import Callable
from typing import Protocol

from node.clock import Clock

__all__ = ["AwakeWhileServing", "SleepBlocker", "SleepWatch", "slept_since_boot_s"]

log = logging.getLogger(__name__)

LINGER_S = 30.0
"""Sleep stays off this long after the last answer: whoever reads one usually asks again."""
RETRY_S = 300.0
"""How long after a system that can't keep awake it is asked again."""
NOTICED_S = 2.0
"""A shorter difference of the two clocks is rounding."""


def slept_since_boot_s() -> float:
    """How long this machine has been asleep since it was started; 0.0 where the system doesn't tell."""
    try:
        total_s, awake_s = time.clock_gettime(time.CLOCK_BOOTTIME), time.clock_gettime(time.CLOCK_MONOTONIC)
    except (AttributeError, OSError):
        return 0.0
    return max(0.0, total_s - awake_s)


class SleepWatch:
    """Tells when the machine has slept: by the clock that counts on in sleep, against the one that stands still."""

    def __init__(self, slept_s: Callable[[], float] = slept_since_boot_s) -> None:
        self._slept_s = slept_s
        self._before_s = slept_s()

    def look(self) -> float:
        """Seconds slept since the last look; 0.0 for none."""
        now_s = self._slept_s()
        slept_s, self._before_s = now_s - self._before_s, now_s
        return slept_s if slept_s >= NOTICED_S else 0.0


class SleepBlocker(Protocol):
    """The system's way to put sleep off."""

    async def block(self) -> None:
        """Put it off from now on. Raises OSError when the system can't."""
        ...

    async def release(self) -> None:
        """Allow it again. Doing it twice is fine."""
        ...


class AwakeWhileServing:
    """Puts sleep off while this node computes for peers. update() is called once a second."""

    def __init__(self, blocker: SleepBlocker, clock: Clock) -> None:
        self._blocker = blocker
        self._clock = clock
        self._served_s: float | None = None
        self._retry_s = 0.0
        self.blocking = False

    async def update(self, *, serving: bool) -> None:
        """One look. A system that can't put sleep off is reported once and asked again after RETRY_S."""
        now_s = self._clock.monotonic_s()
        if serving:
            self._served_s = now_s
            if not self.blocking and now_s >= self._retry_s:
                await self._block(now_s)
        elif self.blocking and (self._served_s is None or now_s - self._served_s >= LINGER_S):
            await self.close()

    async def _block(self, now_s: float) -> None:
        try:
            await self._blocker.block()
        except OSError as error:
            self._retry_s = now_s + RETRY_S
            log.info("this machine may fall asleep while it serves: %s", error)
        else:
            self.blocking = True

    async def close(self) -> None:
        """Allow sleep again."""
        self.blocking = False
        await self._blocker.release()
