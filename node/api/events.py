"""What happens at the node, for everybody who follows it: a terminal that watches, a page, a notification.

Following is lossy on purpose: a reader that does not keep up loses the oldest it has not read and is told how many. No
event holds personal text. Must not know what an event means.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import trio

from node.errors import KithError

__all__ = ["Events", "TooManyFollowers"]

ALIVE_S = 20.0
WAITING_EVENTS = 256
MAX_FOLLOWERS = 32

Event = Mapping[str, Any]


class TooManyFollowers(KithError):
    """Too many programs follow this node's events already."""

    code = "too_many_followers"
    hint = "End one of them: another kith mode --watch, kith queue watch, or page."


@dataclass(slots=True)
class _Follower:
    kinds: frozenset[str]
    waiting: list[Event] = field(default_factory=list)
    missed: int = 0
    bell: trio.Event = field(default_factory=trio.Event)

    def put(self, event: Event) -> None:
        if self.kinds and event["event"] not in self.kinds:
            return
        if len(self.waiting) >= WAITING_EVENTS:
            del self.waiting[0]
            self.missed += 1
        self.waiting.append(event)
        self.bell.set()


class Events:
    """One per node."""

    def __init__(self) -> None:
        self._followers: list[_Follower] = []

    def publish(self, event: Event) -> None:
        """Tell everybody who follows; "event" names the kind. Never blocks."""
        for follower in self._followers:
            follower.put(event)

    async def follow(self, kinds: Collection[str], emit: Callable[[Event], Awaitable[None]]) -> None:
        """Pass events of these kinds (none named: all) to emit until cancelled, and a sign of life every 20 s.

        Raises TooManyFollowers.
        """
        if len(self._followers) >= MAX_FOLLOWERS:
            raise TooManyFollowers
        follower = _Follower(frozenset(kinds))
        self._followers.append(follower)
        try:
            await emit({"event": "following"})
            while True:
                with trio.move_on_after(ALIVE_S):
                    await follower.bell.wait()
                follower.bell = trio.Event()
                waiting, follower.waiting = follower.waiting, []
                missed, follower.missed = follower.missed, 0
                if missed:
                    await emit({"event": "missed", "count": missed})
                for event in waiting or ({"event": "alive"},):
                    await emit(event)
        finally:
            self._followers.remove(follower)
