"""The grants in force, in memory, for checks on every request and frame. The peer book decides and stores; this
remembers.

Implements offload.claim.GrantBook and search.ports.GrantBook. Must not know what a service does with a grant.
"""

from dataclasses import dataclass

from node.clock import Clock, to_ms
from node.identity.hours import half_hour_at
from node.identity.peerbook import PeerBook
from protocol.grants import ALL_DAY, Grant, opens_in_half_hours

__all__ = ["Grants"]

HALF_HOUR_S = 1800


@dataclass(frozen=True, slots=True)
class _Both:
    issued: Grant | None = None
    issued_blob: bytes = b""
    received: Grant | None = None


class Grants:
    """All live grants of this node. load() a peer whenever its row may have changed."""

    def __init__(self, book: PeerBook, clock: Clock) -> None:
        self._book = book
        self._clock = clock
        self._held: dict[str, _Both] = {}

    async def load(self, peer_id: str) -> None:
        """Read both grants of one peer anew."""
        blob = await self._book.issued_blob(peer_id) or b""
        issued = self._book.read_issued(blob, peer_id) if blob else None
        self._held[peer_id] = _Both(issued, blob if issued else b"", await self._book.grant_from(peer_id))

    def grant_for(self, peer_id: str) -> Grant | None:
        """What this peer may do here now; None: nothing."""
        grant = self._in_time(self._of(peer_id).issued)
        return grant if grant is not None and self._opens_in_s(grant) == 0 else None

    def promised_to(self, peer_id: str) -> Grant | None:
        """What this peer may do here, at the hours that its grant names; for telling it, not for letting it."""
        return self._in_time(self._of(peer_id).issued)

    def blob_for(self, peer_id: str) -> bytes:
        """The signed grant as this peer is told it; empty when there is none or its time is over."""
        held = self._of(peer_id)
        return held.issued_blob if self._in_time(held.issued) is not None else b""

    def ran_out(self, peer_id: str) -> bool:
        """Whether there is a grant for this peer whose time is over."""
        issued = self._of(peer_id).issued
        return issued is not None and self._in_time(issued) is None

    def reopens_in_s(self, peer_id: str) -> int | None:
        """In how many seconds the hours of this peer's grant begin; None when it is not the hours that hinder."""
        grant = self._in_time(self._of(peer_id).issued)
        return None if grant is None else self._opens_in_s(grant) or None

    def granted_by(self, peer_id: str) -> Grant | None:
        """What this node may do at that peer, as far as the peer told us, whatever the hour."""
        return self._in_time(self._of(peer_id).received)

    def opens_there_in_s(self, peer_id: str) -> int:
        """In how many seconds that peer's grant for this node is good again by its hours; 0: now, or nothing is known.
        """
        grant = self.granted_by(peer_id)
        return 0 if grant is None else self._opens_in_s(grant) or 0

    def receive(self, peer_id: str, blob: bytes) -> Grant | None:
        """Take in what a paired peer says this node may do there, before it is stored; None: nothing it can prove."""
        received = self._book.read_received(blob, peer_id) if blob else None
        held = self._of(peer_id)
        self._held[peer_id] = _Both(held.issued, held.issued_blob, received)
        return received

    def drop(self, peer_id: str) -> None:
        """Forget both grants of a peer at once; live streams see it at their next frame."""
        self._held.pop(peer_id, None)

    def _of(self, peer_id: str) -> _Both:
        return self._held.get(peer_id, _Both())

    def _in_time(self, grant: Grant | None) -> Grant | None:
        return grant if grant is not None and to_ms(self._clock.now()) // 1000 <= grant.not_after_s else None

    def _opens_in_s(self, grant: Grant) -> int | None:
        """0: it is good now. None: its hours never come, or its zone is not known here."""
        if grant.half_hours == ALL_DAY:
            return 0
        now = self._clock.now()
        present = half_hour_at(now, grant.zone)
        ahead = None if present is None else opens_in_half_hours(grant, present)
        if not ahead:
            return ahead
        return ahead * HALF_HOUR_S - (now.minute % 30) * 60 - now.second
