"""What remembering a prompt saves, in memory and from disk, and what a long prompt does to those being answered.

Rows of benchmarks.engine. Must not know jumps, drafts or peers.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import trio

from benchmarks.report import Report
from offload.kv_vault import KvVault
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.ports import ChatPrompt, Failed, GenerateRequest, Message, Piece, Started

__all__ = ["measure_gaps", "measure_prefixes"]

MODELS = Path(sys.prefix) / "share" / "kith" / "models"
FOLLOW_UP = "And what happens to it in winter?"
SENTENCE = "The tank on the roof holds water for a week and is filled again from the well behind the house. "
HISTORY_SENTENCES, LONG_SENTENCES, SHORT_SENTENCES = 72, 195, 4     # about 1,500, 4,000 and 90 tokens
STEP_TARGET_S = 0.25
IDLE_SEQUENCES = 20


@dataclass
class Seen:
    """One answer: when its pieces came, and the worker's CPU until the first one."""

    begun_s: float = field(default_factory=time.perf_counter)
    at_s: list[float] = field(default_factory=list)
    text: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    cpu_s: float = 0.0

    @property
    def first_s(self) -> float:
        """To the first token."""
        return self.at_s[0] - self.begun_s


@asynccontextmanager
async def running(folder: Path, context_tokens: int = 8192) -> AsyncIterator[LocalEngine]:
    """An engine whose worker is ready and remembers on disk."""
    engine = LocalEngine(
        [MODELS], limits=HostLimits(context_tokens=context_tokens), vault=KvVault(folder, bytes(32), os.urandom))
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        await engine.warm()
        yield engine
        nursery.cancel_scope.cancel()


def worker_cpu_s(engine: LocalEngine) -> float:
    """CPU that the workers have used."""
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in engine.worker_pids)


def turn(number: int, sentences: int, *later: str) -> ChatPrompt:
    """A chat whose first words are new; later: answers and questions in turn."""
    first = Message("user", f"Note {number}. " + SENTENCE * sentences + "Say it in one sentence.")
    roles = ("assistant", "user")
    return ChatPrompt((first, *(Message(roles[place % 2], text) for place, text in enumerate(later))))


async def ask(engine: LocalEngine, prompt: ChatPrompt, tokens: int, into: Seen | None = None) -> Seen:
    """The whole answer."""
    seen = into or Seen()
    before_s = worker_cpu_s(engine)
    request = GenerateRequest(request_id=os.urandom(4).hex(), prompt=prompt, max_tokens=tokens)
    async with engine.stream(request) as events:
        async for event in events:
            match event:
                case Started(prompt_tokens, cached_tokens):
                    seen.prompt_tokens, seen.cached_tokens = prompt_tokens, cached_tokens
                case Piece(text, ids):
                    if ids and not seen.at_s:
                        seen.cpu_s = worker_cpu_s(engine) - before_s
                    if ids:
                        seen.at_s.append(time.perf_counter())
                    seen.text += text
                case Failed(message=message):
                    raise RuntimeError(message)
                case _:
                    pass
    return seen


async def measure_prefixes(report: Report, *, rounds: int) -> None:
    """What remembering saves."""
    with tempfile.TemporaryDirectory() as name:
        await _second_turns(report, Path(name), rounds)


async def measure_gaps(report: Report, *, long_share: float = 1.0) -> None:
    """What a long prompt does to others. long_share: how much of the 4,000-token prompt is used, for a quick look."""
    with tempfile.TemporaryDirectory() as name:
        await _long_prompt(report, Path(name), int(LONG_SENTENCES * long_share))


async def _second_turns(report: Report, folder: Path, rounds: int) -> None:
    colds, warms, disks = [], [], []
    for number in range(1, rounds + 1):
        async with running(folder) as engine:
            await ask(engine, turn(0, 1), 4)
            colds.append(await ask(engine, turn(number, HISTORY_SENTENCES), 16))
        second = turn(number, HISTORY_SENTENCES, colds[-1].text, FOLLOW_UP)
        async with running(folder) as engine:       # another process, which has read nothing yet
            disks.append(await ask(engine, second, 16))
            third = (*(message.content for message in second.messages[1:]), disks[-1].text, FOLLOW_UP)
            warms.append(await ask(engine, turn(number, HISTORY_SENTENCES, *third), 16))
    for where, found in (("from disk after a restart", disks), ("remembered", warms)):
        cached, whole = found[0].cached_tokens, found[0].prompt_tokens
        report.add(
            f"next turn, {cached} of {whole} tokens {where}: first token, median",
            _ms([one.first_s for one in found]), "ms", baseline=_ms([one.first_s for one in colds]),
            ratio_at_most=1 / 7)
        report.add(
            f"next turn {where}: CPU to the first token, median", _ms([one.cpu_s for one in found]), "ms",
            baseline=_ms([one.cpu_s for one in colds]))
    tokens = warms[0].prompt_tokens + 15
    report.add("a cached token, in memory and sealed on disk", _largest_bytes(folder) / tokens / 1024, "KiB")
    async with running(folder) as engine:
        await ask(engine, turn(0, 1), 4)
        before = _rss_kib(engine)
        for number in range(IDLE_SEQUENCES):
            await ask(engine, turn(900 + number, SHORT_SENTENCES), 2)
        report.add(
            f"an idle sequence of 90 tokens beside their cells, with what is parked, of {IDLE_SEQUENCES}",
            max(0.0, _rss_kib(engine) - before) / IDLE_SEQUENCES, "KiB")


async def _long_prompt(report: Report, folder: Path, sentences: int) -> None:
    """Three chats stream; after a while a long prompt arrives."""
    async with running(folder) as engine:
        chats = [Seen() for _ in range(3)]
        long = Seen()
        async with trio.open_nursery() as nursery:
            for number, chat in enumerate(chats):
                prompt = ChatPrompt((Message("user", f"Tell a very long story about the {number + 3} seas."),))
                nursery.start_soon(ask, engine, prompt, 1200, chat)
            while min(len(chat.at_s) for chat in chats) < 30:  # noqa: ASYNC110 - they have no event of their own
                await trio.sleep(0.01)
            begun_s, before_s = time.perf_counter(), worker_cpu_s(engine)
            long.begun_s = begun_s
            await ask(engine, turn(77, sentences), 1, long)
            cpu_s = worker_cpu_s(engine) - before_s
            nursery.cancel_scope.cancel()
        calm, busy = [], []
        for chat in chats:
            gaps = list(zip(chat.at_s, chat.at_s[1:], strict=False))
            calm += [to - at for at, to in gaps if to < begun_s]
            busy += [to - at for at, to in gaps if to >= begun_s and at < long.at_s[0]]
        report.add(
            f"gap of three chats while {long.prompt_tokens} tokens are read, p95", _p95(busy) * 1000, "ms",
            baseline=_p95(calm) * 1000, at_most=2.5 * STEP_TARGET_S * 1000)
        report.add("the same, median", _ms(busy), "ms", baseline=_ms(calm))
        report.add("the long prompt's first token", long.first_s, "s")
        report.add("worker CPU meanwhile, chats included", cpu_s, "s")


def _largest_bytes(folder: Path) -> int:
    return max(path.stat().st_size for path in folder.glob("*/*.kv"))


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def _ms(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) * 1000


def _rss_kib(engine: LocalEngine) -> float:
    return sum(psutil.Process(pid).memory_info().rss for pid in engine.worker_pids) / 1024
