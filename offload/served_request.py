"""One request of a peer, answered: checks the grant for it and for each piece, drives the provider's machine, accounts
for tokens.

A requester that cancels, resets or dies stops the engine within one decode. Error frames carry codes, never texts or
paths of this machine. Must not know other requests, or how a grant was issued.
"""

import logging
from collections.abc import Callable

import trio

from offload.claim import Claim, GrantBook, Hindrance, Refusal, why_refused
from offload.peer_request import engine_request, estimate_tokens, forecast_s, in_words, is_sendable, outputs
from offload.ports import (
    Engine,
    Event,
    Failed,
    Finished,
    ModelInfo,
    Piece,
    Queued,
    Reading,
    Resumed,
    Started,
    ToolCall,
)
from offload.quota import QuotaBook
from protocol import limits
from protocol.channel import FrameChannel
from protocol.errors import ChannelClosed, ChannelError, DeadlinePassed, RemoteProtocolError
from protocol.fields import Frame
from protocol.grants import Grant, permits
from protocol.inference import (
    Admit,
    BreakOff,
    Conclude,
    Decline,
    ErrorCode,
    InferRequest,
    Output,
    ProgressState,
    ProposeCall,
    ProviderMachine,
    ProviderState,
    RefusalCode,
    Report,
    Serve,
    Spent,
    StopWork,
)
from protocol.machine import ChannelBroken, FinishSending, PeerFinished, Received, Send, Tick

__all__ = ["ServedRequest"]

log = logging.getLogger(__name__)

REQUEST_WAIT_S = 10.0
FIRST_EVENT_WAIT_S = 1.0  # the requester gives up after 3 s of silence, and a cold model takes longer to load
REFUSALS: dict[str, RefusalCode] = {
    "no_model": "model_absent",
    "model_unknown": "model_absent",
    "model_changed": "model_absent",
    "prompt_too_long": "context_too_long",
    "lane_unsupported": "lane_unsupported",
    "busy": "busy",
    "bad_prompt": "bad_request",
    "bad_request": "bad_request",
    "bad_grammar": "bad_request",
    "bad_tools": "tools_unsupported",
    "engine_stopped": "shutting_down",
}
WHILE_DECIDING: dict[str, RefusalCode] = {
    "revoked": "not_granted", "narrowed": "not_granted", "shutting_down": "shutting_down",
    "grant_expired": "grant_expired", "outside_hours": "outside_hours",
}
LAST_WORD_S = 0.3
FAILURES: dict[str, ErrorCode] = {"engine_stopped": "shutting_down", "worker_stalled": "engine_failed"}


class ServedRequest:
    """From the frame that asks to the last word. n: its place in the order of coming. closing: what has not begun is
    refused from now on. over: set by the server once nothing of it is left."""

    def __init__(
        self, channel: FrameChannel, engine: Engine, grants: GrantBook, quota: QuotaBook,
        on_refusal: Callable[[str, str, int | None], None], *, n: int, closing: bool,
    ) -> None:
        """on_refusal(peer_id, code, limit): it was refused or broken off."""
        self.peer_id = channel.peer_id
        self.closing = closing
        self.n = n
        self.over = trio.Event()
        self._peer_left = trio.Event()
        self._channel = channel
        self._engine = engine
        self._grants = grants
        self._quota = quota
        self._on_refusal = on_refusal
        self._machine = ProviderMachine()
        self._lock = trio.Lock()
        self._work = trio.CancelScope()
        self._last_word: Conclude | BreakOff | Decline = Conclude("cancelled")
        self._served: InferRequest | None = None
        self._admitted = False
        self._claim: Claim | None = None
        self._prompt_done = 0
        self._tells_ids = self._proposed = False

    async def run(self) -> None:
        """Read the request and answer it. Raises ChannelError or RemoteProtocolError (in a group once it has begun) for
        what the peer does."""
        frame = await self._channel.receive(deadline_s=REQUEST_WAIT_S)
        assert isinstance(frame, Frame)
        await self._feed(Received(frame))
        request = self._served
        if request is None:
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._listen, request.deadline_s)
            nursery.start_soon(self._beat)
            with self._work:
                await self._decide(request)
            if self._work.cancelled_caught:
                await self._feed(self._last_word)
                if not isinstance(self._last_word, Conclude):
                    with trio.move_on_after(LAST_WORD_S):  # whoever cut this drops the connection next
                        await self._peer_left.wait()
            nursery.cancel_scope.cancel()

    @property
    def begun(self) -> bool:
        """Whether a request came on this stream."""
        return self._served is not None

    def hindrance(self) -> Hindrance | None:
        """Why the grant, as it is now, does not cover this; None also before it was looked at."""
        return None if self._claim is None else self._claim.hindrance()

    async def break_off(self, why: Hindrance) -> None:
        """Stop the engine, tell the peer why, and wait until that is done."""
        if self._served is None:
            await self._channel.reset()
        else:
            self._on_refusal(self.peer_id, why.code, why.limit)
            self._end_with(why)
        await self.over.wait()

    def _end_with(self, why: Hindrance) -> None:
        if self._admitted:
            self._last_word = BreakOff(why.code, why.limit, why.resets_in_s)
        else:
            self._last_word = Decline(WHILE_DECIDING.get(why.code, "busy"), why.limit, why.resets_in_s)
        self._work.cancel()

    async def _listen(self, deadline_s: float) -> None:
        """Hear a Cancel or the peer's end while the engine works."""
        with trio.move_on_after(deadline_s):
            while True:
                try:
                    frame = await self._channel.receive(deadline_s=deadline_s)
                except DeadlinePassed:
                    break
                except ChannelClosed:
                    self._peer_left.set()
                    return await self._feed(PeerFinished())
                except ChannelError:
                    self._peer_left.set()
                    return await self._feed(ChannelBroken())
                except RemoteProtocolError:
                    await self._channel.reset()
                    return await self._feed(ChannelBroken())
                assert isinstance(frame, Frame)
                await self._feed(Received(frame))
        await self._feed(BreakOff("deadline"))
        self._work.cancel()

    async def _beat(self) -> None:
        """Give a sign of life while no output flows."""
        while True:
            due_s = self._machine.due_s
            wait_s = limits.PROGRESS_INTERVAL_S if due_s is None else due_s - trio.current_time()
            await trio.sleep(max(wait_s, limits.PROGRESS_INTERVAL_S / 10))
            await self._feed(Tick())
            why = self.hindrance()  # also while nothing is written: in a queue, or reading a long prompt
            if why is not None and not self._work.cancel_called:
                self._on_refusal(self.peer_id, why.code, why.limit)
                self._end_with(why)

    async def _decide(self, request: InferRequest) -> None:
        peer_id = self.peer_id
        grant = self._grants.grant_for(peer_id)
        if self.closing:
            return await self._decline(Refusal("shutting_down"))
        if grant is None or "infer" not in grant.services:
            return await self._decline(why_refused(self._grants, peer_id))
        model = await self._find_model(request, grant)
        if model is None:
            return await self._decline(Refusal("model_absent"))
        claim = Claim(self._grants, self._quota, peer_id, model, estimate_tokens(request) + request.max_tokens)
        refusal = await claim.open(grant)
        if refusal is not None:
            return await self._decline(refusal)
        self._claim = claim
        try:
            await self._compute(request, grant, model, claim)
        finally:
            await claim.close()

    async def _decline(self, why: Refusal) -> None:
        self._on_refusal(self.peer_id, why.code, why.limit)
        await self._feed(Decline(why.code, why.limit, why.resets_in_s))

    async def _find_model(self, request: InferRequest, grant: Grant) -> ModelInfo | None:
        for model in await self._engine.models():
            granted = permits(grant, "infer", model_name=model.name, model_digest=model.digest)
            digest_fits = request.model_digest in (None, model.digest)
            name_fits = request.model_name in (None, model.name) or request.model_digest == model.digest
            if granted and digest_fits and name_fits and not model.broken:
                return model
        return None

    async def _compute(self, request: InferRequest, grant: Grant, model: ModelInfo, claim: Claim) -> None:
        """Turn the engine's events into the machine's, admitting at the first of them, or while a cold model loads."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._admit_while_loading, model.digest)
            async with self._engine.stream(engine_request(request, self.peer_id, model, grant)) as events:
                async for event in events:
                    if not await self._take(event, model, claim):
                        break
            nursery.cancel_scope.cancel()

    async def _admit(self, digest: str, position: int = 0) -> None:
        if not self._admitted:
            self._admitted = True
            await self._feed(Admit(digest, position))

    async def _admit_while_loading(self, digest: str) -> None:
        await trio.sleep(FIRST_EVENT_WAIT_S)
        if not self._admitted:
            await self._admit(digest)
            await self._feed(Report("loading"))

    async def _take(self, event: Event, model: ModelInfo, claim: Claim) -> bool:
        """One event of the engine; False when the answer is over."""
        if isinstance(event, Failed) and not self._admitted:
            log.warning("the engine refused a peer's request: %s", event.code)
            await self._decline(Refusal(REFUSALS.get(event.code, "busy")))
            return False
        why: Hindrance | None = None
        if isinstance(event, Started):      # before anything is sent: whoever leaves meanwhile pays for what was begun
            # an upstream engine tells the count at the end only: until then an estimate is spent
            guess = estimate_tokens(self._served) if self._served else 0
            why = await claim.read(event.prompt_tokens or guess, guessed=not event.prompt_tokens)
        await self._admit(model.digest, event.position if isinstance(event, Queued) else 0)
        match event:
            case Queued(position, expected_s):
                await self._feed(Report("queued", queue_position=position, expected_s=forecast_s(expected_s)))
            case Started(prompt_tokens):
                # where nobody sees whether the reading moves (an upstream engine) it gets a model's time to load
                await self._feed(Report("prefill" if prompt_tokens else "loading", prompt_total=prompt_tokens))
                return not await self._hindered(why)
            case Reading(prompt_done, prompt_total):
                # while others' prompts are read this one stands in a line, and a queue may stand still for longer
                waits, self._prompt_done = prompt_done <= self._prompt_done, max(prompt_done, self._prompt_done)
                state: ProgressState = "queued" if waits else "prefill"
                await self._feed(Report(state, int(waits), prompt_done, prompt_total, claim.tokens_out))
            case Piece(text, token_ids, thought):
                self._tells_ids = self._tells_ids or bool(token_ids)
                tokens = len(token_ids) if self._tells_ids else int(bool(text or thought))
                if await self._hindered(await claim.wrote(tokens, guessed=not self._tells_ids)):
                    return False
                for output in outputs(text, token_ids, thought):
                    await self._feed(output)
            case ToolCall() as call:
                await self._propose(call)
            case Resumed():
                await self._feed(Report("loading", output_tokens=claim.tokens_out))
            case Finished(finish_reason, usage):
                await claim.reconcile(usage)
                await self._feed(Spent(usage.prompt_tokens, usage.cached_tokens, usage.output_tokens))
                only_words = finish_reason == "tool_calls" and not self._proposed
                await self._feed(Conclude("stop" if only_words else finish_reason))
                return False
            case Failed(code):
                log.warning("the engine failed a peer's request: %s", code)
                await self._feed(BreakOff(FAILURES.get(code, "engine_failed")))
                return False
        return True

    async def _propose(self, call: ToolCall) -> None:
        """Pass a call on; one that fits into no frame (a made-up name, endless arguments) goes as words."""
        if is_sendable(call):
            self._proposed = True
            await self._feed(ProposeCall(call.name, call.arguments, call.repaired))
        else:
            await self._feed(Output(in_words(call), 0))

    async def _hindered(self, why: Hindrance | None) -> bool:
        """Tell the peer, and the owner, why this answer ends here, if it does."""
        if why is not None:
            self._on_refusal(self.peer_id, why.code, why.limit)
            await self._feed(BreakOff(why.code, why.limit, why.resets_in_s))
        return why is not None

    async def _feed(self, event: object) -> None:
        async with self._lock:
            if self._machine.state is ProviderState.FAILED:
                return  # the peer broke the rules while this waited for its turn; whoever heard it ends the session
            for command in self._machine.handle(event, trio.current_time()):
                match command:
                    case Serve(request):
                        self._served = request
                    case StopWork():
                        self._work.cancel()
                    case Send(frame):
                        # the machine has counted the frame: a cancellation that lost it would make a gap, and the
                        # last word after it would read as a broken connection
                        with trio.CancelScope(shield=True):
                            await self._channel.send(frame)
                    case FinishSending():
                        await self._channel.finish()
