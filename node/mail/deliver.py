"""Delivers the outbox: one stream per reachable peer, messages in order, again after every break until acknowledged.

Each message leaves through the guard under the ledger entry it was queued with; the entry is closed when the peer has
it durably.
Must not know how peers are reached or found.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import cast

import trio

from node.clock import Clock, to_ms
from node.errors import KithError
from node.mail.entries import close_entry
from node.privacy.egress import Egress, EgressClearance
from node.privacy.errors import EgressDenied, HoldsPersonal, HoldsSecret
from node.privacy.policy import PeerView
from node.store import mail
from node.store.connection import Connection
from node.store.database import Database
from node.store.mail import OutboxRow, OutboxState
from protocol import limits
from protocol.channel import FrameChannel
from protocol.errors import ChannelClosed, ChannelError, DeadlinePassed, RemoteProtocolError
from protocol.fields import Frame
from protocol.frames.mail import Gap, Mail, MailKind
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send
from protocol.mail import Acknowledged, Load, MailOver, MailSender, PeerAhead, Queued

__all__ = ["Deliverer"]

log = logging.getLogger(__name__)

ACK_TIMEOUT_S = 15.0
RETRY_FIRST_S = 0.2
RETRY_MOST_S = 60.0
_MOST_AHEAD = limits.MAX_SEQ // 2

OpenChannel = Callable[[str], Awaitable[FrameChannel]]
"""Opens a mail stream to a peer. Raises KithError or ChannelError when it cannot be reached."""

FindPeer = Callable[[str], Awaitable[PeerView | None]]
"""The paired peer as the guard sees it; None when it is not paired any more."""


@dataclass(slots=True)
class _Lane:
    """The delivery to one peer: whether it is reachable, and a bell for news."""

    reachable: bool = False
    running: bool = False
    news: trio.Event = field(default_factory=trio.Event)

    def ring(self) -> None:
        self.news.set()
        self.news = trio.Event()


class Deliverer:
    """Delivers to all peers. run() must be running; the other methods only ring."""

    def __init__(
        self, database: Database, egress: Egress, open_channel: OpenChannel, find_peer: FindPeer, clock: Clock
    ) -> None:
        self._database = database
        self._egress = egress
        self._open_channel = open_channel
        self._find_peer = find_peer
        self._clock = clock
        self._lanes: dict[str, _Lane] = {}
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Deliver until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            for peer_id, lane in self._lanes.items():
                self._start(peer_id, lane)
            await trio.sleep_forever()

    def peer_up(self, peer_id: str) -> None:
        """The peer can be reached now."""
        lane = self._lanes.setdefault(peer_id, _Lane())
        lane.reachable = True
        lane.ring()
        self._start(peer_id, lane)

    def peer_down(self, peer_id: str) -> None:
        """The peer cannot be reached; its messages wait."""
        lane = self._lanes.get(peer_id)
        if lane is not None:
            lane.reachable = False
            lane.ring()

    def queued(self, peer_id: str) -> None:
        """Something new is in the outbox for this peer."""
        lane = self._lanes.get(peer_id)
        if lane is not None:
            lane.ring()

    def _start(self, peer_id: str, lane: _Lane) -> None:
        if self._nursery is not None and lane.reachable and not lane.running:
            lane.running = True
            self._nursery.start_soon(self._serve_lane, peer_id, lane)

    async def _serve_lane(self, peer_id: str, lane: _Lane) -> None:
        """Keep a mail stream to one peer while it is reachable."""
        retry_s = RETRY_FIRST_S
        try:
            while lane.reachable:
                bell = lane.news
                try:
                    if not await self._has_more(peer_id):
                        await bell.wait()
                        continue
                    forward = await self._deliver(peer_id, lane)
                except KithError as error:  # a full or failing disk: what waits here is tried again
                    log.warning("messages to %s wait: %s", peer_id, error.text)
                    forward = False
                if forward:
                    retry_s = RETRY_FIRST_S
                    continue
                with trio.move_on_after(retry_s):
                    await bell.wait()
                retry_s = min(retry_s * 2, RETRY_MOST_S)
        finally:
            lane.running = False

    async def _has_more(self, peer_id: str) -> bool:
        marks = await self._database.read(mail.marks, peer_id)
        return marks.acked < marks.allocated

    async def _deliver(self, peer_id: str, lane: _Lane) -> bool:
        """One stream's life; True when it brought something forward."""
        peer = await self._find_peer(peer_id)
        if peer is None:
            lane.reachable = False
            return False
        try:
            channel = await self._open_channel(peer_id)
        except (KithError, ChannelError) as error:
            log.info("no mail stream to %s: %s", peer_id, error.code)
            return False
        stream = _MailStream(channel, peer, lane, self._database, self._egress, self._clock)
        try:
            await stream.run()
        except* (KithError, ChannelError, RemoteProtocolError, trio.TooSlowError) as errors:  # in a nursery's group
            log.info("the mail stream to %s ended: %s", peer_id, _code_of(errors))
        finally:
            await channel.reset()
        return stream.acknowledged > 0


class _MailStream:
    """One open stream to one peer."""

    def __init__(
        self, channel: FrameChannel, peer: PeerView, lane: _Lane, database: Database, egress: Egress, clock: Clock
    ) -> None:
        self._channel = channel
        self._peer = peer
        self._lane = lane
        self._database = database
        self._egress = egress
        self._clock = clock
        self._clearances: dict[int, EgressClearance] = {}
        self.acknowledged = 0
        self._over = False

    async def run(self) -> None:
        """Send and be acknowledged until the stream or the peer's reachability ends."""
        marks, sent = await self._database.read(_standing, self._peer.peer_id)
        machine = MailSender(acked_seq=marks.acked, last_seq=marks.allocated, sent_seq=sent)
        events_in, events_out = trio.open_memory_channel[object](64)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hear, machine, events_in)
            nursery.start_soon(self._watch_outbox, marks.allocated, events_in.clone())
            async for event in events_out:
                await self._carry_out(machine, machine.handle(event, trio.current_time()))
                if self._over:
                    break
            nursery.cancel_scope.cancel()

    async def _hear(self, machine: MailSender, events: trio.MemorySendChannel[object]) -> None:
        """Frames of the peer as events; silence for two waits on which it owes an acknowledgement breaks the stream.

        What it owes is seen anew each time: a message may go out while nothing was owed yet."""
        silent = 0
        while True:
            owes = machine.in_flight > 0 or machine.state.name == "GREETING"
            try:
                frame = await self._channel.receive(deadline_s=ACK_TIMEOUT_S)
            except DeadlinePassed:
                silent = silent + 1 if owes else 0
                if silent == 2:
                    await events.send(ChannelBroken())
                    return
                continue
            except ChannelClosed:
                await events.send(PeerFinished())
                return
            except (ChannelError, RemoteProtocolError) as error:
                log.info("mail stream to %s: %s", self._peer.peer_id, error.code)
                await events.send(ChannelBroken())
                return
            assert isinstance(frame, Frame)
            silent = 0
            await events.send(Received(frame))

    async def _watch_outbox(self, last_seq: int, events: trio.MemorySendChannel[object]) -> None:
        while self._lane.reachable:
            bell = self._lane.news
            marks = await self._database.read(mail.marks, self._peer.peer_id)
            if marks.allocated > last_seq:
                last_seq = marks.allocated
                await events.send(Queued(last_seq))
            await bell.wait()
        await events.send(ChannelBroken())

    async def _carry_out(self, machine: MailSender, commands: tuple[object, ...]) -> None:
        for command in commands:
            match command:
                case Load(first_seq, last_seq):
                    await self._send_rows(first_seq, last_seq)
                case Acknowledged(upto_seq):
                    await self._settle(upto_seq)
                case Send(frame):
                    await self._channel.send(frame)
                case PeerAhead(upto_seq):
                    await self._number_on(upto_seq)
                case FinishSending():
                    await self._channel.finish()
                case ResetChannel():
                    await self._channel.reset()
                case MailOver(reason):
                    log.info("mail to %s: stream over (%s)", self._peer.peer_id, reason)
                    self._over = True

    async def _send_rows(self, first_seq: int, last_seq: int) -> None:
        rows = await self._database.read(
            mail.pending, self._peer.peer_id, after_seq=first_seq - 1, limit=last_seq - first_seq + 1
        )
        queued = [row.seq for row in rows if row.state is OutboxState.QUEUED]

        def mark_sent(tx: Connection) -> None:
            for seq in queued:
                mail.mark_sent(tx, self._peer.peer_id, seq)

        if queued:  # before the first byte: what is not marked, the peer cannot have
            await self._database.write(mark_sent)
        expected = first_seq
        for row in rows:
            if row.seq > expected:
                await self._channel.send(Gap(row.seq - 1))
            await self._send_row(row)
            expected = row.seq + 1
        if expected <= last_seq:
            await self._channel.send(Gap(last_seq))

    async def _number_on(self, above_seq: int) -> None:
        """The outbox was put back from a copy, and its numbers are given out a second time."""
        if above_seq > _MOST_AHEAD:
            log.warning("%s claims messages up to a number that nobody reaches", self._peer.peer_id)
            return
        moved = await self._database.write(mail.renumber, self._peer.peer_id, above_seq)
        log.warning(
            "%s has other messages up to %d of this node: %d that wait are numbered anew", self._peer.peer_id,
            above_seq, moved)

    async def _send_row(self, row: OutboxRow) -> None:
        if row.state is OutboxState.EXPIRED:
            return await self._channel.send(Gap(row.seq))
        clearance = await self._egress.reopen(peer=self._peer, request_id=row.message_id)
        kind = cast("MailKind", row.kind)
        frame = Mail(row.seq, bytes.fromhex(row.message_id), kind, row.body, row.created_ms)
        try:
            await self._channel.send_cleared(frame, clearance)
        except (HoldsSecret, HoldsPersonal) as refusal:     # a secret that was stored after this was queued, say
            log.warning("message %s stays here, and those behind it go on: %s", row.message_id, refusal.code)
            now_ms = to_ms(self._clock.now())
            await self._database.write(mail.withhold, self._peer.peer_id, row.seq, now_ms, refusal.code)
            await clearance.close("refused")
            return await self._channel.send(Gap(row.seq))
        self._clearances[row.seq] = clearance

    async def _settle(self, upto_seq: int) -> None:
        """Note what the peer has durably, and close the ledger entries of these messages, in one transaction."""
        settled = [seq for seq in self._clearances if seq <= upto_seq]
        closings = [self._clearances.pop(seq).closing("delivered") for seq in settled]
        now_ms = to_ms(self._clock.now())

        def settle(tx: Connection) -> list[OutboxRow]:
            delivered = mail.acknowledge(tx, self._peer.peer_id, upto_seq, now_ms)
            for close in closings:
                close(tx)
            return delivered

        for row in await self._database.write(settle):
            if row.seq not in settled:  # sent on a stream that broke, perhaps before a crash; acknowledged only now
                await self._close_late(row)
        self.acknowledged += 1

    async def _close_late(self, row: OutboxRow) -> None:
        """Close a ledger entry with the bytes that this process sent for it: none are known after a restart."""
        try:
            clearance = await self._egress.reopen(peer=self._peer, request_id=row.message_id)
        except EgressDenied:    # the peer lost its trust meanwhile; what it has, it has
            await close_entry(self._egress.ledger, row, "delivered")
        else:
            await clearance.close("delivered")


def _standing(tx: Connection, peer_id: str) -> tuple[mail.Marks, int]:
    return mail.marks(tx, peer_id), mail.sent(tx, peer_id)


def _code_of(group: BaseExceptionGroup[Exception]) -> str:
    """The code of the first error in a group, however deep."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(getattr(error, "code", type(error).__name__))
