"""The models of this device and those of another program on it, as one engine. Implements offload.ports.Engine.

A request goes to whoever has the model; the models of this device come first unless the owner chose another one. Must
not know how either computes, peers or the node.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec
import trio
from trio import TaskStatus

from offload.local_engine import LocalEngine
from offload.ports import AdapterInfo, Engine, EngineHealth, Event, GenerateRequest, ModelInfo, Prompt
from offload.upstream import UpstreamEngine
from offload.workload import Workload

__all__ = ["JoinedEngine"]


class JoinedEngine:
    """The local engine, and an upstream one when there is any."""

    def __init__(
        self, local: LocalEngine, upstream: UpstreamEngine | None, *, default_model: str | None = None,
        workload: Workload | None = None,
    ) -> None:
        """workload: looks at every answer that passes."""
        self._workload = workload
        self._local = local
        self._upstream = upstream
        self._default = default_model

    async def run(self, *, task_status: TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        await self._local.run(task_status=task_status)

    def stream(self, request: GenerateRequest) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """The events of one answer; leaving the context cancels it."""
        return self._stream(request) if self._upstream or self._workload else self._local.stream(request)

    async def models(self) -> list[ModelInfo]:
        """The models that can be asked for, the default first, then those of this device, then those broken."""
        found = await self._local.models()
        if self._upstream is not None:
            found += await self._upstream.models()
            found.sort(key=lambda info: (bool(info.broken), not self._is_default(info)))
        return found

    async def adapters(self) -> list[AdapterInfo]:
        """The adapters of this device."""
        return await self._local.adapters()

    async def count_tokens(self, prompt: Prompt, *, model: str | None = None) -> int:
        """How many tokens this prompt takes. Raises EngineError."""
        return await (await self._engine_of(model)).count_tokens(prompt, model=model)

    async def embed(self, texts: Sequence[str], *, model: str | None = None) -> list[list[float]]:
        """A vector for each text by a model of this device, the text goes nowhere else. Raises EngineError."""
        return await self._local.embed(texts, model=model)

    async def score(self, request: GenerateRequest, token_ids: Sequence[int]) -> tuple[list[float], list[float]]:
        """Log-probabilities of tokens by a model of this device. Raises EngineError."""
        return await self._local.score(request, token_ids)

    async def health(self) -> EngineHealth:
        """Of the engine that answers when no model is named; the local one's box either way."""
        local = await self._local.health()
        if self._upstream is None:
            return local
        upstream = await self._upstream.health()
        if local.state != "no_model" and not self._is_default(upstream.model):
            return local
        return msgspec.structs.replace(upstream, box=local.box, probe=local.probe, troubles=local.troubles)

    async def forget(self, principal: str) -> None:
        """Erase what this device remembers of a principal's prompts."""
        await self._local.forget(principal)

    def rescan(self) -> None:
        """Look at the folders anew before the next request."""
        self._local.rescan()

    def set_default(self, name: str) -> None:
        """The model that answers requests which name none, from now on."""
        self._default = name
        self._local.set_default(name)

    def release(self) -> None:
        """End every quarantine."""
        self._local.release()

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """The present worker processes of the local engine."""
        return self._local.worker_pids

    @asynccontextmanager
    async def _stream(self, request: GenerateRequest) -> AsyncIterator[AsyncIterator[Event]]:
        engine = self._local if request.adapter is not None else await self._engine_of(request.model)
        async with engine.stream(request) as events:
            if self._workload is None:
                yield events
            else:
                with self._workload.watch(request, events) as watched:
                    yield watched

    async def _engine_of(self, wanted: str | None) -> Engine:
        """Whoever has this model; the local engine for one that nobody has: it says so."""
        if self._upstream is None:
            return self._local
        theirs = await self._upstream.models()
        if wanted is None:
            chosen = self._default is not None and any(map(self._is_default, theirs))
            sound_here = any(not info.broken for info in await self._local.models())
            return self._upstream if chosen or (theirs and not sound_here) else self._local
        return self._upstream if any(wanted in (info.name, info.digest) for info in theirs) else self._local

    def _is_default(self, info: ModelInfo | None) -> bool:
        return info is not None and self._default in (info.name, info.digest)
