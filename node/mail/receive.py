"""The receiving side of /kith/mail/1: stores each message durably before it is acknowledged.

Must not know who may send: the daemon opens this only for peers whose grant holds mail. A message's text goes to the
inbox
and nowhere else.
"""

import logging
from collections.abc import Callable

import trio

from node.clock import Clock, to_ms
from node.errors import KithError
from node.store import mail
from node.store.database import Database
from node.store.mail import INBOX_ROOM, InboxRoom, Incoming, Receipt
from protocol.channel import FrameChannel
from protocol.errors import ChannelClosed, ChannelError, DeadlinePassed, RemoteProtocolError
from protocol.fields import Frame
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send
from protocol.mail import MailOver, MailReceiver, MailRefusalCode, OpenMail, RefuseMail, Store, Stored, StoreGap

__all__ = ["Receiver"]

log = logging.getLogger(__name__)

IDLE_S = 3600.0


class Receiver:
    """Takes messages of peers into the inbox. on_stored hears of each new one (peer id, message id)."""

    def __init__(
        self, database: Database, clock: Clock, on_stored: Callable[[str, str], None], room: InboxRoom = INBOX_ROOM
    ) -> None:
        """room: how much of one peer may wait unread."""
        self._database = database
        self._room = room
        self._clock = clock
        self._on_stored = on_stored

    async def refuse(self, channel: FrameChannel, code: MailRefusalCode) -> None:
        """Tell the peer that nothing is taken. Never raises for what the peer does."""
        machine = MailReceiver(stored_seq=0)
        try:
            await self._carry_out(channel, machine, machine.handle(RefuseMail(code), trio.current_time()))
        except ChannelError as error:
            log.info("%s left before it was refused: %s", channel.peer_id, error.code)

    async def serve(self, channel: FrameChannel) -> None:
        """Receive until the peer ends the stream. Never raises for what the peer does, nor for a full disk: then the
        peer is told to come again later, and keeps what is not acknowledged.
        """
        try:
            marks = await self._database.read(mail.marks, channel.peer_id)
            is_full = await self._database.read(mail.is_full, channel.peer_id, self._room)
        except KithError as error:
            log.warning("no mail is taken from %s: %s", channel.peer_id, error.text)
            return await self.refuse(channel, "busy")
        if is_full:
            return await self.refuse(channel, "full")
        machine = MailReceiver(stored_seq=marks.received)
        try:
            over = await self._carry_out(channel, machine, machine.handle(OpenMail(), trio.current_time()))
            while not over:
                event = await self._next_event(channel)
                over = await self._carry_out(channel, machine, machine.handle(event, trio.current_time()))
        except (ChannelError, RemoteProtocolError) as error:
            log.info("mail from %s ended: %s", channel.peer_id, error.code)
            await channel.reset()
        except KithError as error:
            log.warning("a message of %s could not be stored: %s", channel.peer_id, error.text)
            await self.refuse(channel, "busy")

    async def _next_event(self, channel: FrameChannel) -> object:
        while True:
            try:
                frame = await channel.receive(deadline_s=IDLE_S)
            except DeadlinePassed:
                continue  # an idle stream is fine; the link notices a dead peer
            except ChannelClosed:
                return PeerFinished()
            except ChannelError:
                return ChannelBroken()
            assert isinstance(frame, Frame)
            return Received(frame)

    async def _carry_out(self, channel: FrameChannel, machine: MailReceiver, commands: tuple[object, ...]) -> bool:
        for command in commands:
            match command:
                case Send(frame):
                    await channel.send(frame)
                case Store(message):
                    incoming = Incoming(
                        message.seq, message.message_id.hex(), message.kind, message.body, message.sent_at_ms
                    )
                    receipt = await self._database.write(
                        mail.receive, channel.peer_id, incoming, to_ms(self._clock.now()), self._room
                    )
                    if receipt is Receipt.FULL:
                        log.warning("the inbox holds as much unread of %s as it may: no more is taken", channel.peer_id)
                        await self.refuse(channel, "full")
                        return True
                    if receipt in (Receipt.CONFLICT, Receipt.AHEAD):
                        log.warning(
                            "message %d of %s does not fit the inbox: %s", message.seq, channel.peer_id, receipt
                        )
                        await channel.reset()
                        return True
                    if receipt is Receipt.STORED:
                        self._on_stored(channel.peer_id, incoming.message_id)
                    if await self._carry_out(
                        channel, machine, machine.handle(Stored(message.seq), trio.current_time())
                    ):
                        return True
                case StoreGap(upto_seq):
                    await self._database.write(mail.skip, channel.peer_id, upto_seq)
                    if await self._carry_out(channel, machine, machine.handle(Stored(upto_seq), trio.current_time())):
                        return True
                case FinishSending():
                    await channel.finish()
                case ResetChannel():
                    await channel.reset()
                case MailOver():
                    return True
        return False
