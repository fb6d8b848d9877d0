"""The side of /kith/infer/1 that asks: checks every frame, and calls nothing a success but a verified End.

                 Begin              Accepted                 TokenFrame, ToolCallFrame, Progress, Usage
    IDLE ----------------> WAITING ----------> STREAMING ----+
                            |  |  |             |  |  |  ^---+
                            |  |  | Refused     |  |  |
                            |  |  +-> DECLINED  |  |  +-- End ----------------------------> COMPLETED
                            |  |                |  |
                            |  +----------------+--|-- ErrorFrame, stream closed or lost,
                            |                      |   no movement, deadline -------------> BROKEN (resumable)
                            |                      |
                            +--- CancelWanted -----+-> CANCELLING -- End, ErrorFrame, Refused,
                                                        closed, lost, 3 s gone -----------> CANCELLED
    Any frame that breaks the rules raises and leads to FAILED.

While CANCELLING, output is still checked but no longer delivered, and nothing that is told buys time. Must not know the
transport, the router, or how text is shown.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import msgspec

from protocol import limits
from protocol.digest import RunningDigest
from protocol.errors import LocalProtocolError, OutOfOrder
from protocol.fields import Frame
from protocol.frames.inference import (
    Accepted,
    Cancel,
    End,
    ErrorCode,
    ErrorFrame,
    FinishReason,
    InferRequest,
    Progress,
    RefusalCode,
    Refused,
    TokenFrame,
    ToolCallFrame,
    Usage,
)
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick
from protocol.stall import Movement, StallReason

__all__ = [
    "Admitted", "Begin", "BreakReason", "BrokeOff", "CancelWanted", "Cancelled", "Completed", "Declined", "Progressed",
    "RequesterMachine",
    "RequesterState", "ResumePoint", "TextArrived", "ToolCallArrived",
]

BreakReason = StallReason | Literal["deadline", "closed", "lost", "error"]


class RequesterState(enum.Enum):
    """See the drawing above."""

    IDLE = enum.auto()
    WAITING = enum.auto()
    STREAMING = enum.auto()
    CANCELLING = enum.auto()
    COMPLETED = enum.auto()
    DECLINED = enum.auto()
    BROKEN = enum.auto()
    CANCELLED = enum.auto()
    FAILED = enum.auto()


@dataclass(frozen=True, slots=True)
class Begin:
    """Event: the stream is open; send the request."""


@dataclass(frozen=True, slots=True)
class CancelWanted:
    """Event: the answer is no longer wanted."""


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where another provider can go on: exactly the text already delivered (text so far included)."""

    text: str
    cursor: int
    token_ids: tuple[int, ...]
    tokens_left: int
    thought: str = ""
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Admitted:
    """Command: tell that this model was chosen, and the place in its queue."""

    model_digest: str
    queue_position: int


@dataclass(frozen=True, slots=True)
class Progressed:
    """Command: tell how far the provider is."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class TextArrived:
    """Command: deliver new text, checked and in order."""

    text: str
    tokens: int
    token_ids: tuple[int, ...]
    thought: str = ""


@dataclass(frozen=True, slots=True)
class ToolCallArrived:
    """Command: deliver a proposed tool call. Nothing about it is trusted but its order."""

    name: str
    arguments_json: str
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class Completed:
    """Command: the answer is whole and verified. The last one."""

    finish_reason: FinishReason
    token_count: int
    model_digest: str
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class Declined:
    """Command: the provider will not serve this. The last one."""

    code: RefusalCode
    limit: int | None
    resets_in_s: int | None = None


@dataclass(frozen=True, slots=True)
class BrokeOff:
    """Command: the answer stopped short; go on elsewhere from `resume`. The last one."""

    reason: BreakReason
    code: ErrorCode | None
    resume: ResumePoint
    limit: int | None = None
    resets_in_s: int | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Command: the cancellation is through. The last one."""


RequesterCommand: TypeAlias = (
    Send | FinishSending | ResetChannel | Admitted | Progressed | TextArrived | ToolCallArrived | Completed | Declined
    | BrokeOff | Cancelled
)
Commands: TypeAlias = tuple[RequesterCommand, ...]

_S = RequesterState
_ALLOWED: Final[Mapping[RequesterState, frozenset[type[Frame]]]] = {
    _S.WAITING: frozenset({Accepted, Refused, ErrorFrame}),
    _S.STREAMING: frozenset({Progress, TokenFrame, ToolCallFrame, Usage, End, ErrorFrame}),
    _S.CANCELLING: frozenset({Accepted, Refused, Progress, TokenFrame, ToolCallFrame, Usage, End, ErrorFrame}),
}
_LIVE: Final = frozenset(_ALLOWED)


class RequesterMachine:
    """One request over one stream. Events: Begin, CancelWanted, Received, PeerFinished, ChannelBroken, Tick."""

    def __init__(self, request: InferRequest) -> None:
        self.state = _S.IDLE
        self._request = request
        self._digest = RunningDigest(request.text_so_far)
        self._texts = [request.text_so_far]
        self._thoughts = [request.thought_so_far]
        self._thought_bytes = len(request.thought_so_far.encode())
        self._token_ids: list[int] | None = list(request.token_ids_so_far)
        if (request.text_so_far or request.thought_so_far) and not request.token_ids_so_far:
            self._token_ids = None  # ids of only a part of the text would be worse than none
        self._next_seq = request.resume_cursor
        self._token_count = 0
        self._tool_calls = request.calls_so_far
        self._model_digest: str | None = None
        self._usage: Usage | None = None
        self._started_s = self._cancelled_s = 0.0
        self._movement = Movement()

    @property
    def due_s(self) -> float | None:
        """When a Tick is due: the end of the allowed standstill, of the whole request, or of the time that a Cancel
        may take.
        """
        return min(self._movement.due_s, self._end_s) if self.state in _LIVE else None

    @property
    def _end_s(self) -> float:
        """When it is over whatever moves."""
        if self.state is _S.CANCELLING:
            return self._cancelled_s + limits.STALL_S
        return self._started_s + self._request.deadline_s

    @property
    def resume_point(self) -> ResumePoint:
        """The delivered text and where another provider would go on."""
        return ResumePoint(
            text="".join(self._texts),
            cursor=self._next_seq,
            token_ids=tuple(self._token_ids or ()),
            tokens_left=self._request.max_tokens - self._token_count,
            thought="".join(self._thoughts),
            calls=self._tool_calls,
        )

    def handle(self, event: object, now_s: float) -> Commands:
        """The commands that follow from one event. Raises OutOfOrder for a frame that breaks the rules."""
        if isinstance(event, Begin) and self.state is _S.IDLE:
            self.state, self._started_s = _S.WAITING, now_s
            self._movement.begun(now_s)
            return (Send(self._request),)
        if self.state is _S.IDLE or isinstance(event, Begin):
            raise LocalProtocolError(f"{type(event).__name__} in state {self.state.name}")
        if self.state is _S.FAILED:
            raise LocalProtocolError("the machine already failed")
        if self.state not in _LIVE:
            return ()  # the outcome is told; what trickles in behind it changes nothing
        match event:
            case Received(frame):
                # a peer that never falls silent leaves the driver no Tick: the end comes by itself
                return self._receive(frame, now_s) if now_s < self._end_s else self._tick(now_s)
            case CancelWanted():
                if self.state is _S.CANCELLING:
                    return ()
                self.state, self._cancelled_s = _S.CANCELLING, now_s
                return (Send(Cancel(self._request.request_id)),)
            case PeerFinished():
                return self._break_off("closed")
            case ChannelBroken():
                return self._break_off("lost")
            case Tick():
                return self._tick(now_s)
        raise LocalProtocolError(f"{type(event).__name__} is no event of this machine")

    def _receive(self, frame: msgspec.Struct, now_s: float) -> Commands:
        try:
            commands = self._accept(frame)
        except OutOfOrder:
            self.state = _S.FAILED
            raise
        match frame:
            case Progress():
                self._movement.beat(frame, now_s)
            case Accepted(queue_position=position):
                self._movement.begun(now_s, position)
            case _:
                self._movement.wrote(now_s, self._token_count)
        return commands

    def _accept(self, frame: msgspec.Struct) -> Commands:
        if type(frame) not in _ALLOWED[self.state]:
            raise OutOfOrder(f"{type(frame).__name__} in state {self.state.name}")
        if getattr(frame, "request_id", None) != self._request.request_id:
            raise OutOfOrder("a frame of another request")
        match frame:
            case Accepted():
                return self._admit(frame)
            case TokenFrame():
                return self._take_text(frame)
            case ToolCallFrame():
                return self._take_call(frame)
            case Usage():
                if self._usage is not None:
                    raise OutOfOrder("usage was told twice")
                self._usage = frame
                return ()
            case Progress():
                return self._unless_cancelling(Progressed(frame))
            case Refused():
                return self._finish(_S.DECLINED, Declined(frame.code, frame.limit, frame.resets_in_s))
            case End():
                return self._end(frame)
            case ErrorFrame():
                return self._break_off("error", frame)
        raise AssertionError("the table allows no other frame")  # pragma: no cover

    def _admit(self, frame: Accepted) -> Commands:
        if self._model_digest is not None:
            raise OutOfOrder("accepted twice")
        if self._request.model_digest not in (None, frame.model_digest):
            raise OutOfOrder("another model than the one that was asked for")
        self._model_digest = frame.model_digest
        if self.state is _S.WAITING:
            self.state = _S.STREAMING
        return self._unless_cancelling(Admitted(frame.model_digest, frame.queue_position))

    def _take_text(self, frame: TokenFrame) -> Commands:
        self._check_output(frame.seq)
        self._digest.add(frame.text)
        token_count = self._token_count + frame.tokens
        thought_bytes = self._thought_bytes + len(frame.thought.encode())
        if self._digest.value() != frame.digest:
            raise OutOfOrder("the text's digest is wrong")
        if token_count > self._request.max_tokens \
                or max(self._digest.size_bytes, thought_bytes) > limits.MAX_TEXT_BYTES:
            raise OutOfOrder("more output than was asked for")
        # only now: a frame that is refused leaves the resume point where it was
        self._next_seq, self._token_count, self._thought_bytes = frame.seq + 1, token_count, thought_bytes
        if self.state is _S.CANCELLING:
            return ()
        self._texts.append(frame.text)
        self._thoughts.append(frame.thought)
        if self._token_ids is not None and len(frame.token_ids) == frame.tokens:
            self._token_ids.extend(frame.token_ids)
        else:
            self._token_ids = None
        return (TextArrived(frame.text, frame.tokens, frame.token_ids, frame.thought),)

    def _take_call(self, frame: ToolCallFrame) -> Commands:
        self._check_output(frame.seq)
        if not self._request.tools or self._tool_calls >= limits.MAX_TOOL_CALLS:
            raise OutOfOrder("a tool call that was not offered")
        self._next_seq, self._tool_calls = frame.seq + 1, self._tool_calls + 1
        return self._unless_cancelling(ToolCallArrived(frame.name, frame.arguments_json, frame.repaired))

    def _check_output(self, seq: int) -> None:
        if self._model_digest is None:
            raise OutOfOrder("output before the request was accepted")
        if seq != self._next_seq:
            raise OutOfOrder(f"output {seq} where {self._next_seq} was due")

    def _end(self, frame: End) -> Commands:
        if self.state is not _S.CANCELLING and frame.finish_reason == "cancelled":
            raise OutOfOrder("cancelled without being asked to")
        if frame.model_digest != self._model_digest:
            raise OutOfOrder("the end names another model")
        if frame.token_count != self._token_count or frame.digest != self._digest.value():
            raise OutOfOrder("the end does not match what came")
        return self._finish(
            _S.COMPLETED, Completed(frame.finish_reason, frame.token_count, frame.model_digest, self._usage)
        )

    def _tick(self, now_s: float) -> Commands:
        if now_s >= self._end_s:
            told = () if self.state is _S.CANCELLING else (Send(Cancel(self._request.request_id)),)
            return (*told, *self._break_off("deadline"))
        reason = self._movement.verdict(now_s)
        return () if reason is None else self._break_off(reason)

    def _break_off(self, reason: BreakReason, frame: ErrorFrame | None = None) -> Commands:
        said = (None, None, None) if frame is None else (frame.code, frame.limit, frame.resets_in_s)
        code, limit, resets_in_s = said
        outcome = self._finish(_S.BROKEN, BrokeOff(reason, code, self.resume_point, limit, resets_in_s))
        # after an ErrorFrame the provider has ended the stream itself; otherwise nothing it still sends is wanted
        return outcome if reason == "error" else (ResetChannel(), *outcome[1:])

    def _finish(self, state: RequesterState, outcome: Completed | Declined | BrokeOff) -> Commands:
        if self.state is _S.CANCELLING:
            self.state = _S.CANCELLED
            return (FinishSending(), Cancelled())
        self.state = state
        return (FinishSending(), outcome)

    def _unless_cancelling(self, command: RequesterCommand) -> Commands:
        return () if self.state is _S.CANCELLING else (command,)
