"""The ledger as the owner reads it. Implements node.api.ports.Ledger. Must not know how entries are made."""

import base64
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import msgspec
import trio

from node.api.privacy_views import LedgerEntryView, LedgerPage, LedgerReport
from node.clock import Clock, from_ms, to_ms
from node.daemon.hub import PURPOSE as HUB
from node.daemon.peers import Roster
from node.errors import PeerUnreachable, UsageError
from node.privacy.ledger import EntryView, Ledger
from node.privacy.receipts import Asked, ReceiptDesk
from protocol.errors import ChannelError, RemoteProtocolError

__all__ = ["LedgerDesk"]

_SPAN = re.compile(r"(\d{1,4})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
DAY_LIMIT = 10_000
EXPORT_PAGE = 200


class LedgerDesk:
    """Reads one ledger."""

    def __init__(
        self, ledger: Ledger, roster: Roster, clock: Clock, others: Mapping[str, str] = MappingProxyType({}),
        *, receipts: ReceiptDesk | None = None, own_id: str = "",
    ) -> None:
        """others: what to call ids that are no peer's. receipts: who can ask peers for missing ones."""
        self._ledger = ledger
        self._roster = roster
        self._clock = clock
        self._others = others
        self._receipts = receipts
        self._own_id = own_id

    async def entries(self, *, since: str | None, peer: str | None, limit: int) -> list[LedgerEntryView]:
        """Newest first. since: 1d, 2h, 30m or an ISO time. Raises UsageError, UnknownPeer."""
        found = await self._ledger.newest(
            limit=limit, peer_id=self._roster.find(peer) if peer else None,
            since_ms=to_ms(self._since(since)) if since else None,
        )
        return [self._view(entry, with_texts=False) for entry in found]

    async def entry(self, entry_id: int) -> LedgerEntryView:
        """One entry with the exact texts and bytes that left. Raises UsageError."""
        found = await self._ledger.view(entry_id)
        if found is None:
            raise UsageError(f"There is no ledger entry {entry_id}.", hint="See them: kith ledger")
        return self._view(found, with_texts=True)

    async def verify(self, peer: str | None = None) -> LedgerReport:
        """Check the whole chain. Raises UnknownPeer and PeerUnreachable for a peer that is to be asked first."""
        asked = await self._ask(peer) if peer else Asked(0, 0)
        report = await self._ledger.verify()
        return LedgerReport(
            ok=report.ok, entries=report.entries, head=report.head_digest.hex(), problems=list(report.problems),
            disputes=list(report.disputes), first=report.first, asked=asked.asked, came=asked.new,
            receipts={standing.value: count for standing, count in sorted(report.standings.items())},
        )

    async def export(self, after: int, *, with_texts: bool) -> LedgerPage:
        """Entries in order behind this number."""
        found = await self._ledger.page(after, EXPORT_PAGE)
        entries = [self._exported(view, with_texts=with_texts) for view in found]
        more = found[-1].entry.seq if len(found) == EXPORT_PAGE else None
        return LedgerPage(peer_id=self._own_id, entries=entries, next=more)

    async def today(self) -> tuple[int, int, int]:
        """(entries, bytes, values kept back) since midnight UTC."""
        midnight = self._clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        found = await self._ledger.newest(limit=DAY_LIMIT, since_ms=to_ms(midnight))
        sent = sum(entry.close.sent_bytes for entry in found if entry.close)
        return len(found), sent, sum(entry.entry.substitutions for entry in found)

    async def _ask(self, peer: str) -> Asked:
        peer_id = self._roster.find(peer)
        if self._receipts is None:
            return Asked(0, 0)
        try:
            return await self._receipts.ask(peer_id)
        except (ChannelError, RemoteProtocolError, trio.TooSlowError) as error:
            raise PeerUnreachable(f"{peer} did not answer for its receipts: {error}") from error

    def _name(self, peer_id: str, purpose: str) -> str:
        if purpose == HUB:
            return peer_id
        return self._others.get(peer_id) or self._roster.name_of(peer_id)

    def _since(self, text: str) -> datetime:
        if span := _SPAN.fullmatch(text):
            return self._clock.now() - timedelta(**{_UNITS[span[2]]: int(span[1])})
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise UsageError(f"{text!r} is no time.", hint="Use 1d, 2h, 30m or 2026-03-18T09:30") from None
        return moment if moment.tzinfo is not None else moment.astimezone()

    def _view(self, found: EntryView, *, with_texts: bool) -> LedgerEntryView:
        entry, close = found.entry, found.close
        return LedgerEntryView(
            entry_id=entry.seq, at=from_ms(entry.at_ms).isoformat(timespec="seconds"),
            peer=self._name(entry.peer_id, entry.purpose),
            purpose=entry.purpose, level=entry.level,
            size_bytes=close.sent_bytes if close else 0, substitutions=entry.substitutions,
            outcome=close.outcome if close else "open", digest=found.digest.hex(),
            texts=list(found.texts) if with_texts and found.texts is not None else None,
            approved_by=entry.approved_by, receipt=found.standing,
            dropped=found.dropped.why if found.dropped else "",
            frames=[_base64(body) for body in found.bodies] if with_texts and found.bodies is not None else None,
        )

    def _exported(self, found: EntryView, *, with_texts: bool) -> dict[str, Any]:
        close = found.close
        record: dict[str, Any] = {
            **msgspec.to_builtins(self._view(found, with_texts=with_texts)),
            "peer_id": found.entry.peer_id, "request_id": found.entry.request_id,
            "chained": _base64(msgspec.msgpack.encode(found.entry)),
            "sent": None if close is None else {
                "size_bytes": close.sent_bytes, "blake2b": close.digest.hex(),
                "pieces": [{"size_bytes": size, "blake2b": digest.hex()} for size, digest in close.stretches],
            },
            "receipts": [
                {"size_bytes": one.size_bytes, "blake2b": one.digest.hex(), "signature": one.signature.hex()}
                for one in found.receipts
            ],
        }
        return record


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
