"""What the worker's decode loop costs besides decoding, and what small chunks cost a long prompt. Rows of
benchmarks.engine, measured in this process on one thread in CPU time, so that other programs hardly matter.

Must not know processes, the pipe or peers.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.prefixes import LONG_SENTENCES, SENTENCE, STEP_TARGET_S
from benchmarks.report import Report
from benchmarks.timing import median
from offload.engine.chat import PromptReader
from offload.engine.context import Context
from offload.engine.library import Model, open_library
from offload.engine.preparation import prepare_answer
from offload.engine.scheduler import Scheduler
from offload.ports import ChatPrompt, GenerateRequest, Message

__all__ = ["measure_chunks", "measure_loop"]

MODELS = Path(sys.prefix) / "share" / "kith" / "models"
CONTEXT_TOKENS, SLOTS, CHATS, CHAT_TOKENS = 8192, 8, 3, 600      # all of it fits in at once
FIXED_CHUNK = 256


class Bench:
    """One model and context in this process."""

    def __init__(self) -> None:
        open_library()
        self.model = Model(str(next(MODELS.glob("*.gguf"))), extra_buffers=True)
        self.context = Context(self.model, context_tokens=CONTEXT_TOKENS, sequences=2 * SLOTS, threads=1)
        self._reader = PromptReader(self.model)
        self._asked = 0

    def machine(self) -> Scheduler:
        """A scheduler whose clock is this thread's CPU time, on an empty memory."""
        for sequence in range(2 * SLOTS):
            self.context.forget(sequence)
        return Scheduler(self.context, slots=SLOTS, queue_limit=9, now_s=time.thread_time)

    def submit(self, machine: Scheduler, text: str, tokens: int) -> None:
        """One more question."""
        self._asked += 1
        request = GenerateRequest(
            request_id=f"r{self._asked}", prompt=ChatPrompt((Message("user", text),)), max_tokens=tokens)
        machine.submit(prepare_answer(request, self.model, self._reader, context_tokens=CONTEXT_TOKENS))

    def close(self) -> None:
        """Free both."""
        self.context.close()
        self.model.close()


def measure_loop(report: Report, *, tokens: int, rounds: int) -> None:
    """What Python costs."""
    bench = Bench()
    for streams in (1, SLOTS):
        shares = [_share(bench, streams, tokens) for _ in range(rounds)]
        report.add(f"the loop's share of its CPU besides decoding, {streams} at once, median", median(shares) * 100,
                   "%", at_most=5)
    bench.close()


def measure_chunks(report: Report, *, rounds: int, long_share: float) -> None:
    """What reading beside others costs. long_share: how much of the 4,000-token prompt is used, for a quick look."""
    bench = Bench()
    sentences = int(LONG_SENTENCES * long_share)
    gaps: list[float] = []
    costs = {fixed: [_prefill_s(bench, sentences, [] if fixed else gaps, fixed=fixed)
                     for _ in range((rounds + 1) // 2)] for fixed in (True, False)}
    report.add(f"reading {sentences * 20} tokens beside three chats: CPU by the time budget / by chunks of "
               f"{FIXED_CHUNK}", median(costs[False]), "s", baseline=median(costs[True]), ratio_at_most=1.3)
    report.add("the chats' gap meanwhile, in CPU time of one thread, p95", sorted(gaps)[int(len(gaps) * 0.95)] * 1000,
               "ms", at_most=2.5 * STEP_TARGET_S * 1000)
    bench.close()


def _share(bench: Bench, streams: int, tokens: int) -> float:
    """What part of the CPU time of a run is not spent in llama.cpp's decode."""
    machine, spent = bench.machine(), 0.0
    for number in range(streams):
        bench.submit(machine, f"Tell a very long story about the {number + 3} seas.", tokens)
    decode: Callable[[], int] = bench.context.decode

    def timed() -> int:
        nonlocal spent
        begun_s = time.thread_time()
        result = decode()
        spent += time.thread_time() - begun_s
        return result

    bench.context.decode = timed  # type: ignore[method-assign]
    begun_s = time.thread_time()
    while machine.has_work:
        machine.step()
    whole_s = time.thread_time() - begun_s
    bench.context.decode = decode  # type: ignore[method-assign]
    return 1 - spent / whole_s


def _prefill_s(bench: Bench, sentences: int, gaps: list[float], *, fixed: bool) -> float:
    """CPU of the steps in which a long prompt is read, less what the chats' tokens in them cost by themselves.

    gaps: gets what each of these steps took.
    """
    machine = bench.machine()
    if fixed:
        machine._pace.tokens = lambda _company, _beside: FIXED_CHUNK  # type: ignore[method-assign]
    for number in range(CHATS):
        bench.submit(machine, f"Tell a very long story about the {number + 3} seas.", CHAT_TOKENS)
    calm = []
    for _ in range(24):
        begun_s = time.thread_time()
        machine.step()
        calm.append(time.thread_time() - begun_s)
    bench.submit(machine, SENTENCE * sentences + "Say it in one sentence.", 1)
    whole_s, steps = 0.0, 0
    while machine.running > CHATS or machine.queued:
        begun_s = time.thread_time()
        machine.step()
        gaps.append(time.thread_time() - begun_s)
        whole_s += gaps[-1]
        steps += 1
    return whole_s - steps * median(calm[4:])
