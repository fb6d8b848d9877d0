"""Runs one job at a peer: drives the requester's machine over a framed channel and tells plainly how it ended.

A cancelled caller sends Cancel before it drops the stream, so that the provider stops within one decode. Must not
know how the
channel came about, what the guard replaced, or what happens after a break: the caller goes on from the resume point.
"""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import trio

from offload.errors import OffloadError
from offload.refusals import break_in_words, refusal_in_words
from protocol.channel import Clearance, FrameChannel
from protocol.errors import ChannelClosed, ChannelError, ChannelLost, DeadlinePassed, RemoteProtocolError
from protocol.fields import Frame
from protocol.inference import (
    Admitted,
    Begin,
    BrokeOff,
    Cancelled,
    CancelWanted,
    Completed,
    Declined,
    InferRequest,
    Progressed,
    RequesterMachine,
    ResumePoint,
    TextArrived,
    ToolCallArrived,
)
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, ResetChannel, Send, Tick

__all__ = ["AnswerBroken", "AnswerRefused", "RemoteAnswer", "RemoteError", "ThoughtArrived", "ask_peer"]

CANCEL_GRACE_S = 1.0
SMALLEST_WAIT_S = 0.05  # frames that wait in the buffer are read before silence is judged


class RemoteError(OffloadError):
    """The peer did not give the whole answer."""

    code = "remote"
    hint = "See which peers answer: kith status"


class AnswerRefused(RemoteError):
    """The peer will not compute this. `code` is the wire's refusal, `limit` the number it names, where there is one."""

    def __init__(self, code: str, limit: int | None, resets_in_s: int | None = None) -> None:
        super().__init__(refusal_in_words(code, limit, resets_in_s))
        self.code = code
        self.limit = limit
        self.resets_in_s = resets_in_s


class AnswerBroken(RemoteError):
    """The answer stopped in the middle. `resume` says how far it came; nothing of it is lost."""

    def __init__(self, reason: str, resume: ResumePoint) -> None:
        super().__init__(f"the answer broke off: {break_in_words(reason)}")
        self.code = "broken"
        self.reason = reason
        self.resume = resume


@dataclass(frozen=True, slots=True)
class ThoughtArrived:
    """What the peer's model thought; no part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class RemoteAnswer:
    """A whole, verified answer."""

    text: str
    finish_reason: str
    token_count: int
    model_digest: str
    prompt_tokens: int
    cached_tokens: int
    calls: tuple[ToolCallArrived, ...] = ()


Outcome = Completed | Declined | BrokeOff | Cancelled


async def ask_peer(
    channel: FrameChannel,
    request: InferRequest,
    clearance: Clearance,
    on_text: Callable[[str], Awaitable[bool]],
    on_state: Callable[[Admitted | Progressed], Awaitable[None]] | None = None,
    on_aside: Callable[[ToolCallArrived | ThoughtArrived], Awaitable[None]] | None = None,
    on_output: Callable[[TextArrived], Awaitable[bool]] | None = None,
) -> RemoteAnswer:
    """The answer, after all its text went through on_text (which returns False when enough was said), and all its calls
    and thoughts, in order with the text, through on_aside. A call is the peer's words: check it before anything is run.

    on_output gets, instead of on_text, each output whole, with its token ids and also where it shows nothing yet.

    Raises AnswerRefused, AnswerBroken (reset, crash, silence of 3 s, deadline, a frame that breaks the rules), or
    whatever the guard raises before the request leaves.
    """
    run = _Run(channel, request, clearance, on_text, on_state, on_aside, on_output)
    try:
        outcome = await run.to_the_end()
    except trio.Cancelled:
        await run.abandon()
        raise
    except RemoteProtocolError as error:
        await channel.reset()
        raise AnswerBroken(f"it broke the protocol ({error.code})", run.resume) from error
    except BaseException:   # whoever took the answer failed: nobody reads on, so nobody is to compute on
        with trio.CancelScope(shield=True):
            await channel.reset()
        raise
    match outcome:
        case Completed(finish_reason, token_count, model_digest, usage):
            text = run.resume.text
            prompt, cached = (usage.prompt_tokens, usage.cached_tokens) if usage else (0, 0)
            return RemoteAnswer(text, finish_reason, token_count, model_digest, prompt, cached, tuple(run.calls))
        case Cancelled():
            return RemoteAnswer(run.resume.text, "stopped", 0, "", 0, 0)
        case Declined(code, limit, resets_in_s):
            raise AnswerRefused(code, limit, resets_in_s)
        case BrokeOff(reason, code, resume):
            raise AnswerBroken(code or reason, resume)


class _Run:
    """One request on one channel."""

    def __init__(
        self,
        channel: FrameChannel,
        request: InferRequest,
        clearance: Clearance,
        on_text: Callable[[str], Awaitable[bool]],
        on_state: Callable[[Admitted | Progressed], Awaitable[None]] | None,
        on_aside: Callable[[ToolCallArrived | ThoughtArrived], Awaitable[None]] | None,
        on_output: Callable[[TextArrived], Awaitable[bool]] | None,
    ) -> None:
        self._channel = channel
        self._machine = RequesterMachine(request)
        self._request_id = request.request_id
        self._clearance = clearance
        self._on_text = on_text
        self._on_state = on_state
        self._on_aside = on_aside
        self._on_output = on_output
        self.calls: list[ToolCallArrived] = []
        self._outcome: Outcome | None = None

    @property
    def resume(self) -> ResumePoint:
        """How far the text came."""
        return self._machine.resume_point

    async def to_the_end(self) -> Outcome:
        """Drive the machine until it tells an outcome."""
        await self._feed(Begin())
        while self._outcome is None:
            await self._feed(await self._next_event())
        return self._outcome

    async def abandon(self) -> None:
        """Tell the provider to stop, then drop the stream; bounded, and safe in a cancelled task."""
        with trio.move_on_after(CANCEL_GRACE_S, shield=True):
            with contextlib.suppress(ChannelError):  # a stream that is gone stops the provider as well
                await self._carry_out(self._machine.handle(CancelWanted(), trio.current_time()))
        with trio.CancelScope(shield=True):
            await self._channel.reset()

    async def _next_event(self) -> object:
        due_s = self._machine.due_s
        wait_s = SMALLEST_WAIT_S if due_s is None else max(due_s - trio.current_time(), SMALLEST_WAIT_S)
        try:
            frame = await self._channel.receive(deadline_s=wait_s)
        except DeadlinePassed:
            return Tick()
        except ChannelClosed:
            return PeerFinished()
        except ChannelLost:
            return ChannelBroken()
        assert isinstance(frame, Frame)
        return Received(frame)

    async def _feed(self, event: object) -> None:
        await self._carry_out(self._machine.handle(event, trio.current_time()))

    async def _carry_out(self, commands: Sequence[object]) -> None:
        for command in commands:
            match command:
                case Send(InferRequest() as request):
                    await self._channel.send_cleared(request, self._clearance)
                case Send(frame):
                    await self._send(frame)
                case FinishSending():
                    await self._finish()
                case ResetChannel():
                    await self._channel.reset()
                case ToolCallArrived() as call:
                    self.calls.append(call)
                    if self._on_aside is not None:
                        await self._on_aside(call)
                case TextArrived(text=text, thought=thought):
                    if thought and self._on_aside is not None:
                        await self._on_aside(ThoughtArrived(thought))
                    if self._on_output is not None:
                        go_on = await self._on_output(command)
                    else:
                        go_on = not text or await self._on_text(text)
                    if not go_on:
                        await self._feed(CancelWanted())
                case Admitted() | Progressed():
                    if self._on_state is not None:
                        await self._on_state(command)
                case Completed() | Declined() | BrokeOff() | Cancelled():
                    self._outcome = command

    async def _send(self, frame: Frame) -> None:
        try:
            await self._channel.send(frame)
        except ChannelError:
            await self._feed(ChannelBroken())

    async def _finish(self) -> None:
        with contextlib.suppress(ChannelError):  # the peer left first; the machine has told its outcome already
            await self._channel.finish()
