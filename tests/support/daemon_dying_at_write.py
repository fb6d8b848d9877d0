"""A node that kills itself at one exact instant of an approved write. A program for tests.

First argument: "after-approved" - the owner's yes is durable and nothing is written; "before-applied" - the event is in
the calendar file and the journal does not know it yet.
"""

import os
import signal
import sys
from collections.abc import Mapping

from node.agent.effects import Approval, Effect, Json
from node.agent.records import StoredJournal
from node.daemon.__main__ import run_node
from node.daemon.composition import Composition

_approved = StoredJournal.approved


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def _approved_then_dead(self: StoredJournal, effect: Effect, approval: Approval) -> None:
    await _approved(self, effect, approval)
    _die()


async def _dead_before_applied(self: StoredJournal, idempotency_key: str, undo: Mapping[str, Json]) -> None:
    _die()


if __name__ == "__main__":
    match sys.argv[1]:
        case "after-approved":
            StoredJournal.approved = _approved_then_dead  # type: ignore[method-assign]
        case "before-applied":
            StoredJournal.applied = _dead_before_applied  # type: ignore[method-assign]
        case other:
            sys.exit(f"unknown instant: {other}")
    sys.exit(run_node(sys.argv[2:], Composition()))
