"""One model's worker process as the daemon sees it: answers go in and out, and survive the process.

Implements what the supervisor asks of a child's owner. Must not know which models there are, llama.cpp, or peers.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import trio

from offload.catalogue import ModelFile, is_called
from offload.child.errors import ChildClosed, ChildError, ChildGone, ChildQuarantined, ChildStartFailed
from offload.child.policy import RestartPolicy
from offload.child.process import Child, Death, start_child
from offload.child.supervisor import Supervisor
from offload.errands import Errands
from offload.errors import (
    BadAdapter,
    EngineError,
    EngineStopped,
    ModelUnusable,
    WorkerDied,
    WorkerQuarantined,
    WorkerStalled,
)
from offload.gpu_layers import AUTOMATIC
from offload.jobs import Job, shown
from offload.kernels import KernelVerdict
from offload.kv_vault import KvVault, WorkerKeys
from offload.ports import Event, Failed, Finished, GenerateRequest, Piece
from offload.pulse import Pulse
from offload.thread_budget import Demand
from offload.worker_frames import (
    AdapterFile,
    CancelJob,
    CannotStart,
    Counted,
    Embedded,
    Forget,
    Ping,
    Pong,
    Ready,
    Report,
    Rest,
    Rested,
    Scored,
    Serve,
    Step,
    Submit,
    Threads,
    decode_report,
    encode,
)

__all__ = ["HostLimits", "Job", "ModelHost"]

_PING_EVERY_S = 5.0
_CANCEL_DEADLINE_S = 2.0
_REST_DEADLINE_S = 4.0
_START_DEADLINE_S = 60.0
_SLOWEST_LOAD_BYTES_PER_S = 20e6        # a large file on a slow disk is not a hang
_SPARE_EVENTS = 64
_SPARE_CHARS = 4096
_MOST_CHARS_PER_TOKEN = 512
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HostLimits:
    """What one worker gets: context cells for all its answers together, answers at once, answers waiting, threads,
    layers on a graphics card (AUTOMATIC: as many as fit there), and private memory (0: what the model turns out to
    need; with less than that it can't be loaded, or dies when more of it is wanted)."""

    context_tokens: int = 4096
    slots: int = 4
    queue_limit: int = 16
    threads: int = 2
    gpu_layers: int = AUTOMATIC
    memory_bytes: int = 0
    idle_stop_s: float = math.inf


class ModelHost:
    """Serves one model file; run() must be running."""

    def __init__(
        self, model: ModelFile, limits: HostLimits, kernels: KernelVerdict, *, policy: RestartPolicy | None = None,
        vault: KvVault | None = None, work_changed: Callable[[], None] = lambda: None,
        judged: Callable[[str], None] = lambda _: None, adapters: Sequence[ModelFile] = (),
    ) -> None:
        """vault: keys for what the worker may keep on disk; None: it keeps nothing.

        work_changed: told when a request came or ended. judged: told why the model could not be loaded, or "" once it
        was. adapters: those that requests may name.
        """
        self.model = model
        self.limits = limits
        self.adapters = tuple(adapters)
        self.ready_facts: Ready | None = None
        self.last_token_s: float | None = None
        self.queued = 0
        self.running = 0
        self._kernels = kernels
        self._fast = True
        self._work_changed = work_changed
        self._judged = judged
        self.threads = limits.threads
        self._jobs: dict[str, Job] = {}
        self.errands = Errands(self._child)
        """Short things that the worker does for one caller."""
        self._numbers = 0
        self._unusable = False
        self._keys = WorkerKeys(vault, model.digest)
        self._rested = trio.Event()
        self._pulse = Pulse()
        self._load_deadline_s = _START_DEADLINE_S + model.size_bytes / _SLOWEST_LOAD_BYTES_PER_S
        self.supervisor = Supervisor(
            f"engine worker for {model.record.name}", self, policy=policy, idle_stop_s=limits.idle_stop_s,
            is_busy=lambda: self.busy, start_deadline_s=self._load_deadline_s)

    @property
    def busy(self) -> bool:
        """Whether anyone waits for it."""
        return bool(self._jobs) or self.errands.busy

    @property
    def jobs(self) -> int:
        """How many answers are under way."""
        return len(self._jobs)

    @property
    def demand(self) -> Demand:
        """For whom it is at work."""
        principals = {job.principal for job in self._jobs.values()}
        return "owner" if "owner" in principals else "guests" if principals else "idle"

    async def give_threads(self, threads: int) -> None:
        """Compute with so many from the next decode on. Never raises ChildError."""
        if threads == self.threads:
            return
        self.threads = threads
        await self._tell(Threads(threads))

    @property
    def standstill_s(self) -> float | None:
        """How long no decode has finished although there is work, once that is worth telling."""
        if not self._jobs or self.supervisor.state != "ready":
            return None
        return self._pulse.standstill_s(trio.current_time())

    async def run(self) -> None:
        """Supervise until cancelled; whoever still waits is then told that the engine stops."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.supervisor.run)
                nursery.start_soon(self._watch)
        finally:
            self._fail_all(EngineStopped())

    async def ready(self) -> None:
        """Wait until the worker has loaded its model. Raises EngineError."""
        await self._child()

    async def submit(self, request: GenerateRequest) -> Job:
        """Hand a request to the worker, started when necessary. Raises EngineError."""
        self._numbers += 1
        events = request.max_tokens + _SPARE_EVENTS
        chars = _SPARE_CHARS + _MOST_CHARS_PER_TOKEN * (request.max_tokens + len(request.token_ids_so_far))
        post, inbox = trio.open_memory_channel[Event | Death](events + 2)     # a sign of life, the news of a death
        job = Job(f"job-{self._numbers}", request.principal, inbox, post, events, chars)
        self._jobs[job.job_id] = job
        self._work_changed()
        try:
            child = await self._child()
            unlock, key = await self._keys.for_request(request.principal)
            adapter = next((one.digest for one in self.adapters if is_called(one, request.adapter or "")), None)
            if request.adapter is not None and adapter is None:
                raise BadAdapter()
            order = Submit(msgspec.structs.replace(request, request_id=job.job_id, adapter=adapter), key)
            job.sent = True
            if unlock is not None:
                await child.send(encode(unlock))
            await child.send(encode(order))
        except ChildGone:
            # The death notice lies in the inbox or is about to.
            return job
        except BaseException:
            self._forget(job)
            raise
        return job

    async def cancel(self, job: Job) -> None:
        """Stop an answer: nothing more is decoded for it after the step that is running. Never raises ChildError."""
        if job.over:
            return
        self._forget(job)
        child = self.supervisor.child
        if child is None or not job.sent:
            return
        with trio.CancelScope(shield=True), trio.move_on_after(_CANCEL_DEADLINE_S):
            try:
                await child.send(encode(CancelJob(job.job_id)))
            except ChildGone:
                _log.debug("the worker was gone before a cancel reached it")

    async def rest(self) -> None:
        """Have the worker write what it remembers, before it is ended. Whoever still waits is told that it stops."""
        self._fail_all(EngineStopped())
        child = self.supervisor.child
        if not self._keys.folder or child is None or self.supervisor.state != "ready":
            return
        self._rested = trio.Event()
        with trio.move_on_after(_REST_DEADLINE_S):
            try:
                await child.send(encode(Rest()))
                await self._rested.wait()
            except ChildGone:
                _log.debug("the worker was gone before it could put away what it remembers")

    async def forget(self, principal: str) -> None:
        """Have the worker forget all of a principal. Never raises ChildError."""
        self._keys.forget(principal)
        await self._tell(Forget(principal))

    async def _child(self) -> Child:
        try:
            return await self.supervisor.ready(deadline_s=2 * self._load_deadline_s)    # it may have to start twice
        except ChildQuarantined as error:
            raise WorkerQuarantined(f"The model's worker died too often: {error}.") from error
        except ChildStartFailed as error:
            raise ModelUnusable(str(error)) from error
        except ChildClosed as error:
            raise EngineStopped() from error
        except ChildGone as error:
            raise WorkerStalled() from error

    # -- what the supervisor asks

    def launch(self) -> Child:
        """Start the worker's process."""
        self._unusable = False
        return start_child("offload.worker")

    def greeting(self) -> bytes:
        """Which model, and with how much."""
        self._fast = self._kernels.fast
        self._keys.begin()
        return encode(Serve(
            model_path=str(self.model.path), digest=self.model.digest, context_tokens=self.limits.context_tokens,
            slots=self.limits.slots, queue_limit=self.limits.queue_limit, threads=self.threads,
            extra_buffers=self._fast, cache_folder=self._keys.folder, cache_limit_bytes=self._keys.limit_bytes,
            cache_owners=self._keys.owners,
            adapters=[AdapterFile(one.digest, str(one.path)) for one in self.adapters if one.path.is_file()],
            gpu_layers=self.limits.gpu_layers, memory_bytes=self.limits.memory_bytes))

    def became_ready(self, payload: bytes) -> None:
        """Take note of the box and the model's facts, or of why it can't be loaded."""
        match _decoded(payload):
            case Ready() as facts:
                self.ready_facts = msgspec.structs.replace(
                    facts, backend=shown(facts.backend), description=shown(facts.description),
                    licence=shown(facts.licence), gpu=shown(facts.gpu))
                self._judged("")
                self._pulse.begin(trio.current_time())
                missing = {layer: state for layer, state in facts.box.items() if state != "held"}
                open_ways = [attempt for attempt, found in facts.probe.items() if found == "possible"]
                if missing or open_ways:
                    _log.warning("the engine worker's box has gaps: %s %s", missing, open_ways)
            case CannotStart(message=message):
                self._unusable = True
                self._judged(shown(message))
                raise ChildStartFailed(shown(message))
            case _:
                raise ChildStartFailed("The worker process spoke out of turn.")

    def received(self, payload: bytes) -> None:
        """Sort events to their answers."""
        match _decoded(payload):
            case Step(events=events):
                for job_id, event in events:
                    self._deliver(job_id, event)
            case Counted() | Embedded() | Scored() as result:
                self.errands.received(result)
            case Rested():
                self._rested.set()
            case Pong() as pong:
                self.running, self.queued = pong.running, pong.queued
                self._pulse.beat(pong, trio.current_time())
            case _:
                raise ChildError("it spoke out of turn")

    def died(self, death: Death, *, was_ready: bool) -> bool:
        """Tell those whose answers it was writing; back when there are any, or when a slower way may work."""
        self.running = self.queued = 0
        wanted_back = self.busy and not self._unusable
        self.errands.worker_died()
        for job in list(self._jobs.values()):
            if job.sent:
                self._post(job, death)
        if not was_ready and self._fast and self._kernels.blame(death):
            _log.warning("the engine's fast kernels end with %s on this CPU; going on without them", death.reason)
            return True
        return wanted_back

    def gave_up(self, reason: str) -> None:
        """Nobody needs to wait any longer."""
        if self.ready_facts is None:
            self._judged(f"The process that loads it dies: {reason}.")
        self._fail_all(WorkerQuarantined(f"The model's worker died too often: {reason}."))

    # -- inside

    async def _tell(self, order: Threads | Forget) -> None:
        """An order that means nothing to a process that is gone or only starts."""
        child = self.supervisor.child
        if child is not None and self.supervisor.state == "ready":
            try:
                await child.send(encode(order))
            except ChildGone:
                _log.debug("the worker was gone before an order reached it")

    def _deliver(self, job_id: str, event: Event) -> None:
        job = self._jobs.get(job_id)
        if job is None:
            return      # cancelled meanwhile
        if isinstance(event, Piece):
            self.last_token_s = trio.current_time()
        elif isinstance(event, Failed):
            event = Failed(shown(event.code), shown(event.message), shown(event.hint))
        self._post(job, event)
        if isinstance(event, Finished | Failed):
            self._forget(job)

    def _post(self, job: Job, event: Event | Death) -> None:
        if isinstance(event, Death):
            job.post.send_nowait(event)
            self._forget(job)
            return
        if not job.take(event):
            job.broken = WorkerDied("The worker process sent more than was asked for and was ended.")
            self._forget(job)
            raise ChildError("it sent more than was asked for")

    def _forget(self, job: Job) -> None:
        job.over = True
        self._jobs.pop(job.job_id, None)
        self.queued = min(self.queued, len(self._jobs))
        job.post.close()
        self._work_changed()

    def _fail_all(self, error: EngineError) -> None:
        for job in list(self._jobs.values()):
            self._deliver(job.job_id, Failed(error.code, str(error), error.hint))

    async def _watch(self) -> None:
        """End a worker that shows no life, or that decodes nothing while it should."""
        while True:
            await trio.sleep(_PING_EVERY_S)
            child = self.supervisor.child
            now_s = trio.current_time()
            if child is None or self.supervisor.state != "ready" or not self.busy:
                self._pulse.begin(now_s)
                continue
            if self._pulse.lost(now_s):
                _log.warning("the engine worker no longer moves and is ended")
                self.supervisor.kill()
                continue
            try:
                await child.send(encode(Ping()))
            except ChildGone:
                continue


def _decoded(payload: bytes) -> Report:
    try:
        return decode_report(payload)
    except msgspec.DecodeError as error:
        raise ChildError("it sent what can't be read") from error
