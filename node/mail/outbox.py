"""Takes a message of the owner, lets the guard decide, and makes it durable together with its ledger entry.

From then on it survives any crash and is delivered when the peer is there. Must not know streams or frames.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from node.clock import Clock, Entropy, new_id, to_ms
from node.counting import counted
from node.errors import KithError
from node.mail.entries import close_entry, close_left_open
from node.mail.errors import MessageTooLong, NothingToSend
from node.privacy.consent import ConsentAsker
from node.privacy.egress import Egress, Part
from node.privacy.errors import GuardFailed, LedgerFailed
from node.privacy.labels import Confidentiality, Integrity, Labeled, owner_text
from node.privacy.policy import PeerView, Purpose
from node.store import mail
from node.store.database import Database
from node.store.mail import OutboxRow
from protocol import limits

__all__ = ["CHAT", "Outbox"]

log = logging.getLogger(__name__)

CHAT = "chat.msg"
KEEP = timedelta(days=14)


class Outbox:
    """The owner's outgoing messages."""

    def __init__(
        self, database: Database, egress: Egress, clock: Clock, entropy: Entropy, *, keep: timedelta = KEEP,
        expiry: Clock | None = None, latest: Callable[[], datetime] | None = None,
    ) -> None:
        """keep: how long an undelivered message waits, from the latest that the present can be. expiry: the time by
        which it expires. None: the clock's."""
        self._database = database
        self._egress = egress
        self._clock = clock
        self._entropy = entropy
        self._keep = keep
        self._expiry = expiry or clock
        self._latest = latest or clock.now

    async def put(
        self, peer: PeerView, body: str, ask: ConsentAsker, *, message_id: str | None = None, owners_words: bool = True,
    ) -> OutboxRow:
        """The durable row of one new message. message_id: the same again gives the row that is there; None: a new one.

        owners_words: the owner typed them; what anything else composed may hold no personal value.

        Raises MailError for a text that is no message, and EgressDenied when the guard or the owner says no; nothing is
        queued then.
        """
        if not body.strip():
            raise NothingToSend
        if len(body) > limits.MAX_MAIL_CHARS:
            raise MessageTooLong(f"The message has {len(body)} characters and {limits.MAX_MAIL_CHARS} are allowed.")
        if message_id is not None and (known := await self._database.read(mail.find, message_id)) is not None:
            return known
        message_id = message_id or new_id(self._entropy)
        text = owner_text(body) if owners_words else Labeled(body, Confidentiality.PUBLIC, Integrity.LOCAL, "agent")
        now_ms = to_ms(self._clock.now())
        expires_ms = to_ms(self._latest()) + self._keep // timedelta(milliseconds=1)

        def enqueue(tx: Any) -> None:
            mail.enqueue(
                tx,
                peer_id=peer.peer_id,
                message_id=message_id,
                kind=CHAT,
                body=body,
                now_ms=now_ms,
                expires_ms=expires_ms,
            )

        failure: LedgerFailed | None = None
        try:
            await self._egress.clear(
                peer=peer,
                purpose=Purpose.MAIL,
                conversation=message_id,
                request_id=message_id,
                parts=(Part("mail", text),),
                ask=ask,
                why="a message you wrote" if owners_words else "a message that the agent composed",
                together_with=enqueue,
            )
        except LedgerFailed as error:   # the head may have failed after entry and row were durable: then it is queued
            failure = error
        row = await self._database.read(mail.find, message_id)
        if row is None:
            raise failure or GuardFailed("the message was cleared and not queued")
        return row

    async def waiting(self) -> dict[str, int]:
        """Per peer, how many messages are not delivered yet."""
        return await self._database.read(mail.waiting)

    async def expire(self) -> list[OutboxRow]:
        """The messages whose time ran out now; the owner sees them as expired, and so does the ledger."""
        expired = await self._database.write(mail.expire, to_ms(self._expiry.now()), to_ms(self._latest()))
        for row in expired:
            await close_entry(self._egress.ledger, row, "expired")
        return expired

    async def close_left_open(self) -> None:
        """Close the ledger entries of messages that are over: what a kill between two writes left, at start. What fails
        is logged, and done at the next start.
        """
        try:
            count = await close_left_open(self._egress.ledger, self._database)
        except KithError as error:
            log.warning("entries of messages that are over stay open: %s", error.code)
        else:
            if count:
                log.info("closed %s of messages that were over", counted(count, "ledger entry", "ledger entries"))
