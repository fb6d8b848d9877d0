"""The engine against llama.cpp's C++ server and against the high-level Python class: same model, threads and machine.

Run from the checkout: python -m benchmarks.rivals [--quick] [--json] [--only streams serial turns]. The sides take
turns round by round; the medians of both are compared. The server (package xllamacpp) is a child process asked over
HTTP for whole answers, while ours streams every token; without it its rows are left out. A machine's speed drifts by
more than the sides differ, so the bound holds the median of the rounds' ratios. Both may use the same number
of threads, and these wait alike (cpp_server.WAITING). The instruction sets of both stand in the first row: figures of
different ones can't be compared. A row says how busy the machine was with other things.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil
import trio

from benchmarks.cpp_server import WAITING, Cost, CppServer, cpp_server, cpu_s
from benchmarks.engine import Answered, answer
from benchmarks.prefixes import FOLLOW_UP, HISTORY_SENTENCES, SENTENCE, turn
from benchmarks.report import Report, options
from benchmarks.timing import median
from offload.local_engine import LocalEngine, physical_cores
from offload.model_host import HostLimits
from offload.ports import ChatPrompt, GenerateRequest, TextPrompt

MODELS = Path(sys.prefix) / "share" / "kith" / "models"
CONTEXT_TOKENS, SLOTS = 8192, 8
STREAMS = (1, 4, 8)
AFTERWARDS_S = 0.5
PARTS = ("streams", "serial", "turns")
QUICK, FULL = True, False
LOAD = {QUICK: {"rounds": 3, "tokens": 32, "serial": 1, "turns": 1, "history": 24},
        FULL: {"rounds": 15, "tokens": 48, "serial": 5, "turns": 6, "history": HISTORY_SENTENCES}}
SERIAL = """
import json, sys, time
from llama_cpp import Llama
path, threads, tokens = sys.argv[1], *map(int, sys.argv[2:4])
llama = Llama(path, n_ctx=4096, n_threads=threads, n_threads_batch=threads, verbose=False)
llama("Hi", max_tokens=2)
print("ready", flush=True)
for line in sys.stdin:
    print(sum(llama(prompt, max_tokens=tokens, temperature=0)["usage"]["completion_tokens"]
              for prompt in json.loads(line)), flush=True)
"""


class Rates:
    """Tokens a second by the wall and by the CPU, one of each round."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    async def take(self, pid: int, work: Callable[[], Awaitable[int]]) -> None:
        """Time work, which tells how many tokens it wrote.

        What the process does afterwards, while nobody asks, counts as CPU time and does not run in the other's time.
        """
        wall_s, spent_s = time.perf_counter(), cpu_s(pid)
        tokens = await work()
        self.wall.append(tokens / (time.perf_counter() - wall_s))
        await trio.sleep(AFTERWARDS_S)
        self.cpu.append(tokens / (cpu_s(pid) - spent_s))


class Others:
    """What the machine's other programs, and the asker itself, use meanwhile."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._begun_s, self._before_s = time.perf_counter(), self._used_s()

    def share(self) -> float:
        """CPU seconds a second since the beginning."""
        return max(0.0, self._used_s() - self._before_s) / (time.perf_counter() - self._begun_s)

    def _used_s(self) -> float:
        whole = psutil.cpu_times()
        return float(whole.user + whole.nice + whole.system) - sum(cpu_s(pid) for pid in self._pids)


class Prompts:
    """Plain prompts of 36 to 38 tokens that no cache has seen."""

    def __init__(self) -> None:
        self._last = 0

    def fresh(self, count: int) -> list[str]:
        """So many more."""
        found = []
        for _ in range(count):
            self._last += 1
            number = self._last * 7919 % 100_003
            found.append(f"Note {number}. {SENTENCE}A long story about it begins so: Once")
        return found


async def measure(report: Report, load: dict[str, int], parts: Sequence[str]) -> None:
    """The rows of these parts."""
    path = str(next(MODELS.glob("*.gguf")))
    threads = physical_cores()
    engine = LocalEngine([MODELS], limits=HostLimits(context_tokens=CONTEXT_TOKENS, slots=SLOTS), threads=threads)
    with cpp_server(path, context_tokens=CONTEXT_TOKENS, threads=threads) as theirs:
        async with trio.open_nursery() as nursery:
            await nursery.start(engine.run)
            await engine.warm()
            ours_flags = (await engine.health()).backend
            if theirs is not None:
                same = "the same" if set(theirs.flags.split()) == set(ours_flags.split()) else "NOT the same"
                report.add(f"threads of each side; instruction sets {same}: ours {ours_flags}; server {theirs.flags}",
                           threads, "")
            others = Others([engine.worker_pids[0], *([theirs.pid] if theirs is not None else [])])
            if "streams" in parts:
                await _streams(report, engine, theirs, load)
            report.add("meanwhile all else on this machine used, of one core", others.share() * 100, "%")
            if "serial" in parts:
                await _serial(report, engine, path, threads, load)
            if "turns" in parts and theirs is not None:
                await _second_turns(report, engine, theirs, load)
            nursery.cancel_scope.cancel()


async def _streams(report: Report, engine: LocalEngine, theirs: CppServer | None, load: dict[str, int]) -> None:
    prompts, tokens = Prompts(), load["tokens"]
    pid = engine.worker_pids[0]
    for streams in STREAMS:
        ours, server = Rates(), Rates()
        for number in range(load["rounds"] + 1):
            async def mine(streams: int = streams) -> int:
                return await _ours_at_once(engine, prompts.fresh(max(streams, 2)), streams, tokens)

            async def its(streams: int = streams) -> int:
                return await _theirs_at_once(theirs, prompts.fresh(max(streams, 2)), streams, tokens)

            sides = [(ours, pid, mine), *([(server, theirs.pid, its)] if theirs is not None else [])]
            for rates, of, work in sides if number % 2 else reversed(sides):
                await (rates if number else Rates()).take(of, work)
        report.add(f"{streams} at once: tokens a second, ours / server", median(ours.wall), "1/s",
                   baseline=median(server.wall) if server.wall else None)
        if server.wall:
            ratios = [mine / its for mine, its in zip(ours.wall, server.wall, strict=True)]
            report.add(f"{streams} at once: tokens a second beside the server's, median ratio of {len(ratios)} rounds",
                       median(ratios), "x", at_least=1.0)
        report.add(f"{streams} at once: tokens a CPU second, ours / server", median(ours.cpu), "1/s",
                   baseline=median(server.cpu) if server.cpu else None)


async def _ours_at_once(engine: LocalEngine, prompts: list[str], streams: int, tokens: int) -> int:
    seen = [Answered() for _ in prompts]
    room = trio.CapacityLimiter(streams)

    async def one(place: int) -> None:
        async with room:
            request = GenerateRequest(
                request_id=os.urandom(6).hex(), prompt=TextPrompt(prompts[place]), max_tokens=tokens)
            await answer(engine, request, seen[place])

    async with trio.open_nursery() as nursery:
        for place in range(len(prompts)):
            nursery.start_soon(one, place)
    return sum(one.tokens for one in seen)


async def _theirs_at_once(theirs: CppServer | None, prompts: list[str], streams: int, tokens: int) -> int:
    assert theirs is not None
    cost = Cost()
    for begin in range(0, len(prompts), streams):
        await theirs.ask(cost, [
            {"prompt": prompt, "n_predict": tokens, "cache_prompt": False}
            for prompt in prompts[begin:begin + streams]])
    return cost.tokens


async def _serial(report: Report, engine: LocalEngine, path: str, threads: int, load: dict[str, int]) -> None:
    """Eight requests at once against the high-level class of llama-cpp-python, which takes them one after the other:
    as a program gets it by itself, and with its threads waiting as ours do."""
    prompts, tokens = Prompts(), load["tokens"]
    ours, plain, alike = Rates(), Rates(), Rates()
    with (_high_level(path, threads, tokens, {}) as as_it_comes,
          _high_level(path, threads, tokens, WAITING) as waiting):
        for number in range(load["serial"] + 1):
            sides = ((ours, _Asked(engine.worker_pids[0], lambda: _ours_at_once(
                engine, prompts.fresh(SLOTS), SLOTS, tokens))),
                *((rates, _Asked(serial.pid, lambda serial=serial: serial.ask(prompts.fresh(SLOTS))))
                  for rates, serial in ((plain, as_it_comes), (alike, waiting))))
            for rates, asked in sides:
                await (rates if number else Rates()).take(asked.pid, asked.work)
    for serial, how in ((plain, "as it comes"), (alike, "waiting as ours")):
        ratios = [mine / its for mine, its in zip(ours.wall, serial.wall, strict=True)]
        report.add(f"8 requests: tokens a second, ours at once / high-level class one by one, {how}", median(ours.wall),
                   "1/s", baseline=median(serial.wall))
        report.add(f"the same, median ratio of {len(ratios)} rounds", median(ratios), "x", at_least=2.0)
        report.add(f"8 requests: tokens a CPU second, ours / high-level class, {how}", median(ours.cpu), "1/s",
                   baseline=median(serial.cpu))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A process and what it is to do."""

    pid: int
    work: Callable[[], Awaitable[int]]


class _HighLevel:
    """A process with the high-level class."""

    def __init__(self, pid: int, said: IO[str], heard: IO[str]) -> None:
        self.pid = pid
        self._said = said
        self._heard = heard

    async def ask(self, prompts: list[str]) -> int:
        """All of these, one after the other; how many tokens it wrote."""
        print(json.dumps(prompts), file=self._said, flush=True)
        return int(await trio.to_thread.run_sync(self._heard.readline))


@contextmanager
def _high_level(path: str, threads: int, tokens: int, environment: Mapping[str, str]) -> Iterator[_HighLevel]:
    """It, ready."""
    with subprocess.Popen(
            [sys.executable, "-P", "-c", SERIAL, path, str(threads), str(tokens)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, **environment}) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        yield _HighLevel(process.pid, process.stdin, process.stdout)
        process.stdin.close()


async def _second_turns(report: Report, engine: LocalEngine, theirs: CppServer, load: dict[str, int]) -> None:
    """The next turn of a long conversation, remembered by both; a few in each conversation, the sides in turn."""
    wall: dict[str, list[float]] = {"ours": [], "server": []}
    spent: dict[str, list[float]] = {"ours": [], "server": []}
    pid = engine.worker_pids[0]
    for number in range(1, load["turns"] + 1):
        opening = turn(number + 5000, load["history"])
        _, text = await _told(engine, opening)
        _, said = await theirs.first_token_s({"prompt": rendered(opening), "n_predict": 16})
        for again in range(4):
            question = FOLLOW_UP + " And then?" * again
            mine, its = (turn(number + 5000, load["history"], told, question) for told in (text, said))
            begun_s = cpu_s(pid)
            wall["ours"].append((await _told(engine, mine, 1))[0])
            spent["ours"].append(cpu_s(pid) - begun_s)
            begun_s = cpu_s(theirs.pid)
            wall["server"].append((await theirs.first_token_s({"prompt": rendered(its), "n_predict": 1}))[0])
            spent["server"].append(cpu_s(theirs.pid) - begun_s)
    report.add("next turn, remembered: time to the first token, ours / server", median(wall["ours"]) * 1000, "ms",
               baseline=median(wall["server"]) * 1000, ratio_at_most=1.1)
    report.add("next turn, remembered: CPU to the first token, ours / server", median(spent["ours"]) * 1000, "ms",
               baseline=median(spent["server"]) * 1000, ratio_at_most=1.1)


async def _told(engine: LocalEngine, prompt: ChatPrompt, tokens: int = 16) -> tuple[float, str]:
    """How long until the first text, and the text."""
    begun_s, first_s, text = time.perf_counter(), 0.0, ""
    request = GenerateRequest(request_id=os.urandom(6).hex(), prompt=prompt, max_tokens=tokens)
    async with engine.stream(request) as events:
        async for event in events:
            piece = getattr(event, "text", "")
            if piece and not first_s:
                first_s = time.perf_counter() - begun_s
            text += piece
    return first_s, text


def rendered(prompt: ChatPrompt) -> str:
    """The prompt as the embedded model's template writes it."""
    system = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    turns = "".join(f"<|im_start|>{one.role}\n{one.content}<|im_end|>\n" for one in prompt.messages)
    return f"{system}{turns}<|im_start|>assistant\n"


def main() -> None:
    """Measure and print; the exit code says whether every bound was met."""
    given = options("rivals", parts=PARTS)
    report = Report("rivals")
    trio.run(measure, report, LOAD[QUICK if given.quick else FULL], given.only)
    report.print(as_json=given.json)
    sys.exit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
