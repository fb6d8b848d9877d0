"""One answer of an upstream engine: events read off its connection as they are asked for.

Driven by the reader alone, no task of its own. Must not know how the connection was opened.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from offload.errors import EngineError
from offload.ports import Event, Failed, Finished, OutsideClearance, Piece, Started, ToolCall, Usage
from offload.upstream_errors import UpstreamBroken
from offload.upstream_http import Exchange
from offload.upstream_sse import EventSplitter
from offload.upstream_tools import CallCollector
from offload.upstream_wire import decode_chunk, finish_word

__all__ = ["Begun", "FailedAnswer", "UpstreamAnswer"]

_CHARS_PER_TOKEN = 200      # far more than any token holds: the end of a server that never ends
_DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class Begun:
    """A request that was sent and taken."""

    model_digest: str
    exchange: Exchange
    clearance: OutsideClearance


class FailedAnswer:
    """The events of a request that never began: one."""

    def __init__(self, error: EngineError) -> None:
        self._events = [Failed(error.code, str(error), error.hint)]

    def __aiter__(self) -> "FailedAnswer":
        return self

    async def __anext__(self) -> Event:
        if not self._events:
            raise StopAsyncIteration
        return self._events.pop()


class UpstreamAnswer:
    """The events of one answer, read off the connection as they are asked for. Cached and prompt tokens are known at
    the end only, so Started says 0."""

    def __init__(
        self, most_tokens: int, begun: Begun, *, most_calls: int = 1, wrote: Callable[[], None] = lambda: None,
    ) -> None:
        """wrote: told whenever something of the answer came."""
        self._most_chars = most_tokens * _CHARS_PER_TOKEN
        self._begun = begun
        self._splitter = EventSplitter()
        self._events: deque[Event] = deque([Started(0, 0, begun.model_digest)])
        self._over = False
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._pieces = 0
        self._chars = 0
        self._calls = CallCollector(most_calls)
        self._wrote = wrote

    def __aiter__(self) -> "UpstreamAnswer":
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._over:
                raise StopAsyncIteration
            try:
                await self._read_on()
            except EngineError as error:
                self._over = True
                self._show(self._begun.clearance.restore_end())
                self._events.append(Failed(error.code, str(error), error.hint))
        return self._events.popleft()

    async def _read_on(self) -> None:
        data = await self._begun.exchange.receive()
        for event in self._splitter.feed(data):
            if event == _DONE:
                break
            self._take(event)
        else:
            if data:
                return
        self._end()

    def _take(self, data: bytes) -> None:
        chunk = decode_chunk(data)
        self._usage = chunk.usage or self._usage
        self._finish = chunk.finish or self._finish
        self._calls.take(chunk.calls)
        if not chunk.text and not chunk.thought and not chunk.calls:
            return
        self._pieces += 1
        self._wrote()
        self._chars += len(chunk.text) + len(chunk.thought) + sum(len(part.arguments) + 1 for part in chunk.calls)
        if self._chars > self._most_chars:
            raise UpstreamBroken("The upstream engine wrote far more than was asked for.")
        if chunk.thought:
            self._events.append(Piece("", thought=chunk.thought))
        self._show(self._begun.clearance.restore(chunk.text) if chunk.text else "")

    def _end(self) -> None:
        """The last event. A server that does not count its tokens is counted by pieces, about one a token."""
        self._over = True
        if self._finish is None:
            raise UpstreamBroken("The upstream engine's answer broke off.")
        word = finish_word(self._finish)
        self._show(self._begun.clearance.restore_end())
        told = self._calls.told(self._begun.clearance)
        self._events.extend(told)
        if word in ("stop", "tool_calls"):
            word = "tool_calls" if any(isinstance(event, ToolCall) for event in told) else "stop"
        self._events.append(Finished(word, self._usage or Usage(0, 0, self._pieces), self._begun.model_digest))

    def _show(self, text: str) -> None:
        if text:
            self._events.append(Piece(text))
