"""What the choice of a mode rests on: the owner's switch, the network, the power, as plain values.

Pure data. Must not know how a fact is found out or what follows from it.
"""

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Facts", "Mode", "Policy", "narrowest"]


class Mode(StrEnum):
    """How much network this node uses, narrowest first."""

    OFFLINE = "offline"
    LAN = "lan"
    ONLINE = "online"

    @property
    def width(self) -> int:
        """0 for offline, 2 for online."""
        return _ORDER.index(self)


_ORDER = tuple(Mode)


def narrowest(*modes: Mode) -> Mode:
    """The one that allows least."""
    return min(modes, key=lambda one: one.width)


@dataclass(frozen=True, slots=True)
class Facts:
    """This machine as it was last looked at. Before the first look nothing stands in the way."""

    addresses: frozenset[str] = field(default=frozenset({"unknown"}))
    """Addresses of interfaces that are up, without loopback and link-local ones."""
    default_route: bool = True
    """Whether there is a way out of the local networks."""
    metered: bool = False
    """Whether that way costs by the byte, as far as its interface's name tells."""
    on_battery: bool = False
    battery_percent: int | None = None
    """None on a machine without a battery."""

    @property
    def network(self) -> tuple[frozenset[str], bool]:
        """What makes it worth calling peers again when it changes."""
        return self.addresses, self.default_route


@dataclass(frozen=True, slots=True)
class Policy:
    """What the owner wants of hints. None: a hint changes nothing, it is only shown."""

    metered: Mode | None = None
    low_battery: Mode | None = None
    low_battery_percent: int = 15
