"""Peers as places for this node's work: what they offer and how busy they are, what they refused, what they have of
ours.

Must not know who is paired or present, nor how a place is chosen.
"""

from collections.abc import Callable
from dataclasses import dataclass

from node.clock import Clock
from node.daemon.grants import Grants
from node.daemon.reservations import Reservations
from node.store.peers import Peer
from offload.prediction import Speed
from offload.refusals import refusal_in_words
from offload.router import Offer, PeerCandidate
from protocol.frames.link import IDLE, Load, ModelAdvert

__all__ = ["REFUSAL_REMEMBERED_S", "PeerWork", "Presence"]

REFUSAL_REMEMBERED_S = 10.0


@dataclass(slots=True)
class Presence:
    """A peer that is here."""

    address: str
    rtt_ms: float
    models: tuple[ModelAdvert, ...]
    capabilities: frozenset[str]
    """What the peer lets this node do."""
    load: Load = IDLE
    load_at_s: float = 0.0
    dialled: bool = True
    """Whether this node made the connection: only then is the address one to call again."""
    their_trust: str | None = None
    """What this node is to the peer, as it greeted."""


@dataclass(slots=True)
class _Refusal:
    words: str
    until_s: float


class PeerWork:
    """One per node; reservations are those of all its requests."""

    def __init__(self, grants: Grants, clock: Clock) -> None:
        self._grants = grants
        self._clock = clock
        self._refusals: dict[str, _Refusal] = {}
        self._in_flight: dict[str, int] = {}
        self._doubts: dict[str, str] = {}
        self.kept_back: Callable[[str], str] = lambda peer_id: ""
        """Why no prompt may leave for this peer, whatever it holds; "" when one may."""
        self.reservations = Reservations(clock.monotonic_s)

    def candidate(self, row: Peer, here: Presence | None) -> PeerCandidate:
        """The peer as it could compute for us at this moment; here None: it is away."""
        peer_id = row.peer_id
        grant, opens_in_s = self._grants.granted_by(peer_id), self._grants.opens_there_in_s(peer_id)
        load, told_at_s = (here.load, here.load_at_s) if here else (IDLE, 0.0)
        return PeerCandidate(
            peer_id, row.name, row.trust, here is not None, here is not None and "infer" in here.capabilities,
            tuple(map(_offer, here.models)) if here else (), self._refusal(peer_id),
            max(self._in_flight.get(peer_id, 0), self.reservations.count(peer_id)),
            wait_s=self.reservations.wait_s(peer_id, load.ahead_ms / 1000, told_at_s),
            rtt_s=here.rtt_ms / 1000 if here else 0.0, saving=load.saving,
            max_context=None if grant is None else grant.max_context,
            hindrance=self.kept_back(peer_id)
            or (refusal_in_words("outside_hours", None, opens_in_s) if opens_in_s else ""),
            doubted=self._doubts.get(peer_id, ""),
        )

    def _refusal(self, peer_id: str) -> str:
        refusal = self._refusals.get(peer_id)
        if refusal is None or refusal.until_s > self._clock.monotonic_s():
            return "" if refusal is None else refusal.words
        del self._refusals[peer_id]
        return ""

    def note_refusal(self, peer_id: str, words: str) -> None:
        """Leave this peer alone for a moment."""
        self._refusals[peer_id] = _Refusal(words, self._clock.monotonic_s() + REFUSAL_REMEMBERED_S)

    def forgive(self, peer_id: str) -> None:
        """What the peer refused before may be granted now."""
        self._refusals.pop(peer_id, None)

    def started(self, peer_id: str) -> None:
        """One more request is at work there."""
        self._in_flight[peer_id] = self._in_flight.get(peer_id, 0) + 1

    def ended(self, peer_id: str) -> None:
        """One request less."""
        left = self._in_flight.get(peer_id, 0) - 1
        self._in_flight[peer_id] = left
        if left <= 0:
            self._in_flight.pop(peer_id)

    def doubt(self, peer_id: str, words: str) -> None:
        """The peer was found not to run what it names; "" ends the doubt."""
        self._doubts[peer_id] = words
        if not words:
            self._doubts.pop(peer_id)

    def doubt_of(self, peer_id: str) -> str:
        """Why the peer's answers are not trusted to be its model's; "" when they are."""
        return self._doubts.get(peer_id, "")

    def drop(self, peer_id: str) -> None:
        """Forget a peer that is paired no more."""
        self._refusals.pop(peer_id, None)
        self._in_flight.pop(peer_id, None)
        self._doubts.pop(peer_id, None)


def _offer(advert: ModelAdvert) -> Offer:
    return Offer(
        advert.name, advert.digest, advert.context_tokens, advert.quantisation, advert.warm,
        Speed(advert.prompt_token_us / 1e6, advert.output_token_us / 1e6, advert.load_ms / 1000),
    )
