"""The building blocks of frames: the Frame base class and the bounded types their fields are made of.

Every string here is either matched by a tight pattern (names, ids, addresses) or free text with a length bound; which
fields hold free text is declared in content.py. Must not know any particular frame. Patterns end in \\Z, because $ also
matches before a final newline.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from protocol import limits

__all__ = [
    "Address", "CallId", "Digest16", "Frame", "Id16", "Mac", "ModelDigest", "ModelName", "NodeName", "Nonce", "PeerId",
    "ProtocolId", "Quantisation", "Seq",
    "Share", "Signature", "Slug", "SoftwareVersion", "Timestamp", "TokenId", "ToolName", "Trust", "UInt32", "ZoneName",
]


class Frame(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One message of a protocol: an array whose first item is the frame's integer tag. Immutable, compared by value."""


Id16 = Annotated[bytes, Meta(min_length=limits.ID_BYTES, max_length=limits.ID_BYTES)]
Nonce = Annotated[bytes, Meta(min_length=limits.NONCE_BYTES, max_length=limits.NONCE_BYTES)]
Mac = Annotated[bytes, Meta(min_length=limits.MAC_BYTES, max_length=limits.MAC_BYTES)]
Share = Annotated[bytes, Meta(min_length=limits.SPAKE2_SHARE_BYTES, max_length=limits.SPAKE2_SHARE_BYTES)]
Signature = Annotated[bytes, Meta(min_length=limits.SIGNATURE_BYTES, max_length=limits.SIGNATURE_BYTES)]
Digest16 = Annotated[bytes, Meta(min_length=limits.TEXT_DIGEST_BYTES, max_length=limits.TEXT_DIGEST_BYTES)]

UInt32 = Annotated[int, Meta(ge=0, le=limits.MAX_UINT32)]
Seq = Annotated[int, Meta(ge=0, le=limits.MAX_SEQ)]
TokenId = Annotated[int, Meta(ge=0, le=limits.MAX_UINT32)]
Timestamp = Annotated[int, Meta(ge=0, le=limits.MAX_SEQ)]  # the unit stands in the field's name

PeerId = Annotated[str, Meta(pattern=r"\A12D3KooW[1-9A-HJ-NP-Za-km-z]{44}\Z")]
ProtocolId = Annotated[str, Meta(pattern=r"\A/kith/[a-z]{2,12}/[1-9][0-9]{0,2}\Z")]
NodeName = Annotated[str, Meta(pattern=r"\A[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?\Z")]
ModelName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._:+/-]{0,95}\Z")]
ModelDigest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]  # sha256 of the model file
ToolName = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_]{0,63}\Z")]
CallId = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]{0,32}\Z")]  # empty: none
Slug = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9-]{0,23}\Z")]
SoftwareVersion = Annotated[str, Meta(pattern=r"\A[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}(?:[a-z0-9.+-]{0,16})\Z")]
Quantisation = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_.-]{1,24}\Z")]
ZoneName = Annotated[str, Meta(pattern=r"\A[A-Za-z][A-Za-z0-9+_-]{0,31}(?:/[A-Za-z0-9+_-]{1,32}){0,2}\Z")]  # IANA
Address = Annotated[  # a multiaddr
    str, Meta(pattern=r"\A(?:/[A-Za-z0-9.:_%-]{1,64}){2,8}\Z", max_length=limits.MAX_ADDRESS_CHARS)
]

Trust = Literal["self", "home", "friend"]
