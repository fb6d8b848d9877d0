"""A node on a machine whose clock shows another date: a program for tests. First argument: how many days ahead."""

import sys
from dataclasses import dataclass
from datetime import datetime, timedelta

from node.clock import SystemClock
from node.daemon.__main__ import run_node
from node.daemon.composition import Composition


@dataclass(frozen=True)
class ShiftedClock(SystemClock):
    """The system's clock, with another date."""

    by: timedelta

    def now(self) -> datetime:
        """What that machine shows."""
        return super().now() + self.by


if __name__ == "__main__":
    sys.exit(run_node(sys.argv[2:], Composition(clock=ShiftedClock(timedelta(days=int(sys.argv[1]))))))
