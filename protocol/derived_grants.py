"""A grant that its holder narrowed for another holder, and so on: the issuer's grant, then one narrower grant per step.

Each step is signed by the holder of the one before and allows nothing that one does not; the chain is worth what its
narrowest step says, and nothing once the issuer's grant is over or withdrawn. A step is signed for this purpose alone:
it is no grant of its own. Must not know who accepts a chain, or where one is kept.
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from protocol import canonical, limits
from protocol.errors import BadGrant, GrantExpired, GrantForSomeoneElse, LocalProtocolError, RemoteProtocolError
from protocol.fields import Frame
from protocol.grants import Grant, SignedGrant, attenuate, narrows, verify
from protocol.ids import peer_id_from_public_key, public_key_from_peer_id

__all__ = ["DerivedGrant", "derive", "verify_derived"]

_SIGNED_AS: Final = b"kith derived grant 1\x00"


class DerivedGrant(Frame, frozen=True, tag="derived1"):
    """root: the issuer's SignedGrant, encoded. steps: the narrower ones, the narrowest last."""

    root: Annotated[bytes, Meta(max_length=2 * limits.MAX_GRANT_BYTES)]
    steps: Annotated[tuple[SignedGrant, ...], Meta(min_length=1, max_length=limits.MAX_DERIVED_GRANTS)]


def derive(held: bytes, seed: bytes, *, to: str, **narrower: Any) -> bytes:
    """A grant for `to` that allows what both the held one and the given limits (as in grants.attenuate) allow.

    held: a signed grant, or a derived one. Raises LocalProtocolError when the 32-byte seed is not its holder's key or
    the chain would be too long, BadGrant when held is neither.
    """
    root, steps = _parts(held)
    last = _body(steps[-1].body if steps else _signed(root).body)
    key = SigningKey(seed)
    own = peer_id_from_public_key(bytes(key.verify_key))
    if own != last.issued_to:
        raise LocalProtocolError("only its holder can narrow a grant")
    if len(steps) == limits.MAX_DERIVED_GRANTS:
        raise LocalProtocolError("this grant was handed on as often as one can be")
    step = msgspec.structs.replace(attenuate(last, **narrower), issued_by=own, issued_to=to)
    body = canonical.encode(step)
    return canonical.encode(DerivedGrant(root, (*steps, SignedGrant(body, key.sign(_SIGNED_AS + body).signature))))


def verify_derived(data: bytes, *, issuer: str, holder: str, now_s: int, min_epoch: int) -> Grant:
    """What the chain is worth for this holder at this issuer, as a grant of that issuer.

    Raises BadGrant (not a chain, a wrong signature, a step wider than the one before, or of another epoch),
    GrantForSomeoneElse, GrantExpired, or GrantWithdrawn (the issuer's grant is below min_epoch).
    """
    root, steps = _parts(data)
    if not steps:
        raise BadGrant("not a derived grant")
    last = verify(root, issuer=issuer, holder=_body(steps[0].body).issued_by, now_s=now_s, min_epoch=min_epoch)
    for signed in steps:
        step = _body(signed.body)
        try:
            key = VerifyKey(public_key_from_peer_id(step.issued_by))
            key.verify(_SIGNED_AS + signed.body, signed.signature)
        except (RemoteProtocolError, BadSignatureError) as error:
            raise BadGrant("a step that its signer did not sign") from error
        if step.issued_by != last.issued_to or step.epoch != last.epoch or not narrows(last, step):
            raise BadGrant("a step that the one before does not allow")
        last = step
    if last.issued_to != holder:
        raise GrantForSomeoneElse("issued to another node")
    if now_s > last.not_after_s:
        raise GrantExpired("its time is over")
    return msgspec.structs.replace(last, issued_by=issuer)


def _parts(data: bytes) -> tuple[bytes, tuple[SignedGrant, ...]]:
    """The root and the steps of a derived grant; a plain signed grant has no steps."""
    try:
        derived = canonical.decode(data, DerivedGrant)
    except RemoteProtocolError:
        _signed(data)
        return data, ()
    return derived.root, derived.steps


def _signed(data: bytes) -> SignedGrant:
    try:
        return canonical.decode(data, SignedGrant)
    except RemoteProtocolError as error:
        raise BadGrant("not a genuine grant") from error


def _body(data: bytes) -> Grant:
    try:
        return canonical.decode(data, Grant)
    except RemoteProtocolError as error:
        raise BadGrant("not a genuine grant") from error
