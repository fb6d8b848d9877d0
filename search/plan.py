"""Which peers a query goes to, if to any, with the reason in words. Pure; must not know how they are reached.

Version 1 sends the query itself, so one that holds anything private goes to nobody.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["PEERS_LIMIT", "Plan", "SearchPeer", "make_plan"]

PEERS_LIMIT = 10


@dataclass(frozen=True, slots=True)
class SearchPeer:
    """A paired node as search sees it."""

    peer_id: str
    name: str
    granted: bool
    """It lets this node search."""
    connected: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """Whom to ask, who is left out as not reachable, and why nobody is asked, where that is so."""

    ask: tuple[SearchPeer, ...]
    absent: tuple[SearchPeer, ...] = ()
    stayed_local: str = ""


def make_plan(peers: Sequence[SearchPeer], *, private_reason: str = "", local_only: bool = False) -> Plan:
    """At most PEERS_LIMIT connected peers that grant search, in the order given."""
    granting = [peer for peer in peers if peer.granted]
    if local_only:
        return Plan((), stayed_local="you asked to search here only")
    if not granting:
        return Plan((), stayed_local="no paired node lets this one search")
    if private_reason:
        return Plan((), stayed_local=private_reason)
    absent = tuple(peer for peer in granting if not peer.connected)
    ask = tuple(peer for peer in granting if peer.connected)[:PEERS_LIMIT]
    return Plan(ask, absent, "" if ask else "no node that lets this one search can be reached now")
