"""Looks for something better than a relay: tries known addresses, then hole punching, again and again but ever rarer.

Must not know sockets or the exchange itself. Runs within one session of the network.
"""

from collections.abc import Awaitable, Callable, Iterable

import trio

from node.net.limits import RelayLimits

__all__ = ["Improver"]


class Improver:
    """Plans tries for every peer that is connected through a relay only. run() makes them."""

    def __init__(
        self, relayed: Callable[[], Iterable[str]], improve: Callable[[str], Awaitable[None]], limits: RelayLimits
    ) -> None:
        """relayed: the peers without a direct connection now. improve(peer_id): one try; bounded, never raises for
        what a peer does."""
        self._relayed = relayed
        self._improve = improve
        self._pauses_s = limits.improve_after_s
        self._tries: dict[str, int] = {}
        self._due_s: dict[str, float] = {}
        self._running: set[str] = set()

    def nudge(self, peer_id: str) -> None:
        """Something about this peer is new (an address, say): try again soon."""
        self._tries.pop(peer_id, None)
        self._due_s.pop(peer_id, None)

    async def run(self) -> None:
        """Until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                for peer_id in self._due(set(self._relayed())):
                    self._running.add(peer_id)
                    nursery.start_soon(self._try, peer_id)
                await trio.sleep(self._pauses_s[0] / 2)

    def _due(self, relayed: set[str]) -> list[str]:
        for gone in self._due_s.keys() - relayed:
            self.nudge(gone)
        now_s = trio.current_time()
        for peer_id in relayed - self._due_s.keys():
            self._due_s[peer_id] = now_s + self._pauses_s[0]
        return [peer_id for peer_id in relayed - self._running if self._due_s[peer_id] <= now_s]

    async def _try(self, peer_id: str) -> None:
        try:
            await self._improve(peer_id)
        finally:
            self._running.discard(peer_id)
            self._tries[peer_id] = tries = self._tries.get(peer_id, 0) + 1
            pause_s = self._pauses_s[min(tries, len(self._pauses_s) - 1)]
            self._due_s[peer_id] = trio.current_time() + pause_s
