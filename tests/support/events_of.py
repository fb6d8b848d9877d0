"""Follows a node's events in a thread, with the moment each arrived. For tests."""

import threading
import time
from typing import Any

from running_nodes import until

from node.cli.demo.nodes import DemoNode
from node.cli.failure import CommandFailure

__all__ = ["Follower"]


class Follower:
    """events: (monotonic seconds, event), until the node ends."""

    def __init__(self, node: DemoNode, kinds: str) -> None:
        self.events: list[tuple[float, dict[str, Any]]] = []
        self._stream = node.client().stream(f"/v1/events?kinds={kinds}", {})
        threading.Thread(target=self._read, daemon=True).start()
        until(lambda: self.events[:1], "the events are followed")

    def _read(self) -> None:
        try:
            for event in self._stream:
                self.events.append((time.monotonic(), event))
        except (CommandFailure, OSError):
            return

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of this kind so far."""
        return [event for _, event in self.events if event["event"] == kind]

    def wait(self, since: int, **wanted: Any) -> float:
        """When the first event from number `since` on with these values arrived."""
        def look() -> float | None:
            return next((at for at, event in self.events[since:] if wanted.items() <= event.items()), None)

        return until(look, f"an event with {wanted}")
