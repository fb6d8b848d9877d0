"""Frames of /kith/mail/1: numbered messages one way, acknowledgements the other. Each direction of a pair has its own
stream.
"""

from typing import Annotated, Literal

from msgspec import Meta

from protocol import limits
from protocol.fields import Frame, Id16, Seq, Timestamp

__all__ = ["Ack", "Gap", "Mail", "MailFrame", "MailKind", "MailRefusalCode", "MailRefused", "Nack"]

MailKind = Literal["chat.msg", "chat.read", "task.request", "task.update", "task.cancel", "meet.propose", "meet.answer"]
MailRefusalCode = Literal["not_granted", "full", "busy", "shutting_down"]

FirstSeq = Annotated[int, Meta(ge=1, le=limits.MAX_SEQ)]


class Mail(Frame, frozen=True, tag=1):
    """One message. seq counts per sender and receiver from 1 without holes; sent_at_ms is for display only, order is
    seq.
    """

    seq: FirstSeq
    message_id: Id16
    kind: MailKind
    body: Annotated[str, Meta(max_length=limits.MAX_MAIL_CHARS)]
    sent_at_ms: Timestamp


class Ack(Frame, frozen=True, tag=2):
    """Everything up to and including upto_seq is durably stored. Also the receiver's first frame on every stream."""

    upto_seq: Seq


class Nack(Frame, frozen=True, tag=3):
    """A hole was seen: send again from expected_seq."""

    expected_seq: FirstSeq


class Gap(Frame, frozen=True, tag=4):
    """The messages up to and including upto_seq no longer exist at the sender (expired); go on behind them."""

    upto_seq: FirstSeq


class MailRefused(Frame, frozen=True, tag=5):
    """The receiver takes no message now; the sender keeps them and tries later."""

    code: MailRefusalCode


MailFrame = Mail | Ack | Nack | Gap | MailRefused
