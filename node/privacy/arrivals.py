"""What came from a peer on one channel, cut into the pieces that this node owes a receipt for.

The same cut as node.privacy.left makes on the other side: a request, question or message is one piece; an answer is
one, once its end is there. An answer that broke off is none: nobody knows how much of it is whole. Must not know keys
or rows.
"""

import hashlib
from collections.abc import Callable, Container
from dataclasses import dataclass

import msgspec

from protocol.frames.inference import Accepted, End, ErrorFrame, InferRequest, TokenFrame, ToolCallFrame
from protocol.frames.mail import Mail
from protocol.frames.query import Answer, Query, QueryEnd
from protocol.frames.receipt import ReceiptPurpose
from protocol.limits import FRAME_HEADER_BYTES

__all__ = ["Arrivals", "Arrived", "NoteArrival"]

_ANSWERS_LIMIT = 64


@dataclass(frozen=True, slots=True)
class Arrived:
    """One piece. digest: blake2b-32 over its frames, length prefixes included."""

    peer_id: str
    purpose: ReceiptPurpose
    request_id: bytes
    size_bytes: int
    digest: bytes


NoteArrival = Callable[[Arrived], None]
"""Takes a piece; must not wait and must not raise."""


class Arrivals:
    """One channel's side of it."""

    def __init__(self, peer_id: str, asked: Container[bytes], note: NoteArrival | None) -> None:
        """asked: requests that were sent on this channel; only their answers count."""
        self._peer_id = peer_id
        self._asked = asked
        self._note = note
        self._answers: dict[bytes, _Growing] = {}

    def take(self, frame: msgspec.Struct, payload: bytes) -> None:
        """One frame as it came, with its payload."""
        if self._note is None:
            return
        match frame:
            case InferRequest():
                self._tell("infer", frame.request_id, _Growing(payload))
            case Query():
                self._tell("query", frame.query_id, _Growing(payload))
            case Mail():
                self._tell("mail", frame.message_id, _Growing(payload))
            case Accepted() if frame.request_id in self._asked and len(self._answers) < _ANSWERS_LIMIT:
                self._answers.setdefault(frame.request_id, _Growing())
            case TokenFrame() | ToolCallFrame() if frame.request_id in self._answers:
                self._answers[frame.request_id].add(payload)
            case End() | ErrorFrame() if frame.request_id in self._answers:
                self._answers[frame.request_id].add(payload)
                self._tell("answer", frame.request_id, self._answers.pop(frame.request_id))
            case Answer() if frame.query_id in self._asked and len(self._answers) < _ANSWERS_LIMIT:
                self._answers.setdefault(frame.query_id, _Growing()).add(payload)
            case QueryEnd() if frame.query_id in self._answers:
                self._tell("answer", frame.query_id, self._answers.pop(frame.query_id))

    def _tell(self, purpose: ReceiptPurpose, request_id: bytes, piece: "_Growing") -> None:
        if self._note is not None:
            self._note(Arrived(self._peer_id, purpose, request_id, piece.size_bytes, piece.hash.digest()))


class _Growing:
    """A piece of which more may come."""

    def __init__(self, payload: bytes = b"") -> None:
        self.hash = hashlib.blake2b(digest_size=32)
        self.size_bytes = 0
        if payload:
            self.add(payload)

    def add(self, payload: bytes) -> None:
        """One more frame."""
        self.hash.update(len(payload).to_bytes(FRAME_HEADER_BYTES, "big"))
        self.hash.update(payload)
        self.size_bytes += FRAME_HEADER_BYTES + len(payload)
