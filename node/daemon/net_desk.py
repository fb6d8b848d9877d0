"""Explains reachability to the owner: what is listened on, told, mapped, relayed; the way to each peer; what to do.

Implements node.api.net_views.Reachability. Only looks; must not change anything, nor wait.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from node.api.net_views import NetPeerView, NetRelayView, NetView, TurnedAwayView
from node.daemon.discovering import Discovering
from node.daemon.lan import may_reach
from node.daemon.mapping import Mapping
from node.daemon.networking import Networking
from node.daemon.own_addresses import stated_addresses
from node.daemon.peers import Roster
from node.daemon.reaching import Reaching
from node.daemon.routes import relay_of, route_words
from node.net.addresses import parse
from node.net.errors import BadAddress
from node.net.relay_state import RelayState, relay_state
from node.net.turned_away import TurnedAway
from node.settings import NetConfig

__all__ = ["NetDesk", "advise", "turned_away"]


@dataclass(frozen=True, slots=True)
class NetDesk:
    """One per node."""

    networking: Networking
    reaching: Reaching
    discovering: Discovering
    mapping: Mapping
    roster: Roster
    settings: NetConfig

    def view(self) -> NetView:
        """As it is now."""
        networking, reaching = self.networking, self.reaching
        live = networking.parts()
        state = relay_state(live[0]) if live is not None else RelayState()
        listening = networking.addresses()
        names = self.roster.name_of
        peers = [self._peer(peer_id, known, state) for peer_id, known in self.roster.known()]
        relays = [
            NetRelayView(name=names(one), peer_id=one, place=one in state.places, problem=state.problems.get(one, ""))
            for one in state.relays
        ]
        view = NetView(
            mode=networking.mode, listening=listening, told=list(reaching.told),
            stated=list(stated_addresses(self.settings.announce, listening)), mapped=list(reaching.mapped),
            mapping=self.mapping.state, discovery=self.discovering.state,
            seen_at=[str(one) for one in dict.fromkeys(reaching.observed.values())], relays=relays,
            carrying=self.settings.relay and networking.mode == "online",
            places=sorted(map(names, state.reservations)), circuits=state.circuits,
            peers=sorted(peers, key=lambda one: one.name), advice=[],
            turned_away=_turned_away_view(turned_away(networking)),
        )
        return replace(view, advice=advise(view))

    def _peer(self, peer_id: str, known: Sequence[str], state: RelayState) -> NetPeerView:
        live = self.networking.parts()
        address = self.roster.address_of(peer_id) or ""
        here = self.roster.is_present(peer_id)
        relayed = relay_of(address) is not None
        return NetPeerView(
            name=self.roster.name_of(peer_id), peer_id=peer_id, here=here,
            route=route_words(address, self.roster.name_of) if here else "", address=address,
            rtt_ms=self.roster.rtt_ms(peer_id), failure=live[1].failure(peer_id) if live is not None else "",
            direct_problem=state.direct_problems.get(peer_id, "") if relayed else "", addresses=list(known),
        )


def turned_away(networking: Networking) -> TurnedAway:
    """What the network did not let in so far; nothing before it runs for the first time."""
    live = networking.parts()
    return TurnedAway() if live is None else live[0].turned_away()


def _turned_away_view(away: TurnedAway) -> TurnedAwayView:
    return TurnedAwayView(calls=away.calls, strangers=away.strangers, streams=away.streams, lately=away.lately)


def advise(view: NetView) -> list[str]:
    """What the owner can do, the most important first; empty when all is well."""
    if view.mode == "offline":
        return ["This node is offline: nobody reaches it. Switch with: kith mode lan, or kith mode online"]
    found = []
    away = [peer for peer in view.peers if not peer.here]
    if view.mode == "lan" and any(_far_only(peer) for peer in away):
        names = ", ".join(peer.name for peer in away if _far_only(peer))
        found.append(f"{names} can be reached in mode online only. Switch with: kith mode online")
    if view.listening and not view.told:
        found.append("Only programs of this machine can call this node. Pair on the local network (kith pair), or set: "
                     "kith config set net.listen 0.0.0.0")
    if view.mode == "online" and view.listening and not _open_to_internet(view):
        found.append(
            "Nobody can call this node from the internet. Any one of these helps: a paired node that is always on, can "
            "be called, and grants relay (kith grant edit PEER --services ...,relay, there); the router "
            "(kith config set net.port_mapping true); an address of yours that leads here "
            "(kith config set net.announce HOST:PORT)")
    if view.turned_away.lately:
        found.append(f"Calls come faster than this node takes them; {view.turned_away.calls} were closed since it "
                     "started. Paired peers still get through. Where they come from: ss -tn")
    return [
        *found,
        *(f"{relay.name} keeps no place for this node: {relay.problem}" for relay in view.relays if relay.problem),
        *(f"{peer.name} is {peer.route}, which works but is slower. Directly: {peer.direct_problem}"
          for peer in view.peers if peer.direct_problem),
        *(f"{peer.name} is away: {peer.failure}" for peer in away if peer.failure),
    ]


def _open_to_internet(view: NetView) -> bool:
    return bool(view.stated or view.mapped or any(relay.place for relay in view.relays)
                or any(_is_public(one) for one in view.told))


def _is_public(text: str) -> bool:
    try:
        return ipaddress.ip_address(parse(text).host).is_global
    except (BadAddress, ValueError):
        return False


def _far_only(peer: NetPeerView) -> bool:
    return bool(peer.addresses) and not any(may_reach("lan", one) for one in peer.addresses)
