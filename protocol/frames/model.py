"""Frames of /kith/model/1: one model file per stream, named by its digest, from any byte on.

The chunks are opaque: nothing reads words in them. That they are bytes of a catalogue file is the guard's to check.
"""

from typing import Annotated, Literal

from msgspec import Meta

from protocol import limits
from protocol.fields import Frame, Id16, ModelDigest, ModelName, Seq

__all__ = [
    "LicenceName", "ModelChunk", "ModelEnd", "ModelFrame", "ModelOffer", "ModelRefusalCode", "ModelRefused",
    "ModelRequest",
]

ModelRefusalCode = Literal[
    "not_granted", "grant_expired", "busy", "model_absent", "bad_request", "revoked", "shutting_down", "internal",
]

FileBytes = Annotated[int, Meta(ge=1, le=limits.MAX_SEQ)]
LicenceName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._+-]{0,63}\Z")]  # such as apache-2.0; no words


class ModelRequest(Frame, frozen=True, tag=1):
    """The file with this digest, from this byte on."""

    request_id: Id16
    model_digest: ModelDigest
    offset: Seq


class ModelOffer(Frame, frozen=True, tag=2):
    """It is here and may be copied: its whole size, what it is called here, and its licence where one is known."""

    request_id: Id16
    model_digest: ModelDigest
    size_bytes: FileBytes
    name: ModelName
    licence: LicenceName | None


class ModelChunk(Frame, frozen=True, tag=3):
    """The next bytes."""

    request_id: Id16
    offset: Seq
    data: Annotated[bytes, Meta(min_length=1, max_length=limits.MAX_MODEL_CHUNK_BYTES)]


class ModelEnd(Frame, frozen=True, tag=4):
    """All of it was sent. What came still has to have the digest that was asked for."""

    request_id: Id16
    size_bytes: FileBytes


class ModelRefused(Frame, frozen=True, tag=5):
    """It is not given, or not any further."""

    request_id: Id16
    code: ModelRefusalCode


ModelFrame = ModelRequest | ModelOffer | ModelChunk | ModelEnd | ModelRefused
