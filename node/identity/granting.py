"""Makes the signed grant that follows from the owner's trust, and reads grants back from the store.

Must not decide who is trusted, nor count what was used.
"""

from datetime import datetime, timedelta

from node.clock import to_ms
from node.identity.keystore import Identity
from node.identity.trust import Terms
from protocol.errors import ProtocolError
from protocol.grants import Grant, sign, verify

__all__ = ["issue", "read"]


def issue(identity: Identity, peer_id: str, terms: Terms, epoch: int, now: datetime) -> bytes:
    """The grant for this peer, signed. epoch: from store.grants.reserve_epoch, committed before."""
    grant = Grant(
        services=tuple(sorted(set(terms.services))), models=tuple(sorted(set(terms.models))),
        tokens_per_day=terms.tokens_per_day, max_context=terms.max_context_tokens,
        max_concurrency=terms.max_concurrency, not_after_s=to_ms(now + timedelta(days=terms.days)) // 1000,
        issued_by=identity.peer_id, issued_to=peer_id, epoch=epoch,
    )
    return sign(grant, identity.seed)


def read(blob: bytes, *, issuer: str, holder: str, now: datetime) -> Grant | None:
    """The grant in these bytes if it is genuine, of this issuer for this holder, and in force now; else None."""
    try:
        return verify(blob, issuer=issuer, holder=holder, now_s=to_ms(now) // 1000, min_epoch=0)
    except ProtocolError:
        return None
