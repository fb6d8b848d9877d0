"""When a child that died is started again, and when it is left alone. Pure: times come in, decisions go out.

Must not know processes or clocks.
"""

from dataclasses import dataclass

__all__ = ["CrashLog", "RestartPolicy"]


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Limits of restarting. All times in seconds.

    The first restart comes at once, so that an answer can go on; then first_delay_s, doubled up to longest_delay_s.
    A child that lived settled_s is sound again. crash_limit crashes in a row mean quarantine for quarantine_s.
    """

    first_delay_s: float = 0.5
    longest_delay_s: float = 30.0
    settled_s: float = 60.0
    crash_limit: int = 5
    quarantine_s: float = 600.0


class CrashLog:
    """Counts crashes in a row and says how long to wait."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._row = 0
        self._until_s: float | None = None
        self.total = 0

    def crashed(self, *, now_s: float, lived_s: float) -> float | None:
        """Note a crash; returns the delay before the next start, or None for quarantine."""
        policy = self._policy
        self.total += 1
        self._row = 1 if lived_s >= policy.settled_s else self._row + 1
        if self._row >= policy.crash_limit:
            self._until_s = now_s + policy.quarantine_s
            return None
        if self._row == 1:
            return 0.0
        return min(policy.longest_delay_s, policy.first_delay_s * 2.0 ** (self._row - 2))

    def quarantined(self, now_s: float) -> bool:
        """Whether it must not be started now. Quarantine ends by itself; the next crash then renews it at once."""
        if self._until_s is None or now_s < self._until_s:
            return self._until_s is not None
        self._until_s = None
        self._row = self._policy.crash_limit - 1
        return False

    def release(self) -> None:
        """Forget the crashes: the owner says it is fixed."""
        self._row = 0
        self._until_s = None
