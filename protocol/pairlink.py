"""The link that a QR code carries: kith:1?<peer id>&<secret in base32>&<address>,<address>... Text to value and back.

Must not know pairing itself or any picture library. A link is as secret as the code it replaces; it is never logged.
"""

import base64
import binascii
from dataclasses import dataclass, field
from typing import Final

import msgspec

from protocol import limits
from protocol.errors import BadFrame, LocalProtocolError
from protocol.fields import Address
from protocol.ids import public_key_from_peer_id

__all__ = ["PairLink", "format_link", "parse_link"]

_PREFIX: Final = "kith:1?"
_MAX_LINK_CHARS: Final = 3072
_MAX_LINK_ADDRESSES: Final = limits.MAX_CARD_ADDRESSES


@dataclass(frozen=True, slots=True)
class PairLink:
    """Whom to pair with, the single-use secret, and where to find them (multiaddrs, perhaps none)."""

    peer_id: str
    secret: bytes = field(repr=False)
    addresses: tuple[str, ...]


def format_link(link: PairLink) -> str:
    """The link as text. Raises LocalProtocolError for a value that parse_link would refuse."""
    secret = base64.b32encode(link.secret).decode().rstrip("=")
    text = f"{_PREFIX}{link.peer_id}&{secret}&{','.join(link.addresses)}"
    if parse_link(text) != link:
        raise LocalProtocolError("this pairing link could not be read back")
    return text


def parse_link(text: str) -> PairLink | None:
    """The link's content, or None for anything that is no well-formed link. Surrounding blanks do not matter."""
    text = text.strip()
    if len(text) > _MAX_LINK_CHARS or not text.startswith(_PREFIX):
        return None
    pieces = text[len(_PREFIX) :].split("&")
    if len(pieces) != 3:
        return None
    peer_id, secret_text, address_text = pieces
    addresses = tuple(address_text.split(",")) if address_text else ()
    try:
        public_key_from_peer_id(peer_id)
        secret = base64.b32decode(secret_text + "=" * (-len(secret_text) % 8))
        msgspec.convert(addresses, tuple[Address, ...])
    except (BadFrame, binascii.Error, ValueError, msgspec.ValidationError):
        return None
    if len(secret) != limits.SECRET_BYTES or len(addresses) > _MAX_LINK_ADDRESSES:
        return None
    return PairLink(peer_id, secret, addresses)
