"""The registry of protocol ids: which frames belong to each, how large they may be, and which of them carry content.

Must not know any machine or driver. The prose form of this registry is docs/reference/protocols.md; a test compares the
two.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from protocol import limits
from protocol.frames import inference, link, mail, model, pairing, query, receipt

__all__ = [
    "ACCOUNTED", "CONTENT", "CONTROL", "FRAMES", "FRAME_LIMITS", "INFER", "LINK", "MAIL", "MODEL", "OPAQUE", "PAIR",
    "PROTOCOLS", "QUERY", "RECEIPT",
]

LINK: Final = "/kith/link/1"
PAIR: Final = "/kith/pair/1"
INFER: Final = "/kith/infer/1"
QUERY: Final = "/kith/query/1"
MAIL: Final = "/kith/mail/1"
MODEL: Final = "/kith/model/1"
RECEIPT: Final = "/kith/receipt/1"
PROTOCOLS: Final = (LINK, PAIR, INFER, QUERY, MAIL, MODEL, RECEIPT)

FRAMES: Final[Mapping[str, Any]] = MappingProxyType({
    LINK: link.LinkFrame,
    PAIR: pairing.PairFrame,
    INFER: inference.InferFrame,
    QUERY: query.QueryFrame,
    MAIL: mail.MailFrame,
    MODEL: model.ModelFrame,
    RECEIPT: receipt.ReceiptFrame,
})
"""Protocol id -> the union of its frames, for canonical.decode."""

FRAME_LIMITS: Final[Mapping[str, int]] = MappingProxyType({
    LINK: limits.LINK_FRAME_BYTES,
    PAIR: limits.PAIR_FRAME_BYTES,
    INFER: limits.INFER_FRAME_BYTES,
    QUERY: limits.QUERY_FRAME_BYTES,
    MAIL: limits.MAIL_FRAME_BYTES,
    MODEL: limits.MODEL_FRAME_BYTES,
    RECEIPT: limits.RECEIPT_FRAME_BYTES,
})
"""Protocol id -> the largest payload in bytes, for framing.FrameDecoder."""

CONTENT: Final[frozenset[type[msgspec.Struct]]] = frozenset({
    inference.InferRequest, query.Query, query.Answer, mail.Mail,
})
"""Frames that carry words of the owner or derived from them: sent with a clearance only."""

ACCOUNTED: Final[frozenset[type[msgspec.Struct]]] = frozenset({inference.TokenFrame, inference.ToolCallFrame})
"""Answers computed for a peer from the peer's own prompt: counted in the ledger, not scanned."""

OPAQUE: Final[frozenset[type[msgspec.Struct]]] = frozenset({model.ModelChunk})
"""Bytes of a catalogue model file that the peer asked for: counted in the ledger and compared with the file, not
scanned."""

CONTROL: Final[frozenset[type[msgspec.Struct]]] = frozenset({
    link.Hello, link.Beat, link.Echo, link.Advert, link.Bye, link.Granted, link.Located,
    pairing.StartCode, pairing.ReplyCode, pairing.StartSecret, pairing.ReplySecret, pairing.PairConfirm,
    pairing.PairCard, pairing.PairAccept, pairing.PairRefused,
    inference.Accepted, inference.Refused, inference.Progress, inference.Usage, inference.End, inference.Cancel,
    inference.ErrorFrame,
    query.QueryRefused, query.QueryEnd,
    mail.Ack, mail.Nack, mail.Gap, mail.MailRefused,
    model.ModelRequest, model.ModelOffer, model.ModelEnd, model.ModelRefused,
    receipt.Receipt, receipt.ReceiptsWanted, receipt.ReceiptsEnd,
})
"""The closed list of fixed-shape frames without free text: counted, not scanned."""
