"""The engine's own process: shuts its box, loads one model, answers. Run as `python -P -m offload.worker`.

One thread owns the model's context and decodes; another one reads orders, so that preparing a prompt or a sign of life
never waits for a decode. The only importer of offload.engine. Must not know the daemon, peers, grants or other models.
"""

import argparse
import os
import threading
import time
from collections import deque
from collections.abc import Iterator

from offload.child.box import enter_box, limit_memory, limit_resources, runtime_paths, tie_to_parent
from offload.child.boxprobe import probe_box
from offload.child.frames import BlockingPipe
from offload.engine.answer import Answer, prepare_answer
from offload.engine.chat import PromptReader
from offload.engine.context import Context
from offload.engine.library import Model, instruction_sets, open_library
from offload.engine.quantise import quantise
from offload.engine.scheduler import Events, Scheduler, failed
from offload.errors import EngineError, LaneUnsupported
from offload.ports import GenerateRequest
from offload.worker_frames import (
    CancelJob,
    CannotStart,
    Convert,
    Converted,
    Count,
    Counted,
    Ping,
    Pong,
    Ready,
    Serve,
    Step,
    Submit,
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


class _Desk:
    """Where orders wait for the decoding thread."""

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self._orders: deque[Answer | CancelJob] = deque()

    def put(self, order: Answer | CancelJob) -> None:
        """Leave an order."""
        with self._arrived:
            self._orders.append(order)
            self._arrived.notify()

    def take(self, *, wait: bool) -> list[Answer | CancelJob]:
        """Everything that waits; with `wait`, at least one."""
        with self._arrived:
            while wait and not self._orders:
                self._arrived.wait()
            orders = list(self._orders)
            self._orders.clear()
            return orders


def _serve(pipe: BlockingPipe, orders: Iterator[bytes], setup: Serve, layers: dict[str, str]) -> None:
    folder = os.path.dirname(setup.model_path)
    file_bytes = os.path.getsize(setup.model_path)
    most_bytes = 2 * file_bytes + _GIB + setup.context_tokens * _WORST_CACHE_BYTES
    layers["memory_limit"] = limit_memory(most_bytes)
    layers |= enter_box(
        read=(folder, *_MACHINE_FACTS, *runtime_paths()), write=(setup.cache_folder,) if setup.cache_folder else ())
    probe = probe_box()

    model = Model(setup.model_path, extra_buffers=setup.extra_buffers)
    wanted = min(setup.context_tokens, model.trained_context_tokens or setup.context_tokens)
    layers["memory_limit"] = limit_memory(min(most_bytes, file_bytes + model.cache_bytes(wanted) + _GIB))
    context = Context(model, context_tokens=wanted, sequences=setup.slots, threads=setup.threads)
    context.warm_up()
    reader = PromptReader(model)
    scheduler = Scheduler(
        context, slots=setup.slots, queue_limit=setup.queue_limit, now_s=time.perf_counter, model_digest=setup.digest,
        can_cut=not model.keeps_state_per_sequence)
    pipe.write(encode(Ready(
        context_tokens=context.context_tokens, threads=setup.threads, backend=instruction_sets(),
        description=model.description, licence=model.metadata("general.license"),
        has_template=model.template is not None, box=layers, probe=probe)))

    desk = _Desk()
    clerk = _Clerk(pipe, desk, model, reader, context, scheduler)
    threading.Thread(target=clerk.work, args=(orders,), daemon=True).start()
    _decode_for_ever(pipe, desk, scheduler)


def _decode_for_ever(pipe: BlockingPipe, desk: _Desk, scheduler: Scheduler) -> None:
    """One frame per step, however many answers it moved."""
    while True:
        events: Events = []
        for order in desk.take(wait=not scheduler.has_work):
            events += scheduler.cancel(order.request_id) if isinstance(order, CancelJob) else scheduler.submit(order)
        if scheduler.has_work:
            events += scheduler.step()
        if events:
            pipe.write(encode(Step(events)))


class _Clerk:
    """The thread that reads orders. It touches the vocabulary only, never the context."""

    def __init__(
        self, pipe: BlockingPipe, desk: _Desk, model: Model, reader: PromptReader, context: Context,
        scheduler: Scheduler,
    ) -> None:
        self._pipe = pipe
        self._desk = desk
        self._model = model
        self._reader = reader
        self._context = context
        self._scheduler = scheduler

    def work(self, orders: Iterator[bytes]) -> None:
        """Until the daemon is gone; then this process ends at once, in mid-decode."""
        status = _BROKEN_ORDER
        try:
            for payload in orders:
                self._carry_out(payload)
            status = 0
        finally:
            os._exit(status)

    def _carry_out(self, payload: bytes) -> None:
        match decode_order(payload):
            case Submit(request=request):
                self._prepare(request)
            case CancelJob() as order:
                self._desk.put(order)
            case Count() as order:
                self._pipe.write(encode(self._count(order)))
            case Ping():
                self._pipe.write(encode(Pong(self._context.decodes, self._scheduler.running, self._scheduler.queued)))

    def _prepare(self, request: GenerateRequest) -> None:
        try:
            if request.lane != "normal":
                raise LaneUnsupported()
            answer = prepare_answer(request, self._model, self._reader, context_tokens=self._context.context_tokens)
        except EngineError as error:
            self._pipe.write(encode(Step([(request.request_id, failed(error))])))
        else:
            self._desk.put(answer)

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
