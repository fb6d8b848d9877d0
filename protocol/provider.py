"""The side of /kith/infer/1 that computes: one request per stream, output in order, a sign of life each second.

               InferRequest             Admit              Output, ProposeCall, Report, Spent
    LISTENING -------------> DECIDING ----------> SERVING ---+
        |                    |  |  |              | | |  ^---+
        |                    |  |  | Decline      | | +-- Conclude, BreakOff ------------> ENDED
        |                    |  |  +--------------|-|------------------------------------> ENDED
        |                    |  |                 | |
        |                    |  +-- Cancel -------+-|-- Cancel, text too long --> STOPPING
        |                    |                      |                               | Conclude, BreakOff, Decline
        |                    |                      |                               +----> ENDED
        +--------------------+----------------------+-- stream closed or lost -----------> ENDED
    Any frame that breaks the rules raises and leads to FAILED.

A requester that ends its side is gone: on this transport a crash looks just like it, so it must stay open until the
End. While STOPPING, output is swallowed. Must not know grants, engines or the transport: the driver decides and
computes.
"""

import enum
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
    ProgressState,
    RefusalCode,
    Refused,
    TokenFrame,
    ToolCallFrame,
    Usage,
)
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, Send, Tick

__all__ = [
    "Admit", "BreakOff", "Conclude", "Decline", "Output", "ProposeCall", "ProviderMachine", "ProviderState", "Report",
    "Serve", "Spent",
    "StopReason", "StopWork",
]

StopReason = Literal["cancelled", "gone", "too_long"]


class ProviderState(enum.Enum):
    """See the drawing above."""

    LISTENING = enum.auto()
    DECIDING = enum.auto()
    SERVING = enum.auto()
    STOPPING = enum.auto()
    ENDED = enum.auto()
    FAILED = enum.auto()


@dataclass(frozen=True, slots=True)
class Admit:
    """Event: the request is within its grant and will be computed by this model; 0 = at once."""

    model_digest: str
    queue_position: int


@dataclass(frozen=True, slots=True)
class Decline:
    """Event: the request is not served."""

    code: RefusalCode
    limit: int | None = None
    resets_in_s: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Event: how far the work is; sent at once, and repeated each second while no output flows."""

    state: ProgressState
    queue_position: int = 0
    prompt_done: int = 0
    prompt_total: int = 0
    output_tokens: int = 0
    expected_s: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """Event: new text, new thought and the tokens they stand for; any may be empty, not all."""

    text: str
    tokens: int
    token_ids: tuple[int, ...] = ()
    thought: str = ""


@dataclass(frozen=True, slots=True)
class ProposeCall:
    """Event: the model wrote a tool call."""

    name: str
    arguments_json: str
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class Spent:
    """Event: what the answer cost; before Conclude."""

    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Conclude:
    """Event: the answer is whole. After a StopWork the reason of that stop is told instead."""

    finish_reason: FinishReason


@dataclass(frozen=True, slots=True)
class BreakOff:
    """Event: the answer cannot be finished here."""

    code: ErrorCode
    limit: int | None = None
    resets_in_s: int | None = None


@dataclass(frozen=True, slots=True)
class Serve:
    """Command: decide about this request, then Admit or Decline it."""

    request: InferRequest


@dataclass(frozen=True, slots=True)
class StopWork:
    """Command: stop computing now. Unless the requester is gone, a Conclude, BreakOff or Decline must follow."""

    reason: StopReason


ProviderCommand: TypeAlias = Send | FinishSending | Serve | StopWork
Commands: TypeAlias = tuple[ProviderCommand, ...]

_S = ProviderState
_WORKING: Final = frozenset({_S.DECIDING, _S.SERVING, _S.STOPPING})
_UNDECIDED: Final = frozenset({_S.DECIDING, _S.STOPPING})
_OUTPUT_EVENTS: Final = (Output, ProposeCall, Report, Spent)


class ProviderMachine:
    """Serves one request over one stream. Events: Received, PeerFinished, ChannelBroken, Tick and those above."""

    def __init__(self) -> None:
        self.state = _S.LISTENING
        self._request: InferRequest | None = None
        self._digest = RunningDigest()
        self._next_seq = self._token_count = self._thought_bytes = 0
        self._model_digest = ""
        self._report = Report("queued")
        self._forced_reason: FinishReason | None = None
        self._sent_s = 0.0

    @property
    def due_s(self) -> float | None:
        """When the next sign of life is due."""
        return self._sent_s + limits.PROGRESS_INTERVAL_S if self.state is _S.SERVING else None

    @property
    def request(self) -> InferRequest:
        """The request of this stream. Raises LocalProtocolError before it came."""
        if self._request is None:
            raise LocalProtocolError("no request came yet")
        return self._request

    def handle(self, event: object, now_s: float) -> Commands:
        """The commands that follow from one event. Raises OutOfOrder for a frame that breaks the rules."""
        if self.state is _S.FAILED:
            raise LocalProtocolError("the machine already failed")
        match event:
            case Received(frame):
                commands = self._receive(frame)
            case PeerFinished() | ChannelBroken():
                commands = self._gone()
            case Tick():
                commands = self._tick(now_s)
            case _:
                commands = self._work(event)
        if any(isinstance(command, Send) for command in commands):
            self._sent_s = now_s
        return commands

    def _receive(self, frame: msgspec.Struct) -> Commands:
        match frame:
            case InferRequest() if self.state is _S.LISTENING:
                self.state, self._request = _S.DECIDING, frame
                self._digest = RunningDigest(frame.text_so_far)
                self._next_seq = frame.resume_cursor
                self._thought_bytes = len(frame.thought_so_far.encode())
                return (Serve(frame),)
            case Cancel() if self._request is not None and frame.request_id == self._request.request_id:
                if self.state in (_S.STOPPING, _S.ENDED):
                    return ()  # crossed our End, or asked twice
                return self._stop("cancelled", "cancelled")
        self.state = _S.FAILED
        raise OutOfOrder(f"{type(frame).__name__} does not belong here")

    def _gone(self) -> Commands:
        was_working = self.state in (_S.DECIDING, _S.SERVING)
        self.state = _S.ENDED
        return (StopWork("gone"),) if was_working else ()

    def _stop(self, reason: StopReason, told: FinishReason) -> Commands:
        self.state, self._forced_reason = _S.STOPPING, told
        return (StopWork(reason),)

    def _tick(self, now_s: float) -> Commands:
        if self.state is not _S.SERVING or now_s < self._sent_s + limits.PROGRESS_INTERVAL_S:
            return ()
        return (Send(self._progress()),)

    def _work(self, event: object) -> Commands:
        """What the driver did. After the end it may still report a little; that is not sent."""
        known = (Admit, Decline, Conclude, BreakOff, *_OUTPUT_EVENTS)
        if not isinstance(event, known) or self.state is _S.LISTENING:
            raise LocalProtocolError(f"{type(event).__name__} in state {self.state.name}")
        if self.state is _S.ENDED:
            return ()
        request_id = self.request.request_id
        match event:
            case Admit(model_digest, queue_position) if self.state is _S.DECIDING:
                self.state, self._model_digest = _S.SERVING, model_digest
                self._report = Report("queued" if queue_position else "prefill", queue_position)
                return (Send(Accepted(request_id, model_digest, queue_position)),)
            case Decline(code, limit, resets_in_s) if self.state in _UNDECIDED and not self._model_digest:
                return self._end(Refused(request_id, code, limit, resets_in_s))
            case Admit() if self.state is _S.STOPPING:
                return ()  # a Cancel crossed the decision; the End or ErrorFrame follows
            case BreakOff(code, limit, resets_in_s):
                return self._end(ErrorFrame(request_id, code, limit, resets_in_s))
            case Conclude(finish_reason) if self.state in (_S.SERVING, _S.STOPPING):
                return self._conclude(self._forced_reason or finish_reason)
            case Output() | ProposeCall() | Report() | Spent() if self.state is _S.SERVING:
                return self._output(event)
            case Output() | ProposeCall() | Report() if self.state is _S.STOPPING:
                return ()
            case Spent() if self.state is _S.STOPPING:
                return self._output(event) if self._model_digest else ()
        raise LocalProtocolError(f"{type(event).__name__} in state {self.state.name}")

    def _conclude(self, finish_reason: FinishReason) -> Commands:
        request_id = self.request.request_id
        if not self._model_digest:  # cancelled before it was admitted: there is no model to name
            return self._end(ErrorFrame(request_id, "cancelled"))
        return self._end(End(request_id, finish_reason, self._token_count, self._digest.value(), self._model_digest))

    def _output(self, event: Output | ProposeCall | Report | Spent) -> Commands:
        request_id = self.request.request_id
        match event:
            case Report():
                self._report = event
                return (Send(self._progress()),)
            case Spent(prompt_tokens, cached_tokens, output_tokens):
                return (Send(Usage(request_id, prompt_tokens, cached_tokens, output_tokens)),)
            case ProposeCall(name, arguments_json, repaired):
                return (Send(ToolCallFrame(request_id, self._take_seq(), name, arguments_json, repaired)),)
        self._thought_bytes += len(event.thought.encode())
        if max(self._digest.size_bytes + len(event.text.encode()), self._thought_bytes) > limits.MAX_TEXT_BYTES:
            return self._stop("too_long", "length")
        self._digest.add(event.text)
        self._token_count += event.tokens
        self._report = Report("decoding", output_tokens=self._token_count)
        digest, seq = self._digest.value(), self._take_seq()
        return (Send(TokenFrame(request_id, seq, event.text, event.tokens, event.token_ids, digest, event.thought)),)

    def _take_seq(self) -> int:
        seq, self._next_seq = self._next_seq, self._next_seq + 1
        return seq

    def _end(self, frame: Frame) -> Commands:
        self.state = _S.ENDED
        return (Send(frame), FinishSending())

    def _progress(self) -> Progress:
        report = self._report
        return Progress(
            self.request.request_id, report.state, report.queue_position, report.prompt_done, report.prompt_total,
            report.output_tokens, report.expected_s,
        )
