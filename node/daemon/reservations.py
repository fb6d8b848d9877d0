"""What this node has sent to each peer and that peer's own word on its load does not show yet.

Two requests that are dispatched at the same moment see each other here, so a burst spreads. Must not know how a place
is chosen.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Reservations"]

TELLING_S = 1.0
"""A peer's word on its load counts what was dispatched this long before it came: it travels, and is told twice a second
at most."""


@dataclass(slots=True, eq=False)
class _Reservation:
    peer_id: str
    seconds: float
    at_s: float


class Reservations:
    """Of one node."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._held: list[_Reservation] = []

    @contextmanager
    def hold(self, peer_id: str, seconds: float) -> Iterator[None]:
        """The peer is at work for us for about so long, while the block lasts at most."""
        reservation = _Reservation(peer_id, seconds, self._now_s())
        self._held.append(reservation)
        try:
            yield
        finally:
            self._held.remove(reservation)

    def count(self, peer_id: str) -> int:
        """How many requests of ours are at work there."""
        return sum(one.peer_id == peer_id for one in self._held)

    def wait_s(self, peer_id: str, told_s: float, told_at_s: float) -> float:
        """How long the peer is at work yet: what it told at that moment, and what we have sent since."""
        since = [one for one in self._held if one.peer_id == peer_id and one.at_s > told_at_s - TELLING_S]
        return told_s + sum(one.seconds for one in since)
