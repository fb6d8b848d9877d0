"""The engine that is another program: any OpenAI-compatible server (llama.cpp's, vLLM, Ollama), on a Unix socket, a
loopback port or another machine. Implements offload.ports.Engine.

Another machine is asked over TLS only, and only with what the privacy guard cleared. Must not know how bytes are
dialled, what the guard decides, or the node.
"""

import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio

from offload.errors import EngineError, ModelUnknown
from offload.ports import (
    ChatPrompt,
    EngineHealth,
    Event,
    GenerateRequest,
    ModelInfo,
    OutsideClearance,
    OutsideGuard,
    Prompt,
    TextPrompt,
)
from offload.request_limits import check_prompt, check_request
from offload.upstream_answer import Begun, FailedAnswer, UpstreamAnswer
from offload.upstream_calls import (
    Call,
    ServerKind,
    chat_call,
    rendered_call,
    text_call,
    tokens_call,
)
from offload.upstream_errors import OutsideRefused, UpstreamError
from offload.upstream_http import Exchange, HttpLimits
from offload.upstream_key import read_key
from offload.upstream_outside import Plain, cleared
from offload.upstream_place import parse_place
from offload.upstream_tools import MOST_CALLS
from offload.upstream_wire import Listed, decode_models, decode_rendered, decode_tokens, refusal

__all__ = ["UpstreamEngine", "UpstreamSettings"]

_MODELS_FRESH_S = 30.0
_ASK_AGAIN_S = 5.0
_MODELS_DEADLINE_S = 5.0
_MODELS_LIMIT = 64
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """Where the server is and what it is.

    models: name here -> name there; empty: all that a server on this machine lists, under its own names.
    context_tokens: what to assume when the server does not say. key: gives the key it wants, each time anew; raises
    UpstreamMisconfigured. key_file: where it lies instead.
    """

    url: str
    kind: ServerKind = "other"
    models: Mapping[str, str] = field(default_factory=dict)
    key_file: Path | None = None
    key: Callable[[], Awaitable[str]] | None = None
    ca_file: Path | None = None
    context_tokens: int = 4096
    limits: HttpLimits = field(default_factory=HttpLimits)


class UpstreamEngine:
    """Answers through one server. Needs no task of its own: each request is one connection, closed to cancel it."""

    def __init__(self, settings: UpstreamSettings, *, guard: OutsideGuard | None = None) -> None:
        """guard: decides what goes to a server on another machine; without one nothing does.

        Raises UpstreamMisconfigured.
        """
        self._settings = settings
        self._place = parse_place(settings.url)
        self._guard = guard
        self._listing = trio.Lock()
        self._models: list[tuple[ModelInfo, str]] = []
        self._listed_s = float("-inf")
        self._trouble: EngineError | None = None
        self._running = 0
        self._wrote_s: float | None = None

    @property
    def here(self) -> bool:
        """Whether the server runs on this machine."""
        return self._place.here

    def stream(self, request: GenerateRequest) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """The events of one answer; leaving the context closes the connection, which cancels it there."""
        return self._stream(request)

    async def models(self) -> list[ModelInfo]:
        """The models of the server, in its order or that of the settings; none while it does not answer."""
        return [info for info, _ in await self._known()]

    async def count_tokens(self, prompt: Prompt, *, model: str | None = None) -> int:
        """How many tokens this prompt takes, by the server's own count. Raises EngineError."""
        check_prompt(prompt)
        if not self._place.here:
            raise OutsideRefused("Tokens are not counted on another machine.")
        _, there = await self._choose(model)
        kind = self._settings.kind
        match prompt:
            case ChatPrompt() if kind == "llama.cpp":
                call = tokens_call(await self._render(prompt, there), there, kind)
            case ChatPrompt():
                call = tokens_call(prompt, there, kind)
            case TextPrompt(text=text):
                call = tokens_call(text, there, kind)
            case _:
                return len(prompt.ids)
        return decode_tokens(await self._ask(call))

    async def health(self) -> EngineHealth:
        """As last seen; asks nobody."""
        model = self._models[0][0] if self._models else None
        if self._trouble is not None or model is None:
            detail = str(self._trouble or "not asked yet")
            return EngineHealth(state="idle" if self._trouble is None else "no_model", detail=detail, model=model)
        age_s = None if self._wrote_s is None else trio.current_time() - self._wrote_s
        return EngineHealth(
            state="ready", model=model, running=self._running, last_token_age_s=age_s,
            backend=f"upstream {self._place.name}")

    # -- models -------------------------------------------------------------------------------------------------------

    async def _known(self) -> list[tuple[ModelInfo, str]]:
        async with self._listing:
            fresh_s = _ASK_AGAIN_S if self._trouble else _MODELS_FRESH_S
            if trio.current_time() - self._listed_s > fresh_s:
                await self._list()
                self._listed_s = trio.current_time()
        return self._models

    async def _list(self) -> None:
        wanted = self._settings.models
        try:
            if self._place.here:
                with trio.fail_after(_MODELS_DEADLINE_S):
                    listed = decode_models(await self._ask(Call("/v1/models", b""), method="GET"))[:_MODELS_LIMIT]
            else:       # another machine is not even asked for a list: the owner named what it has
                listed = [Listed(there) for there in wanted.values()]
        except (EngineError, trio.TooSlowError) as error:
            trouble = error if isinstance(error, EngineError) else UpstreamError("The upstream engine is slow.")
            if self._trouble is None:
                _log.warning("the upstream engine lists no models: %s", trouble.code)
            self._trouble, self._models = trouble, []
            return
        self._trouble = None
        facts = {model.name: model for model in listed}
        wanted = wanted or {name: name for name in facts}
        self._models = [(self._info(here, facts[there]), there) for here, there in wanted.items() if there in facts]
        if not self._models:
            self._trouble = ModelUnknown(f"The upstream engine has none of: {', '.join(wanted) or 'any model'}.")

    def _info(self, name: str, listed: Listed) -> ModelInfo:
        return ModelInfo(
            name=name, digest=self._digest(listed.name), size_bytes=listed.size_bytes,
            context_tokens=listed.context_tokens or self._settings.context_tokens,
            quantisation=listed.quantisation or "unknown", loaded=True)

    async def _choose(self, wanted: str | None) -> tuple[ModelInfo, str]:
        known = await self._known()
        for info, there in known:
            if wanted is None or wanted in (info.name, info.digest):
                return info, there
        raise self._trouble or ModelUnknown("The upstream engine does not have this model.")

    def _digest(self, model: str) -> str:
        """A stable name of 64 hex digits for a model whose file is not ours: of place and name, not of content."""
        return hashlib.sha256(f"upstream\n{self._settings.url}\n{model}".encode()).hexdigest()

    # -- asking -------------------------------------------------------------------------------------------------------

    async def _render(self, prompt: ChatPrompt, model: str) -> str:
        return decode_rendered(await self._ask(rendered_call(prompt, model)))

    async def _ask(self, call: Call, *, method: str = "POST") -> bytes:
        exchange = await self._open(call, Plain(), method=method)
        try:
            body = await exchange.read()
        finally:
            await exchange.aclose()
        if exchange.status != 200:
            raise refusal(exchange.status, body)
        return body

    async def _open(self, call: Call, clearance: OutsideClearance, *, method: str = "POST") -> Exchange:
        settings = self._settings
        headers = [("Accept", "text/event-stream, application/json"), ("Content-Type", "application/json")]
        if settings.key is not None:
            headers.append(("Authorization", f"Bearer {await settings.key()}"))
        elif settings.key_file is not None:
            key = await trio.to_thread.run_sync(read_key, settings.key_file)
            headers.append(("Authorization", f"Bearer {key}"))
        clearance.count(call.body)
        return await Exchange.start(
            self._place, method, call.path, headers=headers, body=call.body, limits=settings.limits,
            ca_file=settings.ca_file)

    @asynccontextmanager
    async def _stream(self, request: GenerateRequest) -> AsyncIterator[AsyncIterator[Event]]:
        answer: AsyncIterator[Event]
        async with AsyncExitStack() as stack:
            self._running += 1
            stack.callback(self._ended)
            try:
                answer = UpstreamAnswer(
                    request.max_tokens, await self._begin(request, stack),
                    most_calls=MOST_CALLS if request.parallel_calls else 1, wrote=self._note_life)
            except EngineError as error:
                answer = FailedAnswer(error)
            yield answer

    def _note_life(self) -> None:
        self._wrote_s = trio.current_time()

    def _ended(self) -> None:
        self._running -= 1

    async def _begin(self, request: GenerateRequest, stack: AsyncExitStack) -> Begun:
        """Send the request; what is opened for it is closed by the stack. Raises EngineError."""
        check_request(request)
        info, there = await self._choose(request.model)
        request, clearance = await stack.enter_async_context(cleared(request, self._place, self._guard))
        kind, prompt = self._settings.kind, request.prompt
        if isinstance(prompt, ChatPrompt) and request.text_so_far and kind == "llama.cpp":
            call = text_call(request, await self._render(prompt, there), there, kind)
        elif isinstance(prompt, ChatPrompt):
            call = chat_call(request, there, kind)
        else:
            text = prompt.text if isinstance(prompt, TextPrompt) else ""
            call = text_call(request, text, there, kind)
        exchange = await self._open(call, clearance)
        stack.push_async_callback(exchange.aclose)
        if exchange.status != 200:
            raise refusal(exchange.status, await exchange.read())
        return Begun(info.digest, exchange, clearance)
