"""The four levels of trust and what each level may do here by default.

A level is the owner's word about a peer; what the peer may do follows from the grant it was given when it was paired,
made from these defaults. Must not know how a grant is signed, stored or checked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from protocol.grants import ALL_DAY, Service

__all__ = ["DEFAULT_TERMS", "DESCRIPTIONS", "GUEST_TERMS", "Terms", "Trust"]


class Trust(StrEnum):
    """What a peer is to the owner."""

    SELF = "self"
    HOME = "home"
    FRIEND = "friend"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a grant will say, before it is addressed and signed. Everything not named is refused."""

    services: tuple[Service, ...] = ()
    models: tuple[str, ...] = ()
    """Names or digests that may be asked, or "*" for every model served here. Empty means none."""
    tokens_per_day: int = 0
    max_context_tokens: int = 0
    max_concurrency: int = 0
    days: int = 5 * 365
    """How long the grant holds. There is no renewal between peers yet, so the defaults are long."""
    until: datetime | None = None
    """The moment it ends at, instead of days."""
    half_hours: int = ALL_DAY
    """At which half hours of the day it is good, as in protocol.grants."""
    zone: str = "UTC"
    """Whose clock that is."""


_OWN_DEVICE = Terms(
    ("infer", "mail", "models", "relay", "search"), ("*",), tokens_per_day=20_000_000, max_context_tokens=131_072,
    max_concurrency=8,
)

DEFAULT_TERMS: Mapping[Trust, Terms] = MappingProxyType({
    # The owner's own devices: everything that a peer protocol offers. There is no administrative verb to grant.
    Trust.SELF: _OWN_DEVICE,
    Trust.HOME: _OWN_DEVICE,
    # A person: messages. Models and search only when the owner grants them, with a quota.
    Trust.FRIEND: Terms(("mail",)),
    Trust.NONE: Terms(),
})

GUEST_TERMS = Terms(("infer",), ("*",), tokens_per_day=100_000, max_context_tokens=8192, max_concurrency=1)
"""What the owner has not said of a first grant for inference: enough to be of use, little enough to go unnoticed."""

DESCRIPTIONS: Mapping[Trust, str] = MappingProxyType({
    Trust.SELF: "my own device: may use and copy models, search here, send messages, and relay",
    Trust.HOME: "my home machine: may use and copy models, search here, send messages, and relay",
    Trust.FRIEND: "a person I know: may send messages; models and search only if I grant them",
    Trust.NONE: "nobody: may do nothing",
})
"""One line per level for the question that pairing asks."""
