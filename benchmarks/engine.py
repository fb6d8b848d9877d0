"""What the engine does on this machine with the embedded model, through its real worker process and port.

Run from the checkout: python -m benchmarks.engine [--quick] [--json] [--only worker loop turns long]. Against
llama.cpp's own server: benchmarks.rivals (speed) and benchmarks.shortcuts (tool calls, drafts).
"""

import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil
import trio

from benchmarks.decode_loop import measure_chunks, measure_loop
from benchmarks.prefixes import measure_gaps, measure_prefixes
from benchmarks.report import Report, options
from benchmarks.timing import median
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits, ModelHost
from offload.ports import ChatPrompt, Failed, Finished, GenerateRequest, Message, Piece, Resumed, Started
from offload.worker_frames import Ping, Pong, decode_report, encode

MODELS = Path(sys.prefix) / "share" / "kith" / "models"
SENTENCE = "The tank on the roof holds water for a week and is filled again from the well behind the house. "
LONG_SENTENCES = 48     # about 1,000 tokens
STREAMS = (1, 4, 8)
PARTS = ("worker", "loop", "turns", "long")
QUICK, FULL = True, False
LOAD = {
    QUICK: {"rounds": 2, "tokens": 40, "firsts": 5, "cancels": 4, "deaths": 3, "long_percent": 30},
    FULL: {"rounds": 9, "tokens": 128, "firsts": 20, "cancels": 20, "deaths": 9, "long_percent": 100},
}


@dataclass
class Answered:
    """One answer's moments and counts."""

    begun_s: float = field(default_factory=time.perf_counter)
    at_s: list[float] = field(default_factory=list)
    tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0

    @property
    def first_s(self) -> float:
        """To the first text."""
        return self.at_s[0] - self.begun_s


class Numbers:
    """Fresh request ids and prompts that no cache has seen."""

    def __init__(self) -> None:
        self._last = 0

    def request(self, sentences: int, tokens: int) -> GenerateRequest:
        """A request whose first words are new."""
        self._last += 1
        text = f"Note {self._last * 7919 % 100_003}. " + SENTENCE * sentences + "Tell a very long story about it."
        return GenerateRequest(
            request_id=f"bench-{self._last}", prompt=ChatPrompt((Message("user", text),)), max_tokens=tokens
        )


async def answer(engine: LocalEngine, request: GenerateRequest, into: Answered | None = None) -> Answered:
    """The whole answer."""
    seen = into or Answered()
    async with engine.stream(request) as events:
        async for event in events:
            match event:
                case Started(prompt_tokens, cached_tokens):
                    seen.prompt_tokens, seen.cached_tokens = prompt_tokens, cached_tokens
                case Piece(text, token_ids):
                    seen.tokens += len(token_ids)
                    if text:
                        seen.at_s.append(time.perf_counter())
                case Finished():
                    pass
                case Failed(message=message):
                    raise RuntimeError(message)
    return seen


async def several(engine: LocalEngine, numbers: Numbers, count: int, tokens: int) -> float:
    """Tokens a second of all streams together, from the first token of the first to the last of the last: the prompts
    of the later ones are read meanwhile."""
    seen = [Answered() for _ in range(count)]
    async with trio.open_nursery() as nursery:
        for one in seen:
            nursery.start_soon(answer, engine, numbers.request(0, tokens), one)
    begun_s, over_s = min(one.at_s[0] for one in seen), max(one.at_s[-1] for one in seen)
    return (sum(one.tokens for one in seen) - 1) / (over_s - begun_s)


class Pongs:
    """Asks a worker how many decodes it has done."""

    def __init__(self, host: ModelHost) -> None:
        self._host = host
        self._seen: list[Pong] = []
        received = host.received

        def note(payload: bytes) -> None:
            report = decode_report(payload)
            if isinstance(report, Pong):
                self._seen.append(report)
            received(payload)

        host.received = note  # type: ignore[method-assign]

    async def ask(self) -> Pong:
        """The worker's count, read in the order in which it reads its orders."""
        child, before = self._host.supervisor.child, len(self._seen)
        assert child is not None
        await child.send(encode(Ping()))
        while len(self._seen) == before:  # noqa: ASYNC110 - a reply without an event of its own
            await trio.sleep(0.001)
        return self._seen[-1]


async def decodes_after_cancel(engine: LocalEngine, numbers: Numbers, pongs: Pongs, *, reading: bool = False) -> int:
    """Decodes that the worker still did for an answer after it had read that nobody wants it.

    reading: it is left while its long prompt is read, and one chunk of it may end.
    """
    pieces = 0
    async with engine.stream(numbers.request(LONG_SENTENCES if reading else 1, 400)) as events:
        async for event in events:
            pieces += isinstance(event, Piece)
            if pieces >= 5 or (reading and isinstance(event, Started)):
                break
    at_cancel = (await pongs.ask()).decodes
    last = await pongs.ask()
    while last.running:
        last = await pongs.ask()
    await trio.sleep(0.2)
    return (await pongs.ask()).decodes - at_cancel


async def deaths(report: Report, engine: LocalEngine, numbers: Numbers, count: int) -> None:
    """The worker is killed in mid-answer: when that is known, and when the same answer goes on.

    Each is the first crash in a row: the second one waits for half a second, the fifth is not started again.
    """
    known, again = [], []
    for number in range(count):
        engine.release()
        killed_s = resumed_s = 0.0
        async with engine.stream(numbers.request(1, 60)) as events:
            async for event in events:
                if isinstance(event, Piece) and not killed_s:
                    killed_s = time.perf_counter()
                    os.kill(engine.worker_pids[0], (signal.SIGKILL, signal.SIGSEGV, signal.SIGILL)[number % 3])
                elif isinstance(event, Resumed):
                    resumed_s = time.perf_counter()
                    known.append(resumed_s - killed_s)
                elif isinstance(event, Piece) and resumed_s:
                    again.append(time.perf_counter() - killed_s)
                    break
    report.add(f"worker killed in mid-answer: known after, worst of {count}", max(known) * 1000, "ms", at_most=100)
    report.add(f"worker killed in mid-answer: writing again after, worst of {count}", max(again), "s", at_most=2)


@asynccontextmanager
async def running() -> AsyncIterator[LocalEngine]:
    """An engine with a cold worker."""
    engine = LocalEngine([MODELS], limits=HostLimits())
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        yield engine
        nursery.cancel_scope.cancel()


def rss_mib(engine: LocalEngine) -> float:
    """Memory of the worker."""
    return sum(psutil.Process(pid).memory_info().rss for pid in engine.worker_pids) / 2**20


async def measure(report: Report, load: dict[str, int], parts: Sequence[str]) -> None:
    """The rows of these parts."""
    long_share, rounds = load["long_percent"] / 100, load["rounds"]
    if "worker" in parts:
        await measure_worker(report, load)
    if "loop" in parts:
        await trio.to_thread.run_sync(partial(measure_loop, report, tokens=load["tokens"], rounds=rounds))
    if "turns" in parts:
        await measure_prefixes(report, rounds=rounds // 2 + 1)
    if "long" in parts:
        await trio.to_thread.run_sync(partial(measure_chunks, report, rounds=rounds, long_share=long_share))
        await measure_gaps(report, long_share=long_share)


async def measure_worker(report: Report, load: dict[str, int]) -> None:
    """Speed, memory, cancels and deaths."""
    loads = []
    for _ in range(load["rounds"]):
        async with running() as engine:
            await engine.models()
            begun_s = time.perf_counter()
            await engine.warm()
            loads.append(time.perf_counter() - begun_s)
    async with running() as engine:
        await engine.warm()
        numbers = Numbers()
        health = await engine.health()
        model = health.model
        assert model is not None
        said = f"{model.name} {model.quantisation}, {health.threads} threads"
        report.add(f"worker: start to ready, box raised ({said}), median", median(loads), "s")
        report.add("worker: memory with the model loaded", rss_mib(engine), "MiB")
        firsts = [(await answer(engine, numbers.request(1, 4))).first_s for _ in range(load["firsts"] + 1)][1:]
        report.add("first token, 40-token prompt, median", median(firsts) * 1000, "ms")
        longs = [await answer(engine, numbers.request(LONG_SENTENCES, 2)) for _ in range(load["rounds"])]
        fresh = [one.prompt_tokens - one.cached_tokens for one in longs]
        rates = [count / one.first_s for count, one in zip(fresh, longs, strict=True)]
        report.add(f"prefill of {int(median(fresh))} tokens, median", median(rates), "1/s")
        history = numbers.request(LONG_SENTENCES, 2)
        await answer(engine, history)
        again = await answer(engine, history)
        report.add(
            f"first token of the same {again.prompt_tokens} tokens again, {again.cached_tokens} of them cached",
            again.first_s * 1000, "ms", baseline=median([one.first_s for one in longs]) * 1000,
        )
        alone = 0.0
        for streams in STREAMS:
            rate = median([await several(engine, numbers, streams, load["tokens"]) for _ in range(load["rounds"])])
            alone = alone or rate
            report.add(f"tokens a second, {streams} at once, all together, median", rate, "1/s", baseline=alone)
        report.add("worker: memory after it", rss_mib(engine), "MiB")
        (host, _), = engine._hosts.values()
        pongs = Pongs(host)
        after = [await decodes_after_cancel(engine, numbers, pongs) for _ in range(load["cancels"])]
        report.add(f"decodes after a cancel, worst of {len(after)}", max(after), "", at_most=1)
        reading = [await decodes_after_cancel(engine, numbers, pongs, reading=True) for _ in range(load["cancels"])]
        report.add(f"decodes after a cancel while the prompt is read, worst of {len(reading)}", max(reading), "",
                   at_most=1)
        await deaths(report, engine, numbers, load["deaths"])


def main() -> None:
    """Measure and print; the exit code says whether every bound was met."""
    given = options("engine", parts=PARTS)
    report = Report("engine")
    trio.run(measure, report, LOAD[QUICK if given.quick else FULL], given.only)
    report.print(as_json=given.json)
    sys.exit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
