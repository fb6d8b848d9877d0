"""What a peer may ask for: a signed, numbered, expiring list of limits. Making, narrowing, checking.

A grant names its issuer and its holder and is worthless to anyone else. It is signed with the issuer's device key
(Ed25519, RFC 8032) over the exact bytes that are sent. Withdrawing is by epoch: the issuer raises the lowest epoch that
it still honours for that peer. An empty list of services or models means none, never all; so does a day without
hours. Time is passed in. Must not know where grants are kept, how use is counted, or time zones.
"""

from typing import Annotated, Final, Literal, get_args

import msgspec
from msgspec import Meta
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from protocol import canonical, limits
from protocol.errors import (
    BadGrant,
    GrantExpired,
    GrantForSomeoneElse,
    GrantWithdrawn,
    LocalProtocolError,
    RemoteProtocolError,
)
from protocol.fields import Frame, PeerId, Signature, Timestamp, UInt32, ZoneName
from protocol.ids import peer_id_from_public_key, public_key_from_peer_id

__all__ = [
    "ALL_DAY", "ANY_MODEL", "Grant", "GrantedModel", "Service", "SignedGrant", "attenuate", "covers", "is_open",
    "narrows", "opens_in_half_hours", "permits", "sign", "verify",
]

Service = Literal["infer", "search", "mail", "models", "relay"]
# models: may copy the model files that the grant names; relay: this node carries its sealed traffic with others
GrantedModel = Annotated[str, Meta(pattern=r"\A(?:\*|[A-Za-z0-9][A-Za-z0-9._:+/-]{0,95})\Z")]  # a name, a digest, or *

ANY_MODEL: Final = "*"
ALL_DAY: Final = 2**limits.HALF_HOURS_A_DAY - 1
_SIGNED_AS: Final = b"kith grant 1\x00"


class Grant(Frame, frozen=True, tag="grant1", kw_only=True):
    """Version 1. Lists are sorted and without repetition; not_after_s is UTC seconds since 1970.

    half_hours: bit n is set when it is good from n * 30 minutes after midnight on, by the clock of zone (IANA name),
    which is the issuer's.
    """

    services: Annotated[tuple[Service, ...], Meta(max_length=len(get_args(Service)))]
    models: Annotated[tuple[GrantedModel, ...], Meta(max_length=limits.MAX_GRANT_MODELS)]
    tokens_per_day: Annotated[int, Meta(ge=0, le=limits.MAX_TOKENS_PER_DAY)]
    max_context: Annotated[int, Meta(ge=0, le=limits.MAX_CONTEXT_TOKENS)]
    max_concurrency: Annotated[int, Meta(ge=0, le=limits.MAX_CONCURRENCY)]
    not_after_s: Timestamp
    issued_by: PeerId
    issued_to: PeerId
    epoch: UInt32
    half_hours: Annotated[int, Meta(ge=0, le=ALL_DAY)] = ALL_DAY
    zone: ZoneName = "UTC"

    def __post_init__(self) -> None:
        for names in (self.services, self.models):
            if list(names) != sorted(set(names)):
                raise ValueError("a grant's lists are sorted and without repetition")


class SignedGrant(Frame, frozen=True):
    """The encoded grant and its issuer's signature over exactly these bytes."""

    body: Annotated[bytes, Meta(max_length=limits.MAX_GRANT_BYTES)]
    signature: Signature


def sign(grant: Grant, seed: bytes) -> bytes:
    """The grant as signed bytes for its holder. Raises LocalProtocolError when the 32-byte seed is not the issuer's
    key.
    """
    key = SigningKey(seed)
    if peer_id_from_public_key(bytes(key.verify_key)) != grant.issued_by:
        raise LocalProtocolError("only the issuer can sign its grant")
    body = canonical.encode(grant)
    return canonical.encode(SignedGrant(body, key.sign(_SIGNED_AS + body).signature))


def verify(data: bytes, *, issuer: str, holder: str, now_s: int, min_epoch: int) -> Grant:
    """The grant in these bytes, if it is genuine and in force.

    Raises BadGrant (not a grant, or a wrong signature), GrantForSomeoneElse (another issuer or holder), GrantExpired,
    or GrantWithdrawn (epoch below min_epoch). holder is the peer as the encrypted channel proved it.
    """
    try:
        signed = canonical.decode(data, SignedGrant)
        grant = canonical.decode(signed.body, Grant)
        VerifyKey(public_key_from_peer_id(grant.issued_by)).verify(_SIGNED_AS + signed.body, signed.signature)
    except (RemoteProtocolError, BadSignatureError) as error:
        raise BadGrant("not a genuine grant") from error
    if grant.issued_by != issuer or grant.issued_to != holder:
        raise GrantForSomeoneElse("issued by or to another node")
    if now_s > grant.not_after_s:
        raise GrantExpired("its time is over")
    if grant.epoch < min_epoch:
        raise GrantWithdrawn("a newer decision took it back")
    return grant


def attenuate(
    grant: Grant,
    *,
    services: frozenset[Service] | None = None,
    models: frozenset[str] | None = None,
    tokens_per_day: int | None = None,
    max_context: int | None = None,
    max_concurrency: int | None = None,
    not_after_s: int | None = None,
    half_hours: int | None = None,
) -> Grant:
    """A grant that allows what both this one and the given limits allow; it is never wider than either. Unsigned.

    half_hours are by the clock of the grant's own zone, which stays.
    """
    return msgspec.structs.replace(
        grant,
        services=grant.services if services is None else tuple(s for s in grant.services if s in services),
        models=grant.models if models is None else _common_models(grant.models, models),
        tokens_per_day=_least(grant.tokens_per_day, tokens_per_day),
        max_context=_least(grant.max_context, max_context),
        max_concurrency=_least(grant.max_concurrency, max_concurrency),
        not_after_s=_least(grant.not_after_s, not_after_s),
        half_hours=grant.half_hours if half_hours is None else grant.half_hours & half_hours,
    )


def covers(outer: Grant, inner: Grant) -> bool:
    """Whether everything that inner allows, outer allows too (same issuer, holder and at least the epoch's
    standing).
    """
    same_parties = (inner.issued_by, inner.issued_to) == (outer.issued_by, outer.issued_to)
    return same_parties and inner.epoch <= outer.epoch and narrows(outer, inner)


def narrows(outer: Grant, inner: Grant) -> bool:
    """Whether inner's terms allow nothing that outer's do not, whoever holds them."""
    same_clock = inner.zone == outer.zone or outer.half_hours == ALL_DAY or not inner.half_hours
    return (
        set(inner.services) <= set(outer.services)
        and (ANY_MODEL in outer.models or set(inner.models) <= set(outer.models))
        and inner.tokens_per_day <= outer.tokens_per_day
        and inner.max_context <= outer.max_context
        and inner.max_concurrency <= outer.max_concurrency
        and inner.not_after_s <= outer.not_after_s
        and same_clock and inner.half_hours & ~outer.half_hours == 0
    )


def is_open(grant: Grant, half_hour: int) -> bool:
    """Whether the grant is good in this half hour of the day (0 to 47) by its own zone's clock."""
    return bool(grant.half_hours >> half_hour & 1)


def opens_in_half_hours(grant: Grant, half_hour: int) -> int | None:
    """How many half hours on it is good again, the present one counted as 0; None for never."""
    ahead = range(limits.HALF_HOURS_A_DAY)
    return next((n for n in ahead if is_open(grant, (half_hour + n) % limits.HALF_HOURS_A_DAY)), None)


def permits(grant: Grant, service: Service, *, model_name: str | None = None, model_digest: str | None = None) -> bool:
    """Whether the grant names this service and, where a model is meant, the model by name or digest.

    Numbers (tokens a day, context, concurrency) are compared by whoever counts them.
    """
    if service not in grant.services:
        return False
    if service not in ("infer", "models") or ANY_MODEL in grant.models:
        return True
    return any(name is not None and name in grant.models for name in (model_name, model_digest))


def _common_models(held: tuple[str, ...], wanted: frozenset[str]) -> tuple[str, ...]:
    if ANY_MODEL in held:
        return tuple(sorted(wanted))
    return held if ANY_MODEL in wanted else tuple(name for name in held if name in wanted)


def _least(held: int, wanted: int | None) -> int:
    return held if wanted is None else min(held, wanted)
