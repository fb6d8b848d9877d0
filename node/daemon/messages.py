"""Messages as the owner sees them: send, read, and how far each one is. Implements node.api.ports.Messages.

Must not know streams or how a message is delivered.
"""

import logging
from collections.abc import Sequence
from datetime import datetime

from node.agent.tools.messages import ReceivedMessage
from node.api.views import InboxMessage, OutboxMessage, SentView
from node.clock import Clock, from_ms, to_ms
from node.daemon.owner import OwnerDesk
from node.daemon.peers import Roster
from node.errors import StorageError, UnknownPeer
from node.mail.deliver import Deliverer
from node.mail.outbox import Outbox
from node.privacy.errors import EgressDenied, HoldsPersonal, HoldsSecret
from node.store import mail
from node.store.database import Database
from node.store.mail import OutboxRow, OutboxState

__all__ = ["Messages"]

log = logging.getLogger(__name__)

_REFUSALS: dict[str, type[EgressDenied]] = {one.code: one for one in (HoldsSecret, HoldsPersonal)}


class Messages:
    """The owner's inbox and outbox."""

    def __init__(
        self, database: Database, outbox: Outbox, deliverer: Deliverer, roster: Roster, desk: OwnerDesk,
        clock: Clock,
    ) -> None:
        self._database = database
        self._outbox = outbox
        self._deliverer = deliverer
        self._roster = roster
        self._desk = desk
        self._clock = clock

    async def send(self, to: str, body: str) -> SentView:
        """Queue a message durably and ring the deliverer."""
        peer_id = self._roster.find(to)
        peer = await self._roster.view(peer_id)
        if peer is None:
            raise UnknownPeer
        row = await self._outbox.put(peer, body, self._desk)
        self._deliverer.queued(peer_id)
        return SentView(message_id=row.message_id, to=peer.name, state=row.state.value)

    async def inbox(self, limit: int) -> list[InboxMessage]:
        """Newest first. What was shown, and what is older, counts as read: that makes room for more of its sender."""
        rows = await self._database.read(mail.inbox, limit=limit)
        if any(row.read_ms is None for row in rows):
            try:
                await self._database.write(mail.mark_read, rows[0].arrival, to_ms(self._clock.now()))
            except StorageError as error:
                log.warning("messages that are shown could not be marked as read: %s", error.text)
        return [
            InboxMessage(
                message_id=row.message_id, sender=self._roster.name_of(row.peer_id), seq=row.seq,
                received=_text(from_ms(row.received_ms)), body=row.body,
            )
            for row in rows
        ]

    # -- for the agent's tools: node.agent.tools.messages.Postbox --

    async def peers(self) -> Sequence[str]:
        """Names of those who can be written to."""
        return [self._roster.name_of(peer_id) for peer_id, _ in self._roster.known()]

    async def people(self) -> Sequence[str]:
        """The same without the owner's own devices."""
        own = self._roster.own_devices()
        return [self._roster.name_of(peer_id) for peer_id, _ in self._roster.known() if peer_id not in own]

    async def send_once(self, message_id: str, to: str, text: str, *, owners_words: bool) -> None:
        """Queue one durably under this id. Raises KithError."""
        peer_id = self._roster.find(to)
        peer = await self._roster.view(peer_id)
        if peer is None:
            raise UnknownPeer
        await self._outbox.put(peer, text, self._desk, message_id=message_id, owners_words=owners_words)
        self._deliverer.queued(peer_id)

    async def received(self, *, limit: int, sender: str | None = None) -> Sequence[ReceivedMessage]:
        """The newest first."""
        rows = await self._database.read(mail.inbox, limit=limit if sender is None else 1000)
        found = [ReceivedMessage(self._roster.name_of(row.peer_id), row.body, from_ms(row.received_ms)) for row in rows]
        return [one for one in found if sender is None or one.sender == sender][:limit]

    async def outbox(self, limit: int) -> list[OutboxMessage]:
        """Newest first, with state."""
        return [
            _sent(row, self._roster.name_of(row.peer_id)) for row in await self._database.read(mail.outbox, limit=limit)
        ]


def _sent(row: OutboxRow, to: str) -> OutboxMessage:
    state, reason, hint = row.state.value, "", ""
    if row.state is OutboxState.EXPIRED:
        state, reason, hint = "expired", "It was not delivered in time.", f"Send it again: kith send {to} TEXT"
        if row.reason == mail.FORGOTTEN:
            state, reason = "given up", "You forgot this peer before it was delivered."
            hint = "Pair with it again, then send it again: kith pair"
        elif row.reason:
            refusal = _REFUSALS.get(row.reason, EgressDenied)()
            state, reason, hint = "withheld", refusal.text, f"Send it without that: kith send {to} TEXT"
    return OutboxMessage(
        message_id=row.message_id, to=to, seq=row.seq, state=state, created=_text(from_ms(row.created_ms)),
        body=row.body, reason=reason, hint=hint,
    )


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
