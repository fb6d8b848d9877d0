"""The grants in force, in memory, for checks on every request and frame. The peer book decides and stores; this
remembers.

Implements offload.server.GrantBook and search.ports.GrantBook. Must not know what a service does with a grant.
"""

from dataclasses import dataclass

from node.clock import Clock, to_ms
from node.identity.peerbook import PeerBook
from protocol.grants import Grant

__all__ = ["Grants"]


@dataclass(frozen=True, slots=True)
class _Both:
    issued: Grant | None
    received: Grant | None


class Grants:
    """All live grants of this node. load() a peer whenever its row may have changed."""

    def __init__(self, book: PeerBook, clock: Clock) -> None:
        self._book = book
        self._clock = clock
        self._held: dict[str, _Both] = {}

    async def load(self, peer_id: str) -> None:
        """Read both grants of one peer anew."""
        self._held[peer_id] = _Both(await self._book.issued_to(peer_id), await self._book.grant_from(peer_id))

    def grant_for(self, peer_id: str) -> Grant | None:
        """What this peer may do here now; None: nothing."""
        held = self._held.get(peer_id)
        return None if held is None else self._in_time(held.issued)

    def ran_out(self, peer_id: str) -> bool:
        """Whether there is a grant for this peer whose time is over."""
        held = self._held.get(peer_id)
        return held is not None and held.issued is not None and self._in_time(held.issued) is None

    def granted_by(self, peer_id: str) -> Grant | None:
        """What this node may do at that peer, as far as the peer told us."""
        held = self._held.get(peer_id)
        return None if held is None else self._in_time(held.received)

    def drop(self, peer_id: str) -> None:
        """Forget both grants of a peer at once; live streams see it at their next frame."""
        self._held.pop(peer_id, None)

    def _in_time(self, grant: Grant | None) -> Grant | None:
        return grant if grant is not None and to_ms(self._clock.now()) // 1000 <= grant.not_after_s else None
