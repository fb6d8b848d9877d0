"""Where a node can be reached, as itself says: a signed, numbered list of addresses. Making and checking.

It goes only to paired peers over the link and is never handed on. The newer number wins, so that an old list cannot
undo a new one. Signed with the device key (Ed25519, RFC 8032) over the exact bytes that are sent. Time is passed in.
Must not know where lists are kept or which address is worth a call.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from protocol import canonical, limits
from protocol.errors import BadFrame, RemoteProtocolError
from protocol.fields import Address, Frame, PeerId, Signature, Timestamp
from protocol.ids import peer_id_from_public_key, public_key_from_peer_id

__all__ = ["Whereabouts", "sign_whereabouts", "verify_whereabouts"]

_SIGNED_AS: Final = b"kith addresses 1\x00"


class Whereabouts(Frame, frozen=True, tag="addresses1"):
    """Version 1. number_ms: UTC milliseconds of its making; addresses: the best first."""

    peer_id: PeerId
    number_ms: Timestamp
    addresses: Annotated[tuple[Address, ...], Meta(max_length=limits.MAX_CARD_ADDRESSES)]


class SignedWhereabouts(Frame, frozen=True):
    """The encoded list and its maker's signature over exactly these bytes."""

    body: Annotated[bytes, Meta(max_length=limits.MAX_WHEREABOUTS_BYTES)]
    signature: Signature


def sign_whereabouts(addresses: tuple[str, ...], *, number_ms: int, seed: bytes) -> bytes:
    """The list as signed bytes. Raises msgspec.ValidationError for text that is no address, or too many."""
    key = SigningKey(seed)
    peer_id = peer_id_from_public_key(bytes(key.verify_key))
    checked = msgspec.convert((*addresses,), Annotated[tuple[Address, ...], Meta(max_length=limits.MAX_CARD_ADDRESSES)])
    body = canonical.encode(Whereabouts(peer_id, number_ms, checked))
    return canonical.encode(SignedWhereabouts(body, key.sign(_SIGNED_AS + body).signature))


def verify_whereabouts(data: bytes, *, peer_id: str) -> Whereabouts:
    """The list in these bytes, if this peer made it. Raises BadFrame."""
    try:
        signed = canonical.decode(data, SignedWhereabouts)
        found = canonical.decode(signed.body, Whereabouts)
        VerifyKey(public_key_from_peer_id(peer_id)).verify(_SIGNED_AS + signed.body, signed.signature)
    except (RemoteProtocolError, BadSignatureError) as error:
        raise BadFrame("no list of addresses that this peer signed") from error
    if found.peer_id != peer_id:
        raise BadFrame("a list of another node's addresses")
    return found
