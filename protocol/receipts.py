"""What a receipt signs, and whether it is genuine: Ed25519 (RFC 8032) with the receiver's device key over who sent what
to whom.

A receipt is worthless for any other sender, receiver, request or bytes. Must not know streams, ledgers or clocks.
"""

from collections.abc import Callable
from typing import Annotated, Final

from msgspec import Meta
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from protocol import canonical, limits
from protocol.errors import RemoteProtocolError
from protocol.fields import Frame, Id16, Mac, PeerId
from protocol.frames.receipt import Receipt, ReceiptPurpose
from protocol.ids import public_key_from_peer_id

__all__ = ["Received", "countersign", "is_genuine"]

_SIGNED_AS: Final = b"kith receipt 1\x00"


class Received(Frame, frozen=True, tag="receipt1", kw_only=True):
    """What is signed. sender and receiver are those of the received bytes: the receiver signs."""

    sender: PeerId
    receiver: PeerId
    request_id: Id16
    purpose: ReceiptPurpose
    size_bytes: Annotated[int, Meta(ge=1, le=limits.MAX_SEQ)]
    digest: Mac


def countersign(received: Received, sign: Callable[[bytes], bytes]) -> Receipt:
    """The receipt for these bytes. sign: the receiver's device key, giving the 64-byte signature of its argument."""
    return Receipt(
        received.request_id, received.purpose, received.size_bytes, received.digest, sign(_signed_bytes(received)),
    )


def is_genuine(receipt: Receipt, *, sender: str, receiver: str) -> bool:
    """Whether receiver signed exactly this receipt for what sender sent."""
    if not receipt.size_bytes:
        return False
    try:
        received = Received(
            sender=sender, receiver=receiver, request_id=receipt.request_id, purpose=receipt.purpose,
            size_bytes=receipt.size_bytes, digest=receipt.digest,
        )
        VerifyKey(public_key_from_peer_id(receiver)).verify(_signed_bytes(received), receipt.signature)
    except (BadSignatureError, RemoteProtocolError, ValueError):
        return False
    return True


def _signed_bytes(received: Received) -> bytes:
    return _SIGNED_AS + canonical.encode(received)
