"""A look at relays as plain values: those in use, places held and kept, circuits carried, failed tries without them.

Declared apart, so that the daemon can name it without loading libp2p.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from node.net.host import Network

__all__ = ["RelayState", "relay_state"]


@dataclass(frozen=True, slots=True)
class RelayState:
    """relays, places, problems: those this node uses. reservations, circuits: what it does for others.
    direct_problems: peer -> why the last try to reach it without a relay failed."""

    relays: tuple[str, ...] = ()
    places: frozenset[str] = frozenset()
    problems: Mapping[str, str] = field(default_factory=dict)
    reservations: frozenset[str] = frozenset()
    circuits: int = 0
    direct_problems: Mapping[str, str] = field(default_factory=dict)


def relay_state(network: "Network") -> RelayState:
    """As it is now."""
    service = network.relay
    return RelayState(
        relays=network.guest.relays, places=network.guest.places, problems=dict(network.guest.problems),
        reservations=service.reservations if service is not None else frozenset(),
        circuits=service.circuits if service is not None else 0, direct_problems=dict(network.puncher.problems),
    )
