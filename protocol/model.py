"""One model file from one peer, /kith/model/1: both machines.

    copying     IDLE --Ask--> ASKED --ModelOffer--> RECEIVING --ModelChunk--+--> RECEIVING
                                |                       |
                                |   ModelEnd, ModelRefused, GiveUp, closed, lost, silent for 15 s
                                +-----------+-----------+-----------------------------------> OVER
    giving      LISTENING --ModelRequest--> DECIDING --Offer--> GIVING --Give--+--> GIVING
                                |              |                   |
                                |   the last byte, Refuse, closed, lost
                                +--------------+-------------------+------------------------> OVER
    Any frame that breaks the rules raises and leads to OVER.

Only a ModelEnd behind the last byte makes a copy complete, and even then the digest is the copier's to check. The
copier keeps its side open until the end: closing it means that it is gone. Must not know files, grants or disks.
"""

import enum
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from protocol import limits
from protocol.errors import LocalProtocolError, OutOfOrder
from protocol.frames.model import (
    ModelChunk,
    ModelEnd,
    ModelFrame,
    ModelOffer,
    ModelRefusalCode,
    ModelRefused,
    ModelRequest,
)
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick

__all__ = [
    "Ask", "CopierMachine", "CopyOver", "CopyReason", "Decide", "Give", "GiveUp", "GiverMachine", "ModelChunk",
    "ModelEnd", "ModelFrame", "ModelOffer", "ModelRefusalCode", "ModelRefused", "ModelRequest", "ModelState", "Offer",
    "Offered", "Refuse", "StopGiving", "Store",
]

CopyReason = Literal["complete", "refused", "closed", "lost", "silent", "given_up"]


class ModelState(enum.Enum):
    """See the drawing above; IDLE, ASKED and RECEIVING are the copier's, the next three the giver's."""

    IDLE = enum.auto()
    ASKED = enum.auto()
    RECEIVING = enum.auto()
    LISTENING = enum.auto()
    DECIDING = enum.auto()
    GIVING = enum.auto()
    OVER = enum.auto()


@dataclass(frozen=True, slots=True)
class Ask:
    """Event, copier: the stream is open; send the request."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Event, copier: it is not wanted any more, or there is no room for it."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Event, giver: the file is here and granted."""

    size_bytes: int
    name: str
    licence: str | None


@dataclass(frozen=True, slots=True)
class Give:
    """Event, giver: the file's next bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Refuse:
    """Event, giver: it is not given, or not any further."""

    code: ModelRefusalCode


@dataclass(frozen=True, slots=True)
class Offered:
    """Command, copier: look whether there is room, before bytes come; GiveUp where there is not."""

    offer: ModelOffer


@dataclass(frozen=True, slots=True)
class Store:
    """Command, copier: write these bytes at this place of the file."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class CopyOver:
    """Command, copier: the outcome, and how many bytes of the file came in order, those before this stream included.
    The last one.
    """

    reason: CopyReason
    reached_bytes: int
    code: ModelRefusalCode | None = None


@dataclass(frozen=True, slots=True)
class Decide:
    """Command, giver: check the grant and find the file."""

    request: ModelRequest


@dataclass(frozen=True, slots=True)
class StopGiving:
    """Command, giver: nobody reads any more."""


CopierCommands: TypeAlias = tuple[Send | FinishSending | ResetChannel | Offered | Store | CopyOver, ...]
GiverCommands: TypeAlias = tuple[Send | FinishSending | Decide | StopGiving, ...]

_S = ModelState


class CopierMachine:
    """Copies one file. Events: Ask, GiveUp, Received, PeerFinished, ChannelBroken, Tick."""

    def __init__(self, request: ModelRequest) -> None:
        self.state = _S.IDLE
        self._request = request
        self._reached = request.offset
        self._size = 0
        self._heard_s = 0.0

    @property
    def due_s(self) -> float | None:
        """When a peer that sends nothing is given up."""
        return self._heard_s + limits.MODEL_STALL_S if self.state in (_S.ASKED, _S.RECEIVING) else None

    def handle(self, event: object, now_s: float) -> CopierCommands:
        """The commands that follow from one event. Raises OutOfOrder for a frame that breaks the rules."""
        if isinstance(event, Ask) and self.state is _S.IDLE:
            self.state, self._heard_s = _S.ASKED, now_s
            return (Send(self._request),)
        if self.state is _S.IDLE or isinstance(event, Ask):
            raise LocalProtocolError(f"{type(event).__name__} in state {self.state.name}")
        if self.state is _S.OVER:
            return ()
        match event:
            case Received(frame):
                self._heard_s = now_s
                return self._receive(frame)
            case GiveUp():
                return (ResetChannel(), self._over("given_up"))
            case PeerFinished():
                return (ResetChannel(), self._over("closed"))
            case ChannelBroken():
                return (self._over("lost"),)
            case Tick():
                is_silent = now_s >= self._heard_s + limits.MODEL_STALL_S
                return (ResetChannel(), self._over("silent")) if is_silent else ()
        raise LocalProtocolError(f"{type(event).__name__} is no event of this machine")

    def _receive(self, frame: msgspec.Struct) -> CopierCommands:
        request_id = self._request.request_id
        match frame:
            case ModelOffer() if self.state is _S.ASKED and frame.request_id == request_id:
                if frame.model_digest == self._request.model_digest and frame.size_bytes >= self._reached:
                    self.state, self._size = _S.RECEIVING, frame.size_bytes
                    return (Offered(frame),)
            case ModelChunk() if self.state is _S.RECEIVING and frame.request_id == request_id:
                end = frame.offset + len(frame.data)
                if frame.offset == self._reached and end <= self._size:
                    self._reached = end
                    return (Store(frame.offset, frame.data),)
            case ModelEnd() if self.state is _S.RECEIVING and frame.request_id == request_id:
                if frame.size_bytes == self._size == self._reached:
                    return (FinishSending(), self._over("complete"))
            case ModelRefused() if frame.request_id == request_id:
                return (FinishSending(), self._over("refused", frame.code))
        self.state = _S.OVER
        raise OutOfOrder(f"{type(frame).__name__} does not belong here")

    def _over(self, reason: CopyReason, code: ModelRefusalCode | None = None) -> CopyOver:
        self.state = _S.OVER
        return CopyOver(reason, self._reached, code)


class GiverMachine:
    """Gives one file. Events: Offer, Give, Refuse, Received, PeerFinished, ChannelBroken, Tick."""

    def __init__(self) -> None:
        self.state = _S.LISTENING
        self._request: ModelRequest | None = None
        self._sent = 0
        self._size = 0

    @property
    def due_s(self) -> float | None:
        """Time changes nothing here; the driver bounds each write."""
        return None

    @property
    def left_bytes(self) -> int:
        """How much of the file is still to be given."""
        return self._size - self._sent

    def handle(self, event: object, now_s: float) -> GiverCommands:
        """The commands that follow from one event; now_s is not used. Raises OutOfOrder for a frame that breaks the
        rules.
        """
        match event:
            case Received(ModelRequest() as request) if self.state is _S.LISTENING:
                self.state, self._request, self._sent = _S.DECIDING, request, request.offset
                return (Decide(request),)
            case Received(frame):
                self.state = _S.OVER
                raise OutOfOrder(f"{type(frame).__name__} does not belong here")
            case PeerFinished() | ChannelBroken():
                was_wanted = self.state in (_S.DECIDING, _S.GIVING)
                self.state = _S.OVER
                return (StopGiving(),) if was_wanted else ()
            case Tick():
                return ()
            case Offer() | Give() | Refuse() if self._request is not None:
                return self._work(event, self._request) if self.state is not _S.OVER else ()
        raise LocalProtocolError(f"{type(event).__name__} in state {self.state.name}")

    def _work(self, event: Offer | Give | Refuse, request: ModelRequest) -> GiverCommands:
        request_id = request.request_id
        match event:
            case Refuse(code):
                self.state = _S.OVER
                return (Send(ModelRefused(request_id, code)), FinishSending())
            case Offer(size_bytes, name, licence) if self.state is _S.DECIDING:
                if request.offset > size_bytes:
                    raise LocalProtocolError("a request beyond the file's end is refused, not offered")
                self.state, self._size = _S.GIVING, size_bytes
                offer = ModelOffer(request_id, request.model_digest, size_bytes, name, licence)
                return (Send(offer), *self._end(request_id))
            case Give(data) if self.state is _S.GIVING and 0 < len(data) <= self.left_bytes:
                chunk = ModelChunk(request_id, self._sent, data)
                self._sent += len(data)
                return (Send(chunk), *self._end(request_id))
        raise LocalProtocolError(f"{type(event).__name__} in state {self.state.name}")

    def _end(self, request_id: bytes) -> GiverCommands:
        if self.left_bytes:
            return ()
        self.state = _S.OVER
        return (Send(ModelEnd(request_id, self._size)), FinishSending())
