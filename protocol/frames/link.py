"""Frames of /kith/link/1: who is at the other end, what it can do and lets us do, how busy it is, and that it is still
there. No free text in any of them.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta

from protocol import limits
from protocol.fields import (
    Address,
    Frame,
    ModelDigest,
    ModelName,
    NodeName,
    ProtocolId,
    Quantisation,
    Slug,
    SoftwareVersion,
    Trust,
    UInt32,
)

__all__ = [
    "CAPABILITIES", "IDLE", "Advert", "Beat", "Bye", "ByeCode", "Echo", "Granted", "Hello", "LinkFrame", "Load",
    "Located", "ModelAdvert",
]

CAPABILITIES: Final = frozenset({"infer", "search", "mail", "models", "relay", "exact-lane", "tools", "resume"})
"""What this version may announce. A peer's unknown capabilities are ignored, so a later version can add some."""

GrantBytes = Annotated[bytes, Meta(max_length=limits.MAX_GRANT_BYTES)]
ByeCode = Literal["shutdown", "offline", "forgotten", "duplicate", "idle", "protocol"]


class ModelAdvert(Frame, frozen=True):
    """One model that the sender serves to this peer.

    The times are measured by the sender on its own answers, one at a time, in microseconds a token, and for loading the
    model in milliseconds; 0 is not yet known. placeholders: the form in which this model keeps masked names best.
    """

    name: ModelName
    digest: ModelDigest
    context_tokens: Annotated[int, Meta(ge=1, le=limits.MAX_CONTEXT_TOKENS)]
    warm: bool
    quantisation: Quantisation = "unknown"
    prompt_token_us: UInt32 = 0
    output_token_us: UInt32 = 0
    load_ms: UInt32 = 0
    placeholders: Literal["brackets", "surrogates"] = "brackets"


class Load(Frame, frozen=True):
    """How busy the sender is with answers, whoever asked: at work, waiting, and how long all that will take it yet.

    saving: it runs on a battery.
    """

    running: UInt32 = 0
    queued: UInt32 = 0
    ahead_ms: UInt32 = 0
    saving: bool = False


IDLE: Final = Load()


class Hello(Frame, frozen=True, tag=1):
    """First frame of each side of a link. grant: the SignedGrant that the sender gave to this peer, empty for none.
    trust: what this peer is to the sender now, for its owner to see; it proves nothing and allows nothing."""

    node_name: NodeName
    software: SoftwareVersion
    versions: Annotated[tuple[ProtocolId, ...], Meta(max_length=limits.MAX_PROTOCOL_IDS)]
    capabilities: Annotated[tuple[Slug, ...], Meta(max_length=limits.MAX_CAPABILITIES)]
    models: Annotated[tuple[ModelAdvert, ...], Meta(max_length=limits.MAX_MODEL_ADVERTS)]
    grant: GrantBytes = b""
    trust: Trust | None = None


class Beat(Frame, frozen=True, tag=2):
    """I am here. Answered by an Echo of the same number."""

    n: UInt32


class Echo(Frame, frozen=True, tag=3):
    """The answer to a Beat."""

    n: UInt32


class Advert(Frame, frozen=True, tag=4):
    """The sender's models or its load changed; replaces the list of its Hello. Idle until the first
    one."""

    models: Annotated[tuple[ModelAdvert, ...], Meta(max_length=limits.MAX_MODEL_ADVERTS)]
    load: Load = IDLE


class Bye(Frame, frozen=True, tag=5):
    """The sender leaves on purpose; the link is over."""

    code: ByeCode


class Granted(Frame, frozen=True, tag=6):
    """The sender decided anew what this peer may do: the SignedGrant that counts from now on, empty for nothing."""

    grant: GrantBytes


class Located(Frame, frozen=True, tag=7):
    """Where the sender can be reached from now on, as protocol.whereabouts signs it, and where it sees the receiver:
    its address on a direct connection, None when it sees none."""

    addresses: Annotated[bytes, Meta(max_length=limits.MAX_WHEREABOUTS_BYTES)]
    seen_at: Address | None = None


LinkFrame = Hello | Beat | Echo | Advert | Bye | Granted | Located
