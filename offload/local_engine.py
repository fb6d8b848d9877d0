"""The engine on this device: the models on disk, each served by a boxed worker process, started when it is needed.

Implements offload.ports.Engine. Its worker's death is an event of an answer and never this process's. Must not know
llama.cpp, peers or the node.
"""

import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import trio
from trio import TaskStatus

from offload.answer_stream import AnswerStream
from offload.catalogue import Catalogue, ModelFile, is_called
from offload.child.policy import RestartPolicy
from offload.errors import BadAdapter, EngineBusy, EngineStopped, ModelChanged, ModelUnknown, NoModel
from offload.kernels import KernelVerdict
from offload.kv_vault import KvVault
from offload.model_host import HostLimits, ModelHost
from offload.ports import OWNER, AdapterInfo, EngineHealth, EngineState, Event, GenerateRequest, ModelInfo, Prompt
from offload.request_limits import check_prompt, check_request, check_texts
from offload.soundness import Soundness
from offload.thread_budget import split_threads

__all__ = ["LocalEngine", "physical_cores"]

_SCAN_FRESH_S = 2.0
_log = logging.getLogger(__name__)


class LocalEngine:
    """Serves the models of some folders. Requests are answered while run() runs."""

    def __init__(
        self, models_dirs: Sequence[Path], *, cache_dir: Path | None = None, default_model: str | None = None,
        limits: HostLimits | None = None, threads: int | None = None, most_loaded: int = 1,
        policy: RestartPolicy | None = None, vault: KvVault | None = None,
    ) -> None:
        """vault: what was read of a prompt is kept on disk, sealed by its keys; None: in memory only.

        cache_dir: where digests and the CPU's verdict are remembered, no text of anyone; None: nowhere.

        default_model: name or digest, of a model or an adapter (set_default). threads: None for all physical cores.
        most_loaded: worker processes at once; an idle one makes room for another.
        """
        self._catalogue = Catalogue(models_dirs, cache_dir / "digests.json" if cache_dir else None)
        self._kernels = KernelVerdict(cache_dir / "kernels.json" if cache_dir else None)
        self._default = default_model
        self._limits = replace(limits or HostLimits(), threads=threads or physical_cores())
        self._most_loaded = most_loaded
        self._policy = policy
        self._vault = vault
        self._hosts: dict[str, tuple[ModelHost, trio.CancelScope]] = {}
        self._nursery: trio.Nursery | None = None
        self._scanning = trio.Lock()
        self._choosing = trio.Lock()
        self._found: list[ModelFile] = []
        self._adapters: list[ModelFile] = []
        self._soundness = Soundness()
        self._warned: set[str] = set()
        self._scanned_s = float("-inf")

    async def run(self, *, task_status: TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; then the workers are ended and every open answer fails with engine_stopped."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                task_status.started()
                try:
                    await trio.sleep_forever()
                finally:
                    self._nursery = None
                    await self._end_hosts()
        finally:
            self._nursery = None

    def stream(self, request: GenerateRequest) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """The events of one answer; leaving the context cancels it."""
        return self._stream(request)

    async def models(self) -> list[ModelInfo]:
        """The models that can be asked for, the default first, those known to be broken last."""
        return [self._info(model) for model in await self._usable()]

    async def adapters(self) -> list[AdapterInfo]:
        """The adapters that a request can name."""
        await self._usable()
        return [
            AdapterInfo(
                name=one.record.name, digest=one.digest, size_bytes=one.size_bytes, base=one.record.base,
                licence=one.record.licence, source=one.record.source, default=one is self._default_adapter)
            for one in self._adapters]

    async def count_tokens(self, prompt: Prompt, *, model: str | None = None) -> int:
        """How many tokens this prompt takes; starts the model's worker when necessary. Raises EngineError."""
        check_prompt(prompt)
        return await (await self._host_for(model)).errands.count(prompt)

    async def embed(self, texts: Sequence[str], *, model: str | None = None) -> list[list[float]]:
        """A vector of length 1 for each text, from the model's hidden states; long texts are cut at 512 tokens.

        Raises EngineError; BadRequest for more than 128 texts, or one of more than 16,384 characters.
        """
        check_texts(texts)
        return await (await self._host_for(model)).errands.embed(texts) if texts else []

    async def score(self, request: GenerateRequest, token_ids: Sequence[int]) -> tuple[list[float], list[float]]:
        """How likely the request's model holds these tokens as its answer: the log-probability of each, and of the
        likeliest in its place. Raises EngineError; PromptTooLong for more than 1,536 tokens with the prompt.
        """
        check_request(request)
        return await (await self._host_for(request.model)).errands.score(request, token_ids)

    async def health(self) -> EngineHealth:
        """The present state, without waiting for a worker."""
        models = await self._usable(wait=False)
        if self._nursery is None:
            return EngineHealth(state="stopped")
        if not models:
            return EngineHealth(state="no_model", detail=str(NoModel()))
        broken = self._soundness.damage(models[0].digest)
        if broken:      # it is only first when nothing else is there
            return EngineHealth(state="no_model", detail=f"{models[0].record.name} is broken: {broken}")
        if not self._hosts:
            return EngineHealth(state="idle", model=self._info(models[0]), threads=self._limits.threads)
        hosts = [host for host, _ in self._hosts.values()]
        host = max(hosts, key=lambda one: (one.jobs, one.model.digest == models[0].digest))
        state: EngineState = host.supervisor.state
        facts = host.ready_facts
        last_s = host.last_token_s
        return EngineHealth(
            state=state, detail=_detail(host), model=self._info(host.model), running=host.jobs - host.queued,
            queued=host.queued, last_token_age_s=None if last_s is None else trio.current_time() - last_s,
            restarts=host.supervisor.restarts, threads=self._limits.threads, backend=facts.backend if facts else "",
            gpu=facts.gpu if facts else "",
            box=facts.box if facts else {}, probe=facts.probe if facts else {},
            troubles=tuple(
                f"{one.model.record.name} {one.supervisor.state}; {_detail(one)}" for one in hosts
                if one is not host and (one.supervisor.state == "quarantined" or one.standstill_s is not None)))

    async def warm(self, model: str | None = None) -> None:
        """Load a model before anyone asks. Raises EngineError."""
        await (await self._host_for(model)).ready()

    async def forget(self, principal: str) -> None:
        """Erase what is remembered of a principal's prompts, in memory and on disk; a disk's refusal is logged."""
        for host, _ in list(self._hosts.values()):
            await host.forget(principal)
        if self._vault is not None:
            try:
                await trio.to_thread.run_sync(self._vault.erase, principal)
            except OSError as error:
                _log.warning("what the engine has on disk of a principal was not erased: %s", error.strerror)

    def rescan(self) -> None:
        """Look at the folders anew before the next request: a model was added or removed."""
        self._scanned_s = float("-inf")

    def set_default(self, name: str) -> None:
        """The model that answers requests which name none, from now on. An adapter's name: its model, and the adapter
        for the owner's own requests."""
        self._default = name

    def release(self) -> None:
        """End every quarantine: the owner says it is fixed."""
        for host, _ in self._hosts.values():
            host.supervisor.release()

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """The present worker processes."""
        children = (host.supervisor.child for host, _ in self._hosts.values())
        return tuple(child.pid for child in children if child is not None)

    # -- inside

    @asynccontextmanager
    async def _stream(self, request: GenerateRequest) -> AsyncIterator[AsyncIterator[Event]]:
        answer = AnswerStream(await self._as_the_owner_likes(request), self._host_of)
        try:
            yield answer
        finally:
            await answer.aclose()

    async def _as_the_owner_likes(self, request: GenerateRequest) -> GenerateRequest:
        """The owner's own request with the adapter that was made the default, where it is for the model that answers.

        Not in the exact lane: that is about the model as others have it too.
        """
        if request.adapter is not None or request.principal != OWNER or request.lane == "exact":
            return request
        await self._usable()
        adapter = self._default_adapter
        if adapter is None or (request.model is not None and request.model != adapter.record.base):
            return request
        return msgspec.structs.replace(request, adapter=adapter.digest)

    @property
    def _default_adapter(self) -> ModelFile | None:
        """The adapter that goes by the default's name, while its model is here."""
        here = {model.digest for model in self._found if not model.changed}
        return next((
            one for one in self._adapters
            if self._default and is_called(one, self._default) and one.record.base in here), None)

    async def _host_of(self, request: GenerateRequest) -> ModelHost:
        check_request(request)
        if request.adapter is None:
            return await self._host_for(request.model)
        await self._usable()
        adapter = next((one for one in self._adapters if is_called(one, request.adapter)), None)
        if adapter is None:
            raise BadAdapter()
        return await self._host_for(request.model or adapter.record.base, adapter)

    async def _host_for(self, wanted: str | None, adapter: ModelFile | None = None) -> ModelHost:
        """The host of a model, started when necessary, and anew for an adapter it does not know. Raises EngineError."""
        model = await self._choose(wanted)
        if adapter is not None and adapter.record.base != model.digest:
            raise BadAdapter(f"{adapter.record.name} is no adapter for {model.record.name}.")
        async with self._choosing:
            if self._nursery is None:
                raise EngineStopped()
            known = self._hosts.get(model.digest)
            if known is not None:
                host, scope = known
                if adapter is None or adapter.digest in {one.digest for one in host.adapters}:
                    return host
                if host.busy:
                    raise EngineBusy("The model is at work and does not know its new adapter yet.")
                del self._hosts[model.digest]
                await host.rest()
                scope.cancel()
            while len(self._hosts) >= self._most_loaded:
                idle = next((key for key, (host, _) in self._hosts.items() if not host.busy), None)
                if idle is None:
                    raise EngineBusy("Another model is at work and there is no room for a second one.")
                leaving, scope = self._hosts.pop(idle)
                await leaving.rest()
                scope.cancel()
            host = ModelHost(
                model, self._limits, self._kernels, policy=self._policy, vault=self._vault,
                work_changed=self._share_threads, judged=partial(self._soundness.note, model.digest),
                adapters=[one for one in self._adapters if one.record.base == model.digest])
            scope = trio.CancelScope(shield=True)       # ended by _end_hosts, after it could put away what it remembers
            self._hosts[model.digest] = (host, scope)
            self._nursery.start_soon(self._run_host, host, scope)
            return host

    def _share_threads(self) -> None:
        """Split the cores between the workers that have something to do."""
        hosts = {digest: host for digest, (host, _) in self._hosts.items()}
        shares = split_threads(self._limits.threads, {digest: host.demand for digest, host in hosts.items()})
        for digest, host in hosts.items():
            if self._nursery is not None and host.threads != shares[digest] and host.demand != "idle":
                self._nursery.start_soon(host.give_threads, shares[digest])

    async def _end_hosts(self) -> None:
        """Fail what is open, let the workers write what they remember, end them."""
        hosts = list(self._hosts.values())
        with trio.CancelScope(shield=True):     # each rest() has a deadline
            async with trio.open_nursery() as nursery:
                for host, _ in hosts:
                    nursery.start_soon(host.rest)
        for _, scope in hosts:
            scope.cancel()

    @staticmethod
    async def _run_host(host: ModelHost, scope: trio.CancelScope) -> None:
        with scope:
            await host.run()

    async def _choose(self, wanted: str | None) -> ModelFile:
        models = await self._usable()
        if wanted is None:
            if not models:
                raise NoModel()
            return models[0]
        for model in models:
            if is_called(model, wanted):
                return model
        if any(is_called(model, wanted) for model in self._found):
            raise ModelChanged()
        raise ModelUnknown() if models else NoModel()

    async def _usable(self, *, wait: bool = True) -> list[ModelFile]:
        """Models that may be loaded, the default first. wait False: as last seen while someone hashes a new file."""
        if not wait and self._scanning.locked():
            return self._sorted()
        async with self._scanning:
            if trio.current_time() - self._scanned_s > _SCAN_FRESH_S:
                found = await trio.to_thread.run_sync(self._catalogue.scan)
                self._found = [one for one in found if not one.record.adapter]
                self._adapters = [one for one in found if one.record.adapter and one.recorded and not one.changed]
                await self._soundness.examine(self._found)
                self._scanned_s = trio.current_time()
                for model in self._found:
                    if model.changed and model.digest not in self._warned:
                        self._warned.add(model.digest)
                        _log.warning("%s is not the file that was installed; it is not used", model.path.name)
        return self._sorted()

    def _sorted(self) -> list[ModelFile]:
        usable = [model for model in self._found if not model.changed]
        adapter = self._default_adapter
        default = adapter.record.base if adapter is not None else self._default

        def rank(model: ModelFile) -> tuple[bool, bool]:
            broken = bool(self._soundness.damage(model.digest))
            return broken, default is not None and not is_called(model, default)

        return sorted(usable, key=rank)

    def _info(self, model: ModelFile) -> ModelInfo:
        known = self._hosts.get(model.digest)
        facts = known[0].ready_facts if known is not None else None
        record = model.record
        return ModelInfo(
            name=record.name, digest=model.digest, size_bytes=model.size_bytes, quantisation=record.quantisation,
            context_tokens=facts.context_tokens if facts else min(record.context_tokens, self._limits.context_tokens),
            licence=record.licence if record.licence != "unknown" or not facts else facts.licence or "unknown",
            loaded=known is not None and known[0].supervisor.state == "ready",
            placeholder_style=record.placeholder_style, broken=self._soundness.damage(model.digest))


def _detail(host: ModelHost) -> str:
    """What there is to say of a worker's state, empty for nothing."""
    still_s = host.standstill_s
    return host.supervisor.detail if still_s is None else (
        f"No decode has finished for {still_s:.0f} s; the worker is ended when that goes on.")


def physical_cores() -> int:
    """Cores this process may use, hyperthreads counted once."""
    usable = os.sched_getaffinity(0)
    cores = set()
    for cpu in usable:
        try:
            siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text("ascii")
        except OSError:
            siblings = str(cpu)
        cores.add(siblings)
    return max(1, len(cores))
