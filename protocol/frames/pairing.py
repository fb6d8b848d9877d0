"""Frames of /kith/pair/1: a secret or a spoken code becomes mutual trust. Fixed shapes only; no secret is ever in a
frame.
"""

from typing import Annotated, Literal

from msgspec import Meta

from protocol import limits
from protocol.fields import Address, Frame, Mac, NodeName, Nonce, Share, Trust

__all__ = [
    "CardBody", "PairAccept", "PairCard", "PairConfirm", "PairFrame", "PairRefusalCode", "PairRefused", "ReplyCode",
    "ReplySecret",
    "StartCode", "StartSecret",
]

PairRefusalCode = Literal["no_match", "no_tries", "closed", "expired", "declined", "protocol"]


class StartCode(Frame, frozen=True, tag=1):
    """Initiator, spoken code: its SPAKE2 message."""

    share: Share


class ReplyCode(Frame, frozen=True, tag=2):
    """Responder, spoken code: its SPAKE2 message."""

    share: Share


class StartSecret(Frame, frozen=True, tag=3):
    """Initiator, scanned secret: its nonce."""

    nonce: Nonce


class ReplySecret(Frame, frozen=True, tag=4):
    """Responder, scanned secret: its nonce."""

    nonce: Nonce


class PairConfirm(Frame, frozen=True, tag=5):
    """Proof of the same key: a MAC over the whole exchange, different for each side."""

    mac: Mac


class CardBody(Frame, frozen=True):
    """What a side tells about itself once the keys agree. `grant` is an encoded signed grant for the other side, or
    empty.
    """

    node_name: NodeName
    trust: Trust
    addresses: Annotated[tuple[Address, ...], Meta(max_length=limits.MAX_CARD_ADDRESSES)]
    grant: Annotated[bytes, Meta(max_length=limits.MAX_GRANT_BYTES)]


class PairCard(Frame, frozen=True, tag=6):
    """The card and its MAC under the session key."""

    body: CardBody
    mac: Mac


class PairAccept(Frame, frozen=True, tag=7):
    """The sender's owner said yes to exactly these two cards."""

    mac: Mac


class PairRefused(Frame, frozen=True, tag=8):
    """The pairing is over without result."""

    code: PairRefusalCode


PairFrame = StartCode | ReplyCode | StartSecret | ReplySecret | PairConfirm | PairCard | PairAccept | PairRefused
