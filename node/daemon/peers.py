"""The paired peers as this node sees them right now: who is here, what they serve and allow, how they are called.

Implements offload's view for the router (node.daemon.thinker.PeerDirectory) and node.api.ports.Peers. Presence
follows real contact:
a peer is here while its link beats. Must not know streams or what is asked of a peer.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import trio

from node.agent.tools.peers import PeerEntry
from node.api.views import PeerView as PeerScreen
from node.api.views import PingView
from node.clock import Clock, from_ms, to_ms
from node.counting import counted
from node.daemon.grants import Grants
from node.daemon.networking import Networking
from node.daemon.peer_work import PeerWork, Presence
from node.daemon.routes import relay_of, route_words
from node.errors import PeerUnreachable, StoreConflict, UsageError
from node.identity.peerbook import PeerBook, pick
from node.identity.trust import Trust
from node.net.events import GrantReceived, LinkDown, LinkUp, ModelsAdvertised, Rerouted
from node.privacy.policy import PeerView
from node.store import mail, peers
from node.store.database import Database
from node.store.peers import Peer
from offload.router import PeerCandidate
from protocol.frames.link import ModelAdvert

__all__ = ["Presence", "Roster"]

log = logging.getLogger(__name__)


async def _nothing(peer_id: str) -> None:
    """No service runs for a peer yet."""


_OWN = (Trust.SELF, Trust.HOME)


@dataclass(slots=True)
class _State:
    """What is known of one paired peer beyond its row."""

    row: Peer
    presence: Presence | None = None
    served: frozenset[str] = frozenset()


class Roster:
    """All paired peers. load() first; afterwards rows here and in the database are the same."""

    def __init__(
        self, database: Database, book: PeerBook, grants: Grants, clock: Clock,
        style_of: Callable[[str | None], Awaitable[str]],
    ) -> None:
        """style_of: the placeholder style that suits a model digest best."""
        self._database = database
        self._book = book
        self._grants = grants
        self._clock = clock
        self._style_of = style_of
        self._states: dict[str, _State] = {}
        self.networking: Networking | None = None
        self._arrived = trio.Event()
        self.work = PeerWork(grants, clock)
        self.end_streams: Callable[[str], Awaitable[None]] = _nothing
        """Ends what runs for a peer and tells it why, before its connection is dropped. Bounded."""
        self.review_streams: Callable[[str], Awaitable[None]] = _nothing
        """Ends what runs for a peer and does not fit its grant any more, and tells it why. Bounded."""
        self.on_change: Callable[[str, bool], None] = lambda peer_id, present: None
        self.on_offer: Callable[[], None] = lambda: None
        """Rung when a present peer offers other models, or lets this node do other things."""

    async def load(self) -> None:
        """Read every paired peer and its grants."""
        for row in await self._book.every():
            await self.adopt(row)

    async def adopt(self, row: Peer) -> None:
        """Take a peer that was just stored into use: grants, admission, link."""
        await self._grants.load(row.peer_id)
        known = self._states.get(row.peer_id)
        if known is None:
            self._states[row.peer_id] = _State(row)
        else:
            known.row = row
        if self.networking is not None and row.trust != Trust.NONE:
            self.networking.know(row.peer_id, row.addresses)

    async def welcome(self, row: Peer) -> None:
        """Take a peer that has just paired into use. A link that was made under an earlier pairing is made anew, for
        its greetings told the old grants; until the peer greets again, its new grant says what it allows."""
        await self.adopt(row)
        presence = self._states[row.peer_id].presence
        if presence is not None:
            received = self._grants.granted_by(row.peer_id)
            presence.capabilities = frozenset(received.services if received is not None else ())
        if self.networking is not None:
            self.networking.regreet(row.peer_id, only_outdated=True)
            self.networking.wake(row.peer_id)

    def known(self) -> list[tuple[str, Sequence[str]]]:
        """Peers to be admitted and linked, with their addresses."""
        return [(s.row.peer_id, s.row.addresses) for s in self._states.values() if s.row.trust != Trust.NONE]

    # -- events of the network --

    def link_up(self, event: LinkUp) -> None:
        """The peer greeted. What it refused before may be granted now."""
        state = self._states.get(event.peer_id)
        if state is None:
            return
        self.work.forgive(event.peer_id)
        self._grants.receive(event.peer_id, event.hello.grant)
        state.presence = Presence(
            event.address, event.rtt_ms, event.hello.models, frozenset(event.hello.capabilities),
            dialled=event.dialled and relay_of(event.address) is None, their_trust=event.hello.trust,
        )
        self._arrived.set()
        self._arrived = trio.Event()
        self.on_change(event.peer_id, True)

    def rerouted(self, event: Rerouted) -> None:
        """A peer that is here through a relay is connected directly now."""
        state = self._states.get(event.peer_id)
        if state is not None and state.presence is not None:
            state.presence.address, state.presence.dialled = event.address, event.dialled

    def link_down(self, event: LinkDown) -> None:
        """The peer is gone."""
        state = self._states.get(event.peer_id)
        if state is not None:
            state.served = self.served(event.peer_id)
            state.presence = None
            self.on_change(event.peer_id, False)

    def models_changed(self, event: ModelsAdvertised) -> None:
        """The peer serves other models now, or is more or less busy."""
        state = self._states.get(event.peer_id)
        if state is not None and state.presence is not None:
            others = state.presence.models != event.models
            state.presence.models, state.presence.load = event.models, event.load
            state.presence.load_at_s = self._clock.monotonic_s()
            if others:
                self.on_offer()

    def grant_heard(self, event: GrantReceived) -> None:
        """The peer decided anew what this node may do there. What it refused before may be granted now."""
        state = self._states.get(event.peer_id)
        if state is None:
            return
        self.work.forgive(event.peer_id)
        grant = self._grants.receive(event.peer_id, event.grant)
        if state.presence is not None:
            state.presence.capabilities = frozenset(grant.services if grant is not None else ())

    async def keep_grant(self, peer_id: str, blob: bytes) -> None:
        """Store what the peer said this node may do there; it is in use already."""
        try:
            await self._book.store_received(peer_id, blob)
        except StoreConflict as error:
            log.warning("a grant of %s is not stored: %s", peer_id, error.text)

    async def note_contact(self, peer_id: str) -> None:
        """Remember where and when a present peer was reached, and what this node is to it."""
        state = self._states.get(peer_id)
        if state is None or state.presence is None:
            return
        address = [state.presence.address] if state.presence.address and state.presence.dialled else []
        now_ms, their_trust = to_ms(self._clock.now()), state.presence.their_trust
        await self._database.write(peers.seen, peer_id, address, now_ms, their_trust)
        row = await self._book.get(peer_id)
        if row is not None:
            state.row = row

    # -- looking up --

    def find(self, name: str) -> str:
        """The id of the peer called by this name, id, or the start of either. Raises UnknownPeer, AmbiguousPeer."""
        return pick([state.row for state in self._states.values()], name).peer_id

    def name_of(self, peer_id: str) -> str:
        """How the owner calls this peer; the end of its id when it is not paired any more."""
        state = self._states.get(peer_id)
        return state.row.name if state is not None else f"...{peer_id[-6:]}"

    def trust_of(self, peer_id: str) -> str:
        """What this peer is to the owner; "none" when it is not paired."""
        state = self._states.get(peer_id)
        return state.row.trust if state is not None else Trust.NONE

    def is_present(self, peer_id: str) -> bool:
        """True while the peer's link beats."""
        state = self._states.get(peer_id)
        return state is not None and state.presence is not None

    async def wait_for(self, peer_id: str) -> None:
        """Return once the peer is here. No deadline of its own."""
        while not self.is_present(peer_id):
            await self._arrived.wait()

    def own_devices(self) -> frozenset[str]:
        """The peers that are the owner's own devices."""
        return frozenset(peer_id for peer_id, state in self._states.items() if state.row.trust in _OWN)

    def allows_us(self, peer_id: str) -> frozenset[str] | None:
        """What a present peer lets this node use, as it greeted; None when it is not here."""
        state = self._states.get(peer_id)
        return state.presence.capabilities if state is not None and state.presence is not None else None

    def adverts(self, peer_id: str) -> tuple[ModelAdvert, ...]:
        """The models that a present peer tells this node of."""
        state = self._states.get(peer_id)
        return state.presence.models if state is not None and state.presence is not None else ()

    def away(self) -> list[str]:
        """The names of paired and trusted peers that are not here."""
        return [s.row.name for s in self._states.values() if s.presence is None and s.row.trust != Trust.NONE]

    def is_paired(self, peer_id: str) -> bool:
        """Whether this peer is still known and trusted with anything."""
        state = self._states.get(peer_id)
        return state is not None and state.row.trust != Trust.NONE

    def rtt_ms(self, peer_id: str) -> float | None:
        """The round trip to a peer as it was measured when it came; None when it is not here."""
        state = self._states.get(peer_id)
        return state.presence.rtt_ms if state is not None and state.presence is not None else None

    def address_of(self, peer_id: str) -> str | None:
        """Where a present peer really is; None when it is not here, or came by a way that tells no address."""
        state = self._states.get(peer_id)
        return (state.presence.address or None) if state is not None and state.presence is not None else None

    def granting(self, service: str) -> list[str]:
        """Present peers that let this node use a service."""
        return [
            peer_id for peer_id, state in self._states.items()
            if state.presence is not None and service in state.presence.capabilities
        ]

    def served(self, peer_id: str) -> frozenset[str]:
        """The digests of the models that a peer serves, or served when it was last here in this life of the node."""
        state = self._states.get(peer_id)
        if state is None:
            return frozenset()
        here = state.presence
        return frozenset(model.digest for model in here.models) if here is not None else state.served

    async def view(self, peer_id: str, model_digest: str | None = None) -> PeerView | None:
        """The peer as the guard sees it."""
        state = self._states.get(peer_id)
        if state is None:
            return None
        told = state.presence.models if state.presence is not None else ()
        # tried here, or else as the peer says that it found it; what was tried here says nothing of a model of which it
        # was found that only its name is the same
        style = "brackets" if self.work.doubt_of(peer_id) else await self._style_of(model_digest)
        if style == "brackets":
            style = next((model.placeholders for model in told if model.digest == model_digest), style)
        return PeerView(peer_id, state.row.name, state.row.trust, style=style)

    # -- for the router --

    def candidates(self) -> tuple[PeerCandidate, ...]:
        """Every paired peer as it could compute for us at this moment."""
        return tuple(self.work.candidate(state.row, state.presence) for state in self._states.values())

    def note_refusal(self, peer_id: str, words: str) -> None:
        """Leave this peer alone for a moment."""
        if peer_id in self._states:
            self.work.note_refusal(peer_id, words)

    def reserved(self, peer_id: str, seconds: float) -> AbstractContextManager[None]:
        """The peer is at work for us for about so long: others that choose meanwhile see it."""
        return self.work.reservations.hold(peer_id, seconds)

    def started(self, peer_id: str) -> None:
        """One more request is at work there."""
        if peer_id in self._states:
            self.work.started(peer_id)

    def ended(self, peer_id: str) -> None:
        """One request less."""
        if peer_id in self._states:
            self.work.ended(peer_id)

    # -- for the owner --

    def screens(self, waiting: dict[str, int]) -> list[PeerScreen]:
        """Every peer as status shows it."""
        return [self._screen(state, waiting) for state in sorted(self._states.values(), key=lambda s: s.row.name)]

    def _screen(self, state: _State, waiting: dict[str, int]) -> PeerScreen:
        row, here = state.row, state.presence
        count = waiting.get(row.peer_id, 0)
        if here is not None:
            at = "" if relay_of(here.address) else f" {here.address or 'inbound'}"
            route = f"{route_words(here.address, self.name_of)}{at} {here.rtt_ms:.1f} ms"
        else:
            route = "offline" + (f"; {counted(count, 'message waits', 'messages wait')}" if count else "")
        return PeerScreen(
            peer_id=row.peer_id, name=row.name, trust=row.trust, their_trust=row.their_trust,
            connected=here is not None, route=route, rtt_ms=here.rtt_ms if here else None,
            model=here.models[0].name if here and here.models else None,
            last_contact=None if row.seen_ms is None else from_ms(row.seen_ms).isoformat(timespec="seconds"),
            waiting_messages=count, doubt=self.work.doubt_of(row.peer_id),
        )

    async def peers(self) -> list[PeerEntry]:
        """Every peer as the agent's tool tells it. Implements node.agent.tools.peers.PeerDirectory."""
        return [
            PeerEntry(
                state.row.name, state.row.trust, state.presence is not None,
                tuple(sorted(state.presence.capabilities)) if state.presence else (),
            )
            for state in sorted(self._states.values(), key=lambda state: state.row.name)
        ]

    async def all(self) -> list[PeerScreen]:
        """Every peer, with how many messages wait for it."""
        return self.screens(await self._database.read(mail.waiting))

    async def ping(self, name: str, timeout_s: float) -> PingView:
        """A round trip measured now. Raises UnknownPeer, AmbiguousPeer, PeerUnreachable."""
        peer_id = self.find(name)
        if self.networking is None:
            raise PeerUnreachable("The network is not there yet.", hint="See: kith status")
        if self._states[peer_id].row.trust == Trust.NONE:
            raise PeerUnreachable(
                f"{self.name_of(peer_id)} is trusted with nothing, so there is no link to it.",
                hint=f"Change that with: kith trust {self.name_of(peer_id)} friend",
            )
        rtt_ms, address = await self.networking.ping(peer_id, timeout_s=timeout_s)
        state = self._states.get(peer_id)
        if state is not None and state.presence is not None:
            state.presence.rtt_ms = rtt_ms
        return PingView(
            peer=self.name_of(peer_id), peer_id=peer_id, rtt_ms=round(rtt_ms, 3),
            route=route_words(address, self.name_of), transport="circuit" if relay_of(address) else "tcp",
            address=address,
        )

    async def trust(self, name: str, trust: str) -> PeerScreen:
        """Change the trust in a peer: a new grant replaces the old one and live streams see it at their next frame."""
        if trust not in set(Trust):
            raise UsageError(f"{trust!r} is no trust level.", hint=f"Choose one of: {', '.join(Trust)}")
        level = Trust(trust)
        row = await self._book.set_trust(self.find(name), level)
        await self.adopt(row)
        return self._screen(self._states[row.peer_id], {})

    async def forget(self, name: str) -> str:
        """Remove a peer: its grants, shares, waiting messages and streams end at once."""
        peer_id = self.find(name)
        self._grants.drop(peer_id)
        row = await self._book.forget(peer_id)
        self._states.pop(peer_id, None)
        self.work.drop(peer_id)
        return row.name

    async def cut(self, peer_id: str) -> None:
        """Close everything of this peer; it may come back if it is still paired and trusted. The peer book calls
        this."""
        await self._grants.load(peer_id)
        if self.networking is not None:
            self.networking.regrant(peer_id)
        await self.end_streams(peer_id)
        if self.networking is None:
            return
        row, state = await self._book.get(peer_id), self._states.get(peer_id)
        if row is not None and state is not None:
            state.row = row         # the next greeting tells the new trust
        if row is None or row.trust == Trust.NONE:
            await self.networking.forget(peer_id)
        else:
            await self.networking.disconnect(peer_id)

    async def widened(self, peer_id: str) -> None:
        """The peer may do more now: tell it, and let its streams run. The peer book calls this."""
        await self._grants.load(peer_id)
        if self.networking is not None:
            self.networking.regrant(peer_id)

    async def narrowed(self, peer_id: str) -> None:
        """The peer may do less now of what it may do: tell it, and end what no longer fits. The peer book calls this.
        """
        await self.widened(peer_id)
        await self.review_streams(peer_id)
