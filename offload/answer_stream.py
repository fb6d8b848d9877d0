"""One answer as its reader sees it: events in order, and the same answer going on after its worker died.

Driven by the reader alone, no task of its own. Must not know which models there are, processes or peers.
"""

from collections.abc import Awaitable, Callable

import msgspec
import trio

from offload.child.process import Death
from offload.errors import EngineError, EngineStopped, WorkerDied
from offload.model_host import Job, ModelHost
from offload.ports import Event, Failed, Finished, GenerateRequest, Piece, Queued, Resumed, Started, ToolCall, Usage

__all__ = ["AnswerStream"]

_MOST_DEATHS = 2    # an answer that kills its worker twice would do so for ever


class AnswerStream:
    """An async iterator over the events of one request. Always close it: that cancels what is left."""

    def __init__(self, request: GenerateRequest, find_host: Callable[[GenerateRequest], Awaitable[ModelHost]]) -> None:
        self._request = request
        self._find_host = find_host
        self._host: ModelHost | None = None
        self._job: Job | None = None
        self._over = False
        self._deaths = 0
        self._started: Started | None = None
        self._text: list[str] = []
        self._thought: list[str] = []
        self._calls = 0
        self._tokens: list[int] = []

    def __aiter__(self) -> "AnswerStream":
        return self

    async def __anext__(self) -> Event:
        """The next event; the last one is Finished or Failed."""
        if self._over:
            raise StopAsyncIteration
        try:
            event = await self._next()
        except EngineError as error:
            event = Failed(error.code, str(error), error.hint)
        if isinstance(event, Finished | Failed):
            self._over = True
        return event

    async def aclose(self) -> None:
        """Cancel what is left; the worker decodes no further for it."""
        self._over = True
        job, self._job = self._job, None
        if job is not None and self._host is not None:
            await self._host.cancel(job)

    async def _next(self) -> Event:
        while True:
            if self._host is None:
                self._host = await self._find_host(self._request)
            if self._job is None:
                self._job = await self._host.submit(self._rest())
            try:
                event = await self._job.inbox.receive()
            except trio.EndOfChannel:
                raise (self._job.broken or EngineStopped()) from None
            if isinstance(event, Death):
                self._job = None
                self._deaths += 1
                if self._deaths >= _MOST_DEATHS:
                    raise WorkerDied(f"The worker process ended {self._deaths} times in this answer ({event.reason}).")
                if self._calls and not self._request.parallel_calls:
                    return self._completed(Finished("tool_calls", Usage(0, 0, 0)))
                if self._request.max_tokens <= len(self._tokens):
                    return self._completed(Finished("length", Usage(0, 0, 0)))
                if self._started is not None:
                    return Resumed(f"The worker process ended ({event.reason}); the answer goes on after a restart.")
                continue
            if self._deaths and self._started is not None and isinstance(event, Queued | Started):
                continue        # said before
            return self._noted(event)

    def _noted(self, event: Event) -> Event:
        match event:
            case Started():
                self._started = event
            case Piece(text=text, token_ids=ids, thought=thought):
                self._text.append(text)
                self._thought.append(thought)
                self._tokens += ids
            case ToolCall():
                self._calls += 1
            case Finished():
                return self._completed(event)
            case _:
                pass
        return event

    def _rest(self) -> GenerateRequest:
        """What is still wanted: all of it, or what follows the text so far."""
        asked = self._request
        if not self._tokens:
            return asked
        ids_known = bool(asked.token_ids_so_far) or not (asked.text_so_far or asked.thought_so_far)
        return msgspec.structs.replace(
            asked, text_so_far=asked.text_so_far + "".join(self._text), max_tokens=asked.max_tokens - len(self._tokens),
            thought_so_far=asked.thought_so_far + "".join(self._thought),
            calls_so_far=asked.calls_so_far + self._calls if ids_known else 0,
            token_ids_so_far=(*asked.token_ids_so_far, *self._tokens) if ids_known else ())

    def _completed(self, event: Finished) -> Finished:
        """The last event, with the counts of the whole answer and not only of what came after a restart."""
        usage = event.usage
        if self._started is not None:
            usage = Usage(self._started.prompt_tokens, self._started.cached_tokens, len(self._tokens))
        digest = self._host.model.digest if self._host is not None else ""
        return Finished(event.finish_reason, usage, digest)
