"""Frames of /kith/link/1: who is at the other end, what it can do, and that it is still there. No free text in any of
them.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta

from protocol import limits
from protocol.fields import Frame, ModelDigest, ModelName, NodeName, ProtocolId, Slug, SoftwareVersion, UInt32

__all__ = ["CAPABILITIES", "Advert", "Beat", "Bye", "ByeCode", "Echo", "Hello", "LinkFrame", "ModelAdvert"]

CAPABILITIES: Final = frozenset({"infer", "search", "mail", "models", "exact-lane", "tools", "resume"})
"""What this version may announce. A peer's unknown capabilities are ignored, so a later version can add some."""

ByeCode = Literal["shutdown", "offline", "forgotten", "duplicate", "idle", "protocol"]


class ModelAdvert(Frame, frozen=True):
    """One model that the sender serves to this peer."""

    name: ModelName
    digest: ModelDigest
    context_tokens: Annotated[int, Meta(ge=1, le=limits.MAX_CONTEXT_TOKENS)]
    warm: bool


class Hello(Frame, frozen=True, tag=1):
    """First frame of each side of a link."""

    node_name: NodeName
    software: SoftwareVersion
    versions: Annotated[tuple[ProtocolId, ...], Meta(max_length=limits.MAX_PROTOCOL_IDS)]
    capabilities: Annotated[tuple[Slug, ...], Meta(max_length=limits.MAX_CAPABILITIES)]
    models: Annotated[tuple[ModelAdvert, ...], Meta(max_length=limits.MAX_MODEL_ADVERTS)]


class Beat(Frame, frozen=True, tag=2):
    """I am here. Answered by an Echo of the same number."""

    n: UInt32


class Echo(Frame, frozen=True, tag=3):
    """The answer to a Beat."""

    n: UInt32


class Advert(Frame, frozen=True, tag=4):
    """The sender's models changed; replaces the list of its Hello."""

    models: Annotated[tuple[ModelAdvert, ...], Meta(max_length=limits.MAX_MODEL_ADVERTS)]


class Bye(Frame, frozen=True, tag=5):
    """The sender leaves on purpose; the link is over."""

    code: ByeCode


LinkFrame = Hello | Beat | Echo | Advert | Bye
