"""The engine's own process: shuts its box, loads one model, answers. Run as `python -P -m offload.worker`.

One thread owns the model's context and decodes; another one reads orders, so that preparing a prompt or a sign of life
never waits for a decode. The only importer of offload.engine. Must not know the daemon, peers, grants or other models.
"""

import argparse
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version

from offload.child.box import enter_box, limit_memory, limit_resources, private_bytes, runtime_paths, tie_to_parent
from offload.child.boxprobe import probe_box
from offload.child.frames import BlockingPipe
from offload.engine.adapters import Adapters
from offload.engine.answer import Answer
from offload.engine.chat import PromptReader
from offload.engine.context import Context
from offload.engine.desk import Desk
from offload.engine.embedding import batches
from offload.engine.kvfiles import KvFiles
from offload.engine.library import Model, instruction_sets, open_library
from offload.engine.placement import choose_gpu, open_model
from offload.engine.preparation import prepare_answer
from offload.engine.quantise import quantise
from offload.engine.scheduler import Events, Scheduler, failed
from offload.engine.side_work import SideWork, Texts, Tokens
from offload.errors import BadAdapter, EngineError, LaneUnsupported, ModelUnusable
from offload.ports import GenerateRequest
from offload.worker_frames import (
    CancelJob,
    CannotStart,
    Convert,
    Converted,
    Count,
    Counted,
    Embed,
    Embedded,
    FileKey,
    Forget,
    Ping,
    Pong,
    Ready,
    Rest,
    Rested,
    Score,
    Scored,
    Serve,
    Step,
    Submit,
    Threads,
    Unlock,
    decode_opening,
    decode_order,
    encode,
)

__all__: list[str] = []

_GIB = 1024**3
_BROKEN_ORDER = 70
# What llama.cpp and OpenMP read of the machine. Other processes' folders below /proc stay shut.
_MACHINE_FACTS = ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system")
# A generous bound per context token until the model is open and its real need is known.
_WORST_CACHE_BYTES = 384 * 1024
# The exact lane, texts to embed and tokens to score have contexts of their own, opened when they are first wanted.
_MORE_CONTEXTS = 3
_WORST_CONTEXT_BYTES = 2 * 1024**3      # what one takes besides its cells
# Remembered beside the answers at work: only names for cells, unless each sequence has a state of its own in memory.
_KEPT_SEQUENCES = 24
_KEPT_STATES = 4
_IDLE_BEFORE_COPYING_S = 0.05
_IDLE_BEFORE_WRITING_S = 1.0


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An answer ready to be written, and the key for a file of it."""

    answer: Answer
    file_key: FileKey | None


_DeskOrder = _Prepared | CancelJob | Unlock | Forget | Rest | Threads | Texts | Tokens


def _serve(pipe: BlockingPipe, orders: Iterator[bytes], setup: Serve, layers: dict[str, str]) -> None:
    folder = os.path.dirname(setup.model_path)
    file_bytes = os.path.getsize(setup.model_path)
    adapter_paths = tuple(adapter.path for adapter in setup.adapters)
    adapter_bytes = sum(os.path.getsize(path) for path in adapter_paths)
    most_bytes = setup.memory_bytes or (
        2 * file_bytes + adapter_bytes + _GIB + setup.context_tokens * _WORST_CACHE_BYTES
        + (1 + _MORE_CONTEXTS) * _WORST_CONTEXT_BYTES)
    gpu = choose_gpu(setup, file_bytes)
    layers["memory_limit"] = limit_memory(most_bytes) if not gpu.nodes else "off: a driver maps more than it uses"
    layers |= enter_box(
        read=(folder, *adapter_paths, *_MACHINE_FACTS, *runtime_paths()),
        write=(*((setup.cache_folder,) if setup.cache_folder else ()), *gpu.nodes))
    layers |= gpu.gap
    probe = probe_box()

    model, gpu = open_model(setup, gpu)
    wanted = min(setup.context_tokens, model.trained_context_tokens or setup.context_tokens)
    kept = _KEPT_STATES if model.keeps_state_per_sequence else _KEPT_SEQUENCES
    before_bytes = private_bytes()
    context = Context(model, context_tokens=wanted, sequences=setup.slots + kept, threads=setup.threads)
    context.warm_up()
    now_bytes = private_bytes()
    if before_bytes and not gpu.nodes and not setup.memory_bytes:
        # What a context takes besides its cells depends on the model's graph (0.2 GiB for SmolLM2, 0.9 for Qwen3.5-0.8B
        # with its 248,320 words), and too little is an abort and no error: so it is measured.
        layers["memory_limit"] = limit_memory(min(
            most_bytes, now_bytes + _MORE_CONTEXTS * (now_bytes - before_bytes) + adapter_bytes + _GIB))
    reader = PromptReader(model)
    lanes = _Lanes(setup, model, context)
    pipe.write(encode(Ready(
        context_tokens=context.context_tokens, threads=setup.threads, backend=instruction_sets(),
        description=model.description, licence=model.metadata("general.license"),
        has_template=model.template is not None, box=layers, probe=probe, gpu=gpu.words)))

    desk: Desk[_DeskOrder] = Desk()
    clerk = _Clerk(pipe, desk, model, reader, lanes)
    threading.Thread(target=clerk.work, args=(orders,), daemon=True).start()
    _decode_for_ever(pipe, desk, lanes)


class _Lanes:
    """The schedulers of this model: the normal one, and the exact one with a context of its own once it is wanted."""

    def __init__(self, setup: Serve, model: Model, context: Context) -> None:
        self._setup = setup
        self._threads = setup.threads
        self._model = model
        self.files: KvFiles | None = None
        self._adapters = Adapters(model, {adapter.digest: adapter.path for adapter in setup.adapters})
        if setup.cache_folder:
            binding = f"{setup.digest} {version('llama_cpp_python')} {instruction_sets()} f16 unified"
            self.files = KvFiles(
                setup.cache_folder, binding=binding, limit_bytes=setup.cache_limit_bytes, owners=setup.cache_owners)
        self._normal = self._scheduler(context, exact=False)
        self._exact: Scheduler | None = None
        self.side_work = SideWork(model, setup.threads)
        self.contexts = [context]
        self.schedulers = [self._normal]

    def cancel_all(self) -> None:
        """Drop every answer, unsaid."""
        for lane in self.schedulers:
            for request_id in lane.request_ids:
                lane.cancel(request_id)

    def use_threads(self, count: int) -> None:
        """Compute with so many from the next decode on."""
        self._threads = count
        for context in self.contexts:
            context.use_threads(count)

    def copy_ahead(self) -> bool:
        """Copy something that is remembered out of the way of later decodes; False when nothing is left to copy."""
        return self._normal.copy_ahead()

    def put_away(self) -> bool:
        """Write something that is remembered to disk; False when nothing is left to write."""
        return self.files is not None and self._normal.put_away()

    def forget(self, principal: str) -> None:
        """Remember nothing of this principal, here and on disk."""
        for lane in self.schedulers:
            lane.forget(principal)
        if self.files is not None:
            self.files.forget(principal)

    def submit(self, answer: Answer) -> Events:
        """Hand an answer to its lane."""
        try:
            self._adapters.open(answer.adapter)
        except BadAdapter as error:
            answer.close()
            return [(answer.request_id, failed(error))]
        if not answer.exact:
            return self._normal.submit(answer)
        if self._exact is None:
            try:
                context = Context(
                    self._model, context_tokens=self.contexts[0].context_tokens, sequences=1,
                    threads=self._threads, exact=True)
            except ModelUnusable:
                answer.close()
                return [(answer.request_id, failed(LaneUnsupported("There is no memory for the exact lane.")))]
            self._exact = self._scheduler(context, exact=True)
            self.contexts.append(context)
            self.schedulers.append(self._exact)
        return self._exact.submit(answer)

    def _scheduler(self, context: Context, *, exact: bool) -> Scheduler:
        setup = self._setup
        return Scheduler(
            context, slots=1 if exact else setup.slots, queue_limit=setup.queue_limit, now_s=time.perf_counter,
            kept=0 if exact else context.sequences - setup.slots, model_digest=setup.digest,
            can_cut=not self._model.keeps_state_per_sequence, exact=exact, files=None if exact else self.files,
            parking_bytes=0 if exact else self._model.cache_bytes(context.context_tokens) // 2,
            use_adapter=lambda digest: context.use_adapter(self._adapters.handle(digest)))

    @property
    def has_work(self) -> bool:
        """Whether any lane would do something."""
        return any(scheduler.has_work for scheduler in self.schedulers) or self.side_work.has_work

    def status(self) -> Pong:
        """Counts over all lanes."""
        return Pong(
            sum(context.decodes for context in self.contexts), sum(lane.running for lane in self.schedulers),
            sum(lane.queued for lane in self.schedulers))


def _decode_for_ever(pipe: BlockingPipe, desk: Desk[_DeskOrder], lanes: _Lanes) -> None:
    """One frame per step, however many answers it moved; the lanes take turns. Idle time is for copies and files."""
    chores: list[tuple[float, Callable[[], bool]]] = []
    while True:
        orders = desk.take(wait_s=0 if lanes.has_work else chores[0][0] if chores else None)
        for order in orders:
            _carry_out(order, pipe, lanes)
        if orders or lanes.has_work:
            chores = [(_IDLE_BEFORE_COPYING_S, lanes.copy_ahead), (_IDLE_BEFORE_WRITING_S, lanes.put_away)]
        elif chores and not chores[0][1]():
            del chores[0]
        for lane in lanes.schedulers:
            if lane.has_work:
                _tell(pipe, lane.admit())
                _tell(pipe, lane.step())
        report = lanes.side_work.step()
        if report is not None:
            pipe.write(encode(report))


def _carry_out(order: _DeskOrder, pipe: BlockingPipe, lanes: _Lanes) -> None:
    match order:
        case _Prepared(answer=answer, file_key=key):
            if key is not None and lanes.files is not None:
                lanes.files.spare(answer.principal, key)
            _tell(pipe, lanes.submit(answer))
        case CancelJob(request_id=request_id):
            _tell(pipe, [event for lane in lanes.schedulers for event in lane.cancel(request_id)])
        case Unlock(principal=principal, keys=keys):
            if lanes.files is not None:
                lanes.files.unlock(principal, keys)
        case Forget(principal=principal):
            lanes.forget(principal)
        case Texts() | Tokens() as work:
            lanes.side_work.put(work)
        case Threads(count=count):
            lanes.use_threads(count)
        case Rest():
            lanes.cancel_all()
            while lanes.put_away():
                pass
            pipe.write(encode(Rested()))


def _tell(pipe: BlockingPipe, events: Events) -> None:
    if events:
        pipe.write(encode(Step(events)))


class _Clerk:
    """The thread that reads orders. It touches the vocabulary only, never the context."""

    def __init__(
        self, pipe: BlockingPipe, desk: Desk[_DeskOrder], model: Model, reader: PromptReader, lanes: _Lanes,
    ) -> None:
        self._pipe = pipe
        self._desk = desk
        self._model = model
        self._reader = reader
        self._context_tokens = lanes.contexts[0].context_tokens
        self._lanes = lanes

    def work(self, orders: Iterator[bytes]) -> None:
        """Until the daemon is gone; then this process ends at once, in mid-decode."""
        status = _BROKEN_ORDER
        try:
            for payload in orders:
                self._desk.say_in_hand(True)
                self._carry_out(payload)
                self._desk.say_in_hand(self._pipe.more_waits())
            status = 0
        finally:
            os._exit(status)

    def _carry_out(self, payload: bytes) -> None:
        match decode_order(payload):
            case Submit(request=request, file_key=key):
                self._prepare(request, key)
            case Embed() as order:
                self._prepare_texts(order)
            case Score() as order:
                self._prepare_tokens(order)
            case CancelJob() | Unlock() | Forget() | Rest() | Threads() as order:
                self._desk.put(order)
            case Count() as order:
                self._pipe.write(encode(self._count(order)))
            case Ping():
                self._pipe.write(encode(self._lanes.status()))

    def _prepare(self, request: GenerateRequest, file_key: FileKey | None) -> None:
        try:
            answer = prepare_answer(request, self._model, self._reader, context_tokens=self._context_tokens)
        except EngineError as error:
            self._pipe.write(encode(Step([(request.request_id, failed(error))])))
        else:
            self._desk.put(_Prepared(answer, file_key))

    def _prepare_texts(self, order: Embed) -> None:
        try:
            ids = [self._model.tokenise(text, begin=True, control=False) for text in order.texts]
        except EngineError as error:
            self._pipe.write(encode(Embedded(order.embed_id, code=error.code, message=str(error))))
        else:
            self._desk.put(Texts(order.embed_id, list(batches(ids))))

    def _prepare_tokens(self, order: Score) -> None:
        try:
            answer = prepare_answer(order.request, self._model, self._reader, context_tokens=self._context_tokens)
        except EngineError as error:
            self._pipe.write(encode(Scored(order.score_id, code=error.code, message=str(error))))
        else:
            self._desk.put(Tokens(order.score_id, answer.prompt[:answer.prompt_tokens], list(order.token_ids)))
            answer.close()

    def _count(self, order: Count) -> Counted:
        try:
            return Counted(order.count_id, len(self._reader.ids(order.prompt)))
        except EngineError as error:
            return Counted(order.count_id, 0, error.code, str(error))


def _convert(pipe: BlockingPipe, setup: Convert, layers: dict[str, str]) -> None:
    layers |= enter_box(
        read=(setup.source_path, *_MACHINE_FACTS, *runtime_paths()), write=(os.path.dirname(setup.target_path),))
    quantise(setup.source_path, setup.target_path, setup.quantisation)
    pipe.write(encode(Converted(layers)))


def _main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--fd", type=int, required=True)
    arguments.add_argument("--parent", type=int, required=True)
    given = arguments.parse_args()
    layers = {"parent_death": tie_to_parent(given.parent), "limits": limit_resources()}
    pipe = BlockingPipe(given.fd)
    payloads = pipe.read_all()
    opening = decode_opening(next(payloads))
    open_library()
    try:
        if isinstance(opening, Serve):
            _serve(pipe, payloads, opening, layers)
        else:
            _convert(pipe, opening, layers)
    except EngineError as error:
        pipe.write(encode(CannotStart(error.code, str(error))))
    except OSError as error:
        pipe.write(encode(CannotStart("model_unusable", error.strerror or "the model file can't be read")))


if __name__ == "__main__":
    _main()
