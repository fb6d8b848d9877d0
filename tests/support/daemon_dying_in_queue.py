"""A node that kills itself at one exact instant of a queued request. A program for tests.

First argument: "added" - the request is durable, nothing is drafted; "running" - it is claimed, nothing has left;
"before-settled" - the better answer is here and not written; "settled" - it is written and nobody was told.
"""

import os
import signal
import sys
from typing import Any

from node.daemon.__main__ import run_node
from node.daemon.composition import Composition
from node.daemon.queue_desk import QueueTeller
from node.daemon.upgrading import PeerUpgrader
from node.intents.driver import IntentQueue, NewIntent
from node.intents.ports import Outcome, Upgraded
from node.store.intents import Intent

_add = IntentQueue.add
_run = PeerUpgrader.run


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def _added_then_dead(self: IntentQueue, new: NewIntent, *, held: bool = False) -> Intent:
    await _add(self, new, held=held)
    _die()
    raise AssertionError


async def _dead_before_running(self: PeerUpgrader, intent: Intent) -> Outcome:
    _die()
    raise AssertionError


async def _dead_before_settled(self: PeerUpgrader, intent: Intent) -> Outcome:
    outcome = await _run(self, intent)
    if isinstance(outcome, Upgraded):
        _die()
    return outcome


def _dead_when_done(self: QueueTeller, intent: Any) -> None:
    if intent.state == "done":
        _die()


if __name__ == "__main__":
    match sys.argv[1]:
        case "added":
            IntentQueue.add = _added_then_dead  # type: ignore[method-assign]
        case "running":
            PeerUpgrader.run = _dead_before_running  # type: ignore[method-assign]
        case "before-settled":
            PeerUpgrader.run = _dead_before_settled  # type: ignore[method-assign]
        case "settled":
            QueueTeller.intent_changed = _dead_when_done  # type: ignore[method-assign]
        case other:
            sys.exit(f"unknown instant: {other}")
    sys.exit(run_node(sys.argv[2:], Composition()))
