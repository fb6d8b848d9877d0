"""The mode as the local API shows it. Must not know how it is decided."""

import msgspec

__all__ = ["InTheWayView", "ModeChangeView", "ModeView"]

SCHEMA = 1


class InTheWayView(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that stands in the way. name: failed, metered, low_battery, no_network, no_way_out, no_peer."""

    name: str
    widest: str | None
    """The widest mode that it allows; null: it is only told."""
    text: str


class ModeChangeView(msgspec.Struct, frozen=True, kw_only=True):
    """One transition."""

    at: str
    before: str
    chosen: str
    effective: str
    why: str


class ModeView(msgspec.Struct, frozen=True, kw_only=True):
    """What the owner chose, what is in force, and why; what was last seen of the machine; the newest changes last.

    In offline mode nothing is looked at: the facts are those of the last look.
    """

    schema: int = SCHEMA
    chosen: str
    effective: str
    why: str
    in_the_way: list[InTheWayView]
    listening: list[str]
    peers_here: int
    addresses: int
    default_route: bool
    metered: bool
    on_battery: bool
    battery_percent: int | None
    changes: list[ModeChangeView]
