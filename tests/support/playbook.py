"""A playbook for sans-IO machines: events go in with >>, expected commands are ticked off with <<.

    Playbook(machine) >> Begin() << Send(request) >> Received(accepted) << Admitted(DIGEST, 0) << None

`<< None` says that nothing (more) follows; it is also checked before every next event. `<< SomeType` takes the next
command of that type, whatever its fields. `after(seconds)` moves the clock, `refused(error, event)` expects the machine
to raise.
"""

from types import UnionType
from typing import Any, Self

import pytest

__all__ = ["Playbook"]


class Playbook:
    """Drives one machine step by step."""

    def __init__(self, machine: Any, *, now_s: float = 100.0) -> None:
        self.machine = machine
        self.now_s = now_s
        self.last: Any = None
        self._waiting: list[object] = []

    def __rshift__(self, event: object) -> Self:
        self._nothing_left()
        self._waiting = list(self.machine.handle(event, self.now_s))
        return self

    def __lshift__(self, expected: object) -> Self:
        if expected is None:
            self._nothing_left()
            return self
        assert self._waiting, f"expected {expected!r}, but nothing (more) came"
        self.last = self._waiting.pop(0)
        if isinstance(expected, type | UnionType):
            assert isinstance(self.last, expected), f"expected {expected!r}, got {self.last!r}"
        else:
            assert self.last == expected
        return self

    def after(self, seconds: float) -> Self:
        """Let time pass, without an event."""
        self.now_s += seconds
        return self

    def refused(self, error: type[Exception], event: object, match: str | None = None) -> Self:
        """The machine raises on this event."""
        self._nothing_left()
        with pytest.raises(error, match=match):
            self.machine.handle(event, self.now_s)
        return self

    def _nothing_left(self) -> None:
        assert not self._waiting, f"unexpected: {self._waiting!r}"
