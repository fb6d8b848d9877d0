"""Frames of /kith/receipt/1: the countersignature of what one side received from the other. No free text in any.

Either side opens a stream to hand in receipts it owes, or to ask for receipts it lacks.
"""

from typing import Annotated, Literal

from msgspec import Meta

from protocol import limits
from protocol.fields import Frame, Id16, Mac, Seq, Signature

__all__ = ["Receipt", "ReceiptFrame", "ReceiptPurpose", "ReceiptsEnd", "ReceiptsWanted"]

ReceiptPurpose = Literal["infer", "query", "mail", "answer"]


class Receipt(Frame, frozen=True, tag=1):
    """The sender of this frame received exactly these bytes.

    request_id: names the entry in the other side's ledger, together with the purpose. digest: blake2b-32 over the
    frames as they came, length prefixes included: one request, question or message, or a whole answer.
    """

    request_id: Id16
    purpose: ReceiptPurpose
    size_bytes: Seq
    digest: Mac
    signature: Signature


class ReceiptsWanted(Frame, frozen=True, tag=2):
    """Asks for the receipts of these requests, as far as there are any."""

    request_ids: Annotated[tuple[Id16, ...], Meta(min_length=1, max_length=limits.MAX_RECEIPTS)]


class ReceiptsEnd(Frame, frozen=True, tag=3):
    """All receipts were sent; the count must equal what came."""

    count: Annotated[int, Meta(ge=0, le=limits.MAX_RECEIPTS)]


ReceiptFrame = Receipt | ReceiptsWanted | ReceiptsEnd
