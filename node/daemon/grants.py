"""The grants in force, both ways, kept in memory for checks on every frame and in the database for ever.

Implements offload.server.GrantBook. Issued grants are verified when they are loaded and each time they are used: an
expired one is
as good as none. Must not know what a service does with a grant.
"""

import logging
from dataclasses import dataclass

from node.clock import Clock, to_ms
from node.identity.keystore import Identity
from node.identity.trust import DEFAULT_TERMS, Terms, Trust
from node.store import grants
from node.store.connection import Connection
from node.store.database import Database
from protocol import limits
from protocol.errors import RemoteProtocolError
from protocol.grants import ANY_MODEL, Grant, Service, sign, verify

__all__ = ["Grants", "make_grant"]

log = logging.getLogger(__name__)

YEAR_S = 365 * 24 * 3600


def make_grant(identity: Identity, peer_id: str, terms: Terms, *, epoch: int, now_s: int) -> Grant:
    """The grant that these terms make for this peer: one year, every model unless the terms name some."""
    models = terms.models or ((ANY_MODEL,) if "infer" in terms.services else ())
    services: tuple[Service, ...] = tuple(
        service for service in ("infer", "mail", "search") if service in terms.services  # sorted, as the wire wants it
    )
    return Grant(
        services=services,
        models=tuple(sorted(models)),
        tokens_per_day=terms.tokens_per_day,
        max_context=min(terms.max_context_tokens, limits.MAX_CONTEXT_TOKENS),
        max_concurrency=terms.max_concurrency,
        not_after_s=now_s + YEAR_S,
        issued_by=identity.peer_id,
        issued_to=peer_id,
        epoch=epoch,
    )


@dataclass(frozen=True, slots=True)
class _Both:
    issued: Grant | None
    received: Grant | None


class Grants:
    """All live grants of this node."""

    def __init__(self, database: Database, identity: Identity, clock: Clock) -> None:
        self._database = database
        self._identity = identity
        self._clock = clock
        self._held: dict[str, _Both] = {}

    def _now_s(self) -> int:
        return to_ms(self._clock.now()) // 1000

    async def load(self, peer_id: str) -> None:
        """Read both grants of one peer anew."""
        def both(tx: Connection) -> tuple[grants.StoredGrant | None, grants.StoredGrant | None]:
            return grants.current(tx, peer_id, "issued"), grants.current(tx, peer_id, "received")

        issued, received = await self._database.read(both)
        own = self._identity.peer_id
        self._held[peer_id] = _Both(self._check(issued, own, peer_id), self._check(received, peer_id, own))

    def _check(self, stored: grants.StoredGrant | None, issuer: str, holder: str) -> Grant | None:
        if stored is None:
            return None
        try:
            return verify(stored.blob, issuer=issuer, holder=holder, now_s=self._now_s(), min_epoch=stored.epoch)
        except RemoteProtocolError as error:
            log.warning("the grant of %s to %s is not in force: %s", issuer, holder, error.code)
            return None

    def grant_for(self, peer_id: str) -> Grant | None:
        """What this peer may do here now; None: nothing."""
        held = self._held.get(peer_id)
        return None if held is None else self._in_time(held.issued)

    def granted_by(self, peer_id: str) -> Grant | None:
        """What this node may do at that peer now, as far as it told us."""
        held = self._held.get(peer_id)
        return None if held is None else self._in_time(held.received)

    def _in_time(self, grant: Grant | None) -> Grant | None:
        return grant if grant is not None and self._now_s() <= grant.not_after_s else None

    async def reissue(self, peer_id: str, trust: Trust) -> Grant:
        """Withdraw the old grant and issue the one that this trust gives by default; in force when it returns."""
        now_s = self._now_s()

        def put(tx: Connection) -> None:
            epoch = grants.next_epoch(tx, peer_id)
            grant = make_grant(self._identity, peer_id, DEFAULT_TERMS[trust], epoch=epoch, now_s=now_s)
            grants.put(tx, peer_id, "issued", epoch, sign(grant, self._identity.seed), now_s * 1000)

        await self._database.write(put)
        await self.load(peer_id)
        grant = self.grant_for(peer_id)
        assert grant is not None
        return grant

    def drop(self, peer_id: str) -> None:
        """Forget both grants of a peer at once; live streams see it at their next frame."""
        self._held.pop(peer_id, None)
