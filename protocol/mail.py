"""Messages one way, /kith/mail/1: numbered, acknowledged when durable, exactly once and in order. Both machines.

    sending    GREETING --Ack(high water)--> FLOWING --Ack, Nack, Queue--+--> FLOWING
    receiving  LISTENING --Open--> FLOWING --Mail, Gap, Stored--+--> FLOWING
    both       closed, lost, MailRefused, too many rewinds --> OVER;  a frame that breaks the rules raises --> OVER

The receiver speaks first: what it has durably. The sender then sends what follows, at most MAIL_WINDOW messages ahead
of the acknowledgements. A hole makes the receiver ask once (Nack) for the number it needs; the sender goes back to it.
A number seen before is acknowledged again and never delivered twice. Expired messages leave a Gap, so that the others
can go on. Messages stay in the driver's outbox: the machine holds numbers only. Must not know the database or who the
peer is.
"""

import enum
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from protocol import limits
from protocol.errors import LocalProtocolError, OutOfOrder
from protocol.frames.mail import Ack, Gap, Mail, MailFrame, MailKind, MailRefusalCode, MailRefused, Nack
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick

__all__ = [
    "Ack", "Acknowledged", "Gap", "Load", "Mail", "MailFrame", "MailKind", "MailOver", "MailReceiver",
    "MailRefusalCode", "MailRefused",
    "MailSender", "MailState", "Nack", "OpenMail", "PeerAhead", "Queued", "RefuseMail", "Store", "StoreGap", "Stored",
]

MailOverReason = Literal["refused", "closed", "lost", "stuck", "peer_ahead"]


class MailState(enum.Enum):
    """See the drawing above."""

    GREETING = enum.auto()
    LISTENING = enum.auto()
    FLOWING = enum.auto()
    OVER = enum.auto()


@dataclass(frozen=True, slots=True)
class Queued:
    """Event, sender: the outbox now holds messages up to this number."""

    upto_seq: int


@dataclass(frozen=True, slots=True)
class OpenMail:
    """Event, receiver: the stream is open and allowed; say what is durable."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Event, receiver: everything up to this number is durably stored."""

    upto_seq: int


@dataclass(frozen=True, slots=True)
class RefuseMail:
    """Event, receiver: nothing is taken now."""

    code: MailRefusalCode


@dataclass(frozen=True, slots=True)
class Load:
    """Command, sender: fetch these numbers from the outbox, clear them and send each as Mail, in order.

    Numbers that no longer exist are sent as one Gap up to the last of them.
    """

    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Command, sender: the peer has everything up to this number; it may leave the outbox."""

    upto_seq: int


@dataclass(frozen=True, slots=True)
class PeerAhead:
    """Command, sender: the peer has numbers that this outbox never sent, such as one that was put back from a copy;
    number what it has not acknowledged on above this one, then open anew."""

    upto_seq: int


@dataclass(frozen=True, slots=True)
class Store:
    """Command, receiver: store this message durably, then report Stored. Several may be stored in one transaction."""

    mail: Mail


@dataclass(frozen=True, slots=True)
class StoreGap:
    """Command, receiver: move the high-water mark to this number, then report Stored."""

    upto_seq: int


@dataclass(frozen=True, slots=True)
class MailOver:
    """Command: this stream is done; what is not acknowledged stays in the outbox. The last one."""

    reason: MailOverReason
    code: MailRefusalCode | None = None


SenderCommands: TypeAlias = tuple[FinishSending | ResetChannel | Load | Acknowledged | PeerAhead | MailOver, ...]
ReceiverCommands: TypeAlias = tuple[Send | FinishSending | ResetChannel | Store | StoreGap | MailOver, ...]

_S = MailState


class MailSender:
    """Our side of one direction. Events: Queued, Received, PeerFinished, ChannelBroken, Tick."""

    def __init__(self, *, acked_seq: int, last_seq: int, sent_seq: int | None = None) -> None:
        """acked_seq: what the peer is known to have; last_seq: the newest number in the outbox; sent_seq: the newest
        one that ever went into a stream, None for last_seq.
        """
        self.state = _S.GREETING
        self._acked = acked_seq
        self._last = last_seq
        self._once_sent = last_seq if sent_seq is None else max(sent_seq, acked_seq)
        self._sent = acked_seq  # the newest number handed to Load
        self._rewinds = 0

    @property
    def due_s(self) -> float | None:
        """Time changes nothing here; silence is the link's business."""
        return None

    @property
    def in_flight(self) -> int:
        """Messages sent and not yet acknowledged."""
        return self._sent - self._acked

    def handle(self, event: object, now_s: float) -> SenderCommands:
        """The commands that follow from one event; now_s is not used. Raises OutOfOrder for a frame that breaks the
        rules.
        """
        if self.state is _S.OVER:
            return ()
        match event:
            case Received(frame):
                return self._receive(frame)
            case Queued(upto_seq):
                if upto_seq < self._last:
                    raise LocalProtocolError("the outbox cannot shrink at its end")
                self._last = upto_seq
                return self._load()
            case PeerFinished():
                return (FinishSending(), self._over("closed"))
            case ChannelBroken():
                return (self._over("lost"),)
            case Tick():
                return ()
        raise LocalProtocolError(f"{type(event).__name__} is no event of this machine")

    def _receive(self, frame: msgspec.Struct) -> SenderCommands:
        match frame:
            case Ack(upto_seq) if self.state is _S.GREETING:
                return self._greeted(upto_seq)
            case Ack(upto_seq) if self._acked <= upto_seq <= self._sent:
                if upto_seq == self._acked:
                    return ()
                self._acked, self._rewinds = upto_seq, 0
                return (Acknowledged(upto_seq), *self._load())
            case Nack(expected_seq) if self.state is _S.FLOWING and self._acked < expected_seq <= self._sent:
                return self._rewind(expected_seq)
            case MailRefused(code):
                return (FinishSending(), self._over("refused", code))
        self.state = _S.OVER
        raise OutOfOrder(f"{type(frame).__name__} does not belong here")

    def _greeted(self, upto_seq: int) -> SenderCommands:
        """The peer's first word. It may know less than was acknowledged (it lost data): then what is gone becomes a
        Gap. What it has of numbers that were never sent are other messages: to go on would lose as many of ours.
        """
        if upto_seq > self._once_sent:
            self.state = _S.OVER
            return (ResetChannel(), PeerAhead(upto_seq), MailOver("peer_ahead"))
        self.state = _S.FLOWING
        is_news = upto_seq > self._acked
        self._acked = self._sent = upto_seq
        return ((Acknowledged(upto_seq),) if is_news else ()) + self._load()

    def _rewind(self, expected_seq: int) -> SenderCommands:
        self._rewinds += 1
        if self._rewinds > limits.MAX_REWINDS:
            return (ResetChannel(), self._over("stuck"))
        self._sent = expected_seq - 1  # what came before has arrived, but whether it is durable only an Ack says
        return self._load()

    def _load(self) -> SenderCommands:
        if self.state is not _S.FLOWING:
            return ()
        last = min(self._last, self._acked + limits.MAIL_WINDOW)
        if last <= self._sent:
            return ()
        first, self._sent = self._sent + 1, last
        return (Load(first, last),)

    def _over(self, reason: MailOverReason, code: MailRefusalCode | None = None) -> MailOver:
        self.state = _S.OVER
        return MailOver(reason, code)


class MailReceiver:
    """The peer's side of one direction. Events: OpenMail, Stored, RefuseMail, Received, PeerFinished, ChannelBroken,
    Tick.
    """

    def __init__(self, *, stored_seq: int) -> None:
        """stored_seq: the durable high-water mark for this peer."""
        self.state = _S.LISTENING
        self._stored = stored_seq
        self._taken = stored_seq  # handed to Store, perhaps not durable yet
        self._hole_top = 0  # the highest number seen behind the present hole; 0 = no hole

    @property
    def due_s(self) -> float | None:
        """Time changes nothing here; silence is the link's business."""
        return None

    def handle(self, event: object, now_s: float) -> ReceiverCommands:
        """The commands that follow from one event; now_s is not used. Raises OutOfOrder for a frame that breaks the
        rules.
        """
        if self.state is _S.OVER:
            return ()
        match event:
            case OpenMail() if self.state is _S.LISTENING:
                self.state = _S.FLOWING
                return (Send(Ack(self._stored)),)
            case RefuseMail(code):
                return (Send(MailRefused(code)), FinishSending(), self._over("refused", code))
            case Received(frame):
                return self._receive(frame)
            case Stored(upto_seq):
                if not self._stored < upto_seq <= self._taken:
                    raise LocalProtocolError("stored something that was not handed over")
                self._stored = upto_seq
                return (Send(Ack(upto_seq)),)
            case PeerFinished():
                return (FinishSending(), self._over("closed"))
            case ChannelBroken():
                return (self._over("lost"),)
            case Tick():
                return ()
        raise LocalProtocolError(f"{type(event).__name__} in state {self.state.name}")

    def _receive(self, frame: msgspec.Struct) -> ReceiverCommands:
        match frame:
            case Mail() if self.state is _S.FLOWING:
                return self._take(frame.seq, Store(frame), is_next=frame.seq == self._taken + 1)
            case Gap(upto_seq) if self.state is _S.FLOWING:
                return self._take(upto_seq, StoreGap(upto_seq), is_next=upto_seq > self._taken)
        self.state = _S.OVER
        raise OutOfOrder(f"{type(frame).__name__} does not belong here")

    def _take(self, seq: int, command: Store | StoreGap, *, is_next: bool) -> ReceiverCommands:
        if is_next:
            if isinstance(command, Store) and seq > self._stored + limits.MAIL_WINDOW:
                self.state = _S.OVER
                raise OutOfOrder("more messages on their way than the window allows")
            self._taken, self._hole_top = seq, 0
            return (command,)
        if seq <= self._stored:
            return (Send(Ack(self._stored)),)  # the sender missed the acknowledgement
        if seq <= self._taken:
            return ()  # being stored right now; its acknowledgement follows
        if self._hole_top == 0:
            self._hole_top = seq
            return (Send(Nack(self._taken + 1)),)
        if seq <= self._hole_top:  # the sender went back, but not to the number that was asked for
            self.state = _S.OVER
            raise OutOfOrder("a message is missing and was not sent again")
        self._hole_top = seq
        return ()  # sent before our Nack arrived

    def _over(self, reason: MailOverReason, code: MailRefusalCode | None = None) -> MailOver:
        self.state = _S.OVER
        return MailOver(reason, code)
