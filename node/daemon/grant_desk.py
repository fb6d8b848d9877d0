"""What each peer may do here, for the owner to see, change and take back. Implements node.api.ports.Granting.

The peer is told a changed grant at once over the link. Must not know how a grant is checked or counted.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from node.api.ports import GrantChange
from node.api.views import GrantView, RefusalView, TermsView
from node.clock import Clock, to_ms
from node.daemon.peers import Roster
from node.daemon.persons import Persons
from node.errors import UsageError
from node.identity.granting import TermsChange
from node.identity.hours import hours_in_words, read_hours
from node.identity.peerbook import PeerBook
from node.store import usage
from node.store.database import Database
from offload.quota import QuotaBook
from offload.refusals import limit_in_words
from protocol.grants import Grant

__all__ = ["GrantDesk", "read_until"]

log = logging.getLogger(__name__)

REFUSALS_KEPT = 100
LOGGED_TIMES = frozenset(10**power for power in range(10))


class GrantDesk:
    """One per node. note_refusal() is called by the services as they refuse."""

    def __init__(
        self, *, roster: Roster, book: PeerBook, quota: QuotaBook, database: Database, clock: Clock,
        today: Callable[[], date], zone: str = "UTC", held: Callable[[str], Grant | None] = lambda peer_id: None,
        publish: Callable[[Mapping[str, Any]], None] = lambda event: None, persons: Persons | None = None,
    ) -> None:
        """zone: whose clock the hours are by that the owner names. held(peer_id): the grant that a peer gave us.
        publish: told of each refusal, for whoever follows this node's events. persons: which devices are one person's;
        None: each is its own.
        """
        self._publish = publish
        self._persons = persons
        self._roster = roster
        self._book = book
        self._quota = quota
        self._database = database
        self._clock = clock
        self._today = today
        self._zone = zone
        self._held = held
        self._refusals: OrderedDict[tuple[str, str, str, int | None], RefusalView] = OrderedDict()

    def note_refusal(self, peer_id: str, code: str, limit: int | None, *, service: str = "infer") -> None:
        """A service refused or broke off what this peer asked for. One that repeats itself is counted: a peer that asks
        without end fills neither the list nor the log.
        """
        key = (peer_id, service, code, limit)
        known = self._refusals.pop(key, None)
        times = 1 if known is None else known.times + 1
        words = limit_in_words(code, limit)
        self._publish({
            "event": "refused", "peer_id": peer_id, "peer": self._roster.name_of(peer_id), "service": service,
            "code": code, "limit": limit, "text": words, "times": times,
        })
        if times in LOGGED_TIMES:
            log.info("refused %s of %s: %s (%d times)", service, peer_id, words, times)
        self._refusals[key] = RefusalView(
            at=self._clock.now().isoformat(timespec="seconds"), service=service, code=code, limit=limit, text=words,
            times=times,
        )
        if len(self._refusals) > REFUSALS_KEPT:
            self._refusals.popitem(last=False)

    def note_breach(self, peer_id: str, protocol: str, code: str) -> None:
        """A peer tried what no peer may: a protocol that is not served, or what is no frame of one that is."""
        self.note_refusal(peer_id, code, None, service=protocol)

    async def show(self, name: str) -> GrantView:
        """The grant of one peer and what was used of it. Raises UnknownPeer, AmbiguousPeer."""
        peer = await self._book.find(self._roster.find(name))
        grant = await self._book.issued_to(peer.peer_id)
        day = await self._database.read(usage.on_day, peer.peer_id, self._today().isoformat())
        state = "none"
        if grant is not None:
            state = "in force" if to_ms(self._clock.now()) // 1000 <= grant.not_after_s else "expired"
        allows_us = self._roster.allows_us(peer.peer_id)
        return GrantView(
            peer=peer.name, peer_id=peer.peer_id, trust=peer.trust, state=state,
            services=list(grant.services) if grant else [], models=list(grant.models) if grant else [],
            tokens_per_day=grant.tokens_per_day if grant else 0, max_context=grant.max_context if grant else 0,
            max_concurrency=grant.max_concurrency if grant else 0,
            until=datetime.fromtimestamp(grant.not_after_s, UTC).isoformat() if grant else None,
            epoch=grant.epoch if grant else None,
            hours=hours_in_words(grant.half_hours) if grant else "none", zone=grant.zone if grant else self._zone,
            counts_with=self._counts_with(peer.peer_id),
            tokens_today=await self._quota.used_today(peer.peer_id), requests_today=day.requests,
            running=self._quota.running(peer.peer_id),
            refusals=[refusal for key, refusal in self._refusals.items() if key[0] == peer.peer_id],
            allows_us=None if allows_us is None else sorted(allows_us), allowed_us=_terms(self._held(peer.peer_id)),
        )

    async def edit(self, name: str, change: GrantChange) -> GrantView:
        """Replace the grant by one that differs in what is said. Raises UnknownPeer, AmbiguousPeer, UsageError."""
        wanted = TermsChange(
            None if change.services is None else tuple(change.services),
            None if change.models is None else tuple(change.models),
            change.tokens_per_day, change.max_context, change.max_concurrency,
            None if change.until is None else read_until(change.until),
            None if change.hours is None else read_hours(change.hours), None if change.hours is None else self._zone,
        )
        if change.counts_with is not None and self._persons is not None:
            peer_id = self._roster.find(name)
            other_id = self._roster.find(change.counts_with) if change.counts_with else None
            await self._persons.join(peer_id, other_id)
            if wanted == TermsChange():
                return await self.show(peer_id)
        if wanted == TermsChange():
            raise UsageError("Nothing was said to change.", hint="See what can be: kith grant edit --help")
        peer = await self._book.edit_grant(self._roster.find(name), wanted)
        return await self.show(peer.peer_id)

    def _counts_with(self, peer_id: str) -> list[str]:
        devices = self._persons.devices_of(peer_id) if self._persons is not None else frozenset()
        return sorted(self._roster.name_of(one) for one in devices if one != peer_id)

    async def revoke(self, name: str) -> GrantView:
        """Take the grant back; the peer's streams are cut before this returns. Raises UnknownPeer, AmbiguousPeer."""
        peer = await self._book.revoke_grant(self._roster.find(name))
        return await self.show(peer.peer_id)


def _terms(grant: Grant | None) -> TermsView | None:
    if grant is None:
        return None
    return TermsView(
        services=list(grant.services), models=list(grant.models), tokens_per_day=grant.tokens_per_day,
        max_context=grant.max_context, max_concurrency=grant.max_concurrency, hours=hours_in_words(grant.half_hours),
        zone=grant.zone, until=datetime.fromtimestamp(grant.not_after_s, UTC).isoformat(),
    )


def read_until(text: str) -> datetime:
    """The moment that a date or a time means: the end of that day, in this machine's zone where none is said.

    Raises UsageError.
    """
    try:
        if len(text) == len("2027-01-31"):
            return datetime.combine(date.fromisoformat(text), time(23, 59, 59)).astimezone()
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is no date.", hint="Write it as 2027-01-31 or 2027-01-31T18:00.") from None
