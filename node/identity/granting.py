"""Makes the signed grant that follows from the owner's trust or word, and reads grants back from the store.

Must not decide who is trusted, nor count what was used.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import get_args

import msgspec

from node.clock import to_ms
from node.errors import UsageError
from node.identity.keystore import Identity
from node.identity.trust import GUEST_TERMS, Terms
from protocol import limits
from protocol.errors import ProtocolError
from protocol.grants import ANY_MODEL, Grant, GrantedModel, Service, sign, verify

__all__ = ["TermsChange", "changed", "issue", "read", "terms_of"]

_BEGINNING = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class TermsChange:
    """What the owner wants to be different in a grant; None leaves it as it is."""

    services: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    tokens_per_day: int | None = None
    max_context_tokens: int | None = None
    max_concurrency: int | None = None
    until: datetime | None = None
    half_hours: int | None = None
    zone: str | None = None
    """Whose clock the half hours are by; goes with them."""


def issue(identity: Identity, peer_id: str, terms: Terms, epoch: int, now: datetime) -> bytes:
    """The grant for this peer, signed. epoch: from store.grants.reserve_epoch, committed before."""
    until = terms.until or now + timedelta(days=terms.days)
    grant = Grant(
        services=tuple(sorted(set(terms.services))), models=tuple(sorted(set(terms.models))),
        tokens_per_day=terms.tokens_per_day, max_context=terms.max_context_tokens,
        max_concurrency=terms.max_concurrency, not_after_s=to_ms(until) // 1000,
        issued_by=identity.peer_id, issued_to=peer_id, epoch=epoch, half_hours=terms.half_hours, zone=terms.zone,
    )
    return sign(grant, identity.seed)


def read(blob: bytes, *, issuer: str, holder: str, now: datetime | None) -> Grant | None:
    """The grant in these bytes if it is genuine, of this issuer for this holder, and in force now; else None.

    now None: also one whose time is over.
    """
    now_s = to_ms(now or _BEGINNING) // 1000
    try:
        return verify(blob, issuer=issuer, holder=holder, now_s=now_s, min_epoch=0)
    except ProtocolError:
        return None


def terms_of(grant: Grant) -> Terms:
    """What a grant says, for making another one."""
    return Terms(
        grant.services, grant.models, grant.tokens_per_day, grant.max_context, grant.max_concurrency,
        until=datetime.fromtimestamp(grant.not_after_s, UTC), half_hours=grant.half_hours, zone=grant.zone,
    )


def changed(terms: Terms, change: TermsChange, now: datetime) -> Terms:
    """The terms with the owner's changes. A first grant for inference takes GUEST_TERMS for what it does not say.

    Raises UsageError for a service that does not exist, a number that no grant can carry, or a time that is over.
    """
    services = terms.services if change.services is None else _services(change.services)
    base = terms
    if "infer" in services and "infer" not in terms.services:
        base = replace(
            GUEST_TERMS, models=terms.models or GUEST_TERMS.models,
            tokens_per_day=terms.tokens_per_day or GUEST_TERMS.tokens_per_day,
            max_context_tokens=terms.max_context_tokens or GUEST_TERMS.max_context_tokens,
            max_concurrency=terms.max_concurrency or GUEST_TERMS.max_concurrency, days=terms.days, until=terms.until,
            half_hours=terms.half_hours, zone=terms.zone,
        )
    until = change.until if change.until is not None else base.until
    if until is not None and until <= now:
        over = until.astimezone().isoformat(" ", "minutes")
        raise UsageError(f"The grant would be over already ({over}).", hint="Give a later date: --until DATE")
    return Terms(
        services,
        base.models if change.models is None else _models(change.models),
        _number("tokens a day", change.tokens_per_day, base.tokens_per_day, limits.MAX_TOKENS_PER_DAY),
        _number("context tokens", change.max_context_tokens, base.max_context_tokens, limits.MAX_CONTEXT_TOKENS),
        _number("requests at once", change.max_concurrency, base.max_concurrency, limits.MAX_CONCURRENCY),
        base.days, until,
        base.half_hours if change.half_hours is None else change.half_hours,
        base.zone if change.half_hours is None else change.zone or base.zone,
    )


def _services(wanted: Iterable[str]) -> tuple[Service, ...]:
    known: tuple[Service, ...] = get_args(Service)
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise UsageError(f"{unknown[0]!r} is no service.", hint=f"Choose of: {', '.join(known)}")
    return tuple(one for one in known if one in wanted)


def _models(wanted: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(wanted)) > limits.MAX_GRANT_MODELS:
        raise UsageError(f"A grant names at most {limits.MAX_GRANT_MODELS} models.", hint="Use * for all of them.")
    try:
        msgspec.convert(wanted, tuple[GrantedModel, ...])
    except msgspec.ValidationError:
        raise UsageError(
            "A grant names models by their name or digest, or * for all.", hint="See the names: kith models"
        ) from None
    return (ANY_MODEL,) if ANY_MODEL in wanted else tuple(sorted(set(wanted)))


def _number(what: str, wanted: int | None, now: int, most: int) -> int:
    if wanted is None:
        return now
    if not 0 <= wanted <= most:
        raise UsageError(f"{wanted} {what} can't be granted.", hint=f"Give a number from 0 to {most}.")
    return wanted
