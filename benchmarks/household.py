"""What several machines and several askers make of it: who is picked, whose turn it is, two machines beside one, and
eight delegated streams beside the same asked directly.
Run: python -m benchmarks.household [--quick] [--json] [--only picking turns streams prefill decode bare] [--rounds N]
Two machines beside one take minutes and are left out of --quick.

Jobs pass the real network on loopback, guard, ledger, grant check and choice; each provider's engine is pinned to one
core, and this process - the asker, and both providers' nodes - runs on whichever is free: on a machine of two cores it
takes its time from the engines. "bare" is what the two cores give with nothing of that between, the same jobs handed to
the same engines: what two beside one could be at best.
"""

import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import trio

from benchmarks.offload import MODELS, SENTENCE, Timed, ask_delegated, ask_directly, clear, round_trip_ms
from benchmarks.report import Report, options
from benchmarks.timing import median, pin_self
from benchmarks.two_sides import FreeUsage, OneGrant, Side, sides, today
from node.clock import SystemEntropy
from node.daemon.reservations import Reservations
from offload.client import AnswerBroken, ask_peer
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.ports import ChatPrompt, Failed, GenerateRequest, Message, Piece, Queued
from offload.prediction import Speed
from offload.quota import QuotaBook
from offload.router import JobNeeds, LocalView, Offer, PeerCandidate, choose
from offload.server import InferenceServer
from protocol.inference import InferRequest, PromptParts
from protocol.inference import Part as WirePart
from protocol.names import INFER

QUICK, FULL = True, False
PARTS = ("picking", "turns", "streams", "prefill", "decode", "bare")
LOAD = {
    QUICK: {"picks": 3000, "rounds": 0, "jobs": 0, "streams": 8, "tokens": 24, "turns": 1},
    FULL: {"picks": 30_000, "rounds": 5, "jobs": 8, "streams": 8, "tokens": 64, "turns": 5},
}
GIVEN_UP: list[str] = []
"""Answers in which nothing moved for 3 s, so that they were asked for again: this machine had other work."""
OFFER = Offer("m", "ab" * 32, 8192, speed=Speed(0.003, 0.02, 3.0))
NOBODY_HERE = LocalView("asker", None)
LONG_PROMPT_SENTENCES = 52      # about 1,150 tokens
KINDS = {
    "prefill": ("prefill-heavy (about 1,150 tokens to read, 16 to write)", 1.6),
    "decode": ("decode-heavy (20 tokens to read, 128 to write)", 1.3),
}


@dataclass
class Job:
    """What one job asks for."""

    text: str
    tokens: int


@dataclass
class Provider:
    """One machine at home: its side of the network, and its engine."""

    side: Side
    engine: LocalEngine
    done: int = 0

    def cpu_s(self) -> float:
        """What its engine has used so far."""
        times = [psutil.Process(pid).cpu_times() for pid in self.engine.worker_pids]
        return float(sum(one.user + one.system for one in times))


def picking(report: Report, runs: int) -> None:
    """Three machines with 10, 20 and 0 requests of ours under way, in any order and distance; and a burst of jobs."""
    dice, idle = random.Random(7), 0
    for _ in range(runs):
        book = Reservations(time.monotonic)
        with ExitStack() as held:
            for peer_id, count in (("a", 10), ("b", 20)):
                for _ in range(count):
                    held.enter_context(book.hold(peer_id, dice.uniform(0.5, 8.0)))
            peers = [_seen(book, peer_id, dice) for peer_id in "abc"]
            dice.shuffle(peers)
            idle += choose(JobNeeds("auto", 300, 256), NOBODY_HERE, tuple(peers), mode="lan").peer_id == "c"
    report.add(f"idle machine of three is picked ({runs} draws; least-used by a public rival: 33 %)",
               100 * idle / runs, "%", at_least=100)
    spread: Counter[str] = Counter()
    book = Reservations(time.monotonic)
    with ExitStack() as held:
        for _ in range(9):
            peers = [_seen(book, peer_id, dice) for peer_id in "abc"]
            choice = choose(JobNeeds("auto", 300, 256), NOBODY_HERE, tuple(peers), mode="lan")
            assert choice.peer_id is not None
            held.enter_context(book.hold(choice.peer_id, choice.work_s))
            spread[choice.peer_id] += 1
    report.add("nine jobs at one moment over three equal machines: most on one", max(spread.values()), "", at_most=3)


def _seen(book: Reservations, peer_id: str, dice: random.Random) -> PeerCandidate:
    rtt_s = dice.uniform(0.0005, 0.02)
    return PeerCandidate(
        peer_id, peer_id, "home", True, True, (OFFER,), in_flight=book.count(peer_id),
        wait_s=book.wait_s(peer_id, 0.0, 0.0), rtt_s=rtt_s)


async def taking_turns(report: Report, tokens: int) -> None:
    """Four askers with two requests each at an engine of two slots: order, places told, and how even it is."""
    engine = LocalEngine([MODELS], limits=HostLimits(slots=2), threads=1)
    begun: list[str] = []
    told: Counter[str] = Counter()
    ended_s: dict[str, float] = {}
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        await engine.warm()
        start_s = time.perf_counter()

        async def ask(asker: str, number: int) -> None:
            request = GenerateRequest(
                request_id=f"{asker}-{number}", principal=asker, max_tokens=tokens,
                prompt=ChatPrompt((Message("user", f"{asker} {number}: a long story"),)))
            async with engine.stream(request) as events:
                async for event in events:
                    if isinstance(event, Queued):
                        told[asker] += 1
                    elif isinstance(event, Piece) and f"{asker}-{number}" not in begun:
                        begun.append(f"{asker}-{number}")
            ended_s[asker] = time.perf_counter() - start_s

        async with trio.open_nursery() as asking:
            for number in range(2):
                for asker in ("anna", "bea", "cara", "dan"):
                    asking.start_soon(ask, asker, number)
                    await trio.sleep(0.02)
        nursery.cancel_scope.cancel()
    first_round = begun[:4]
    report.add("4 askers, 2 requests each: askers served before anyone's second request", len(
        {name.split("-")[0] for name in first_round}), "", at_least=4)
    report.add("4 askers: how many were told their place in the queue", sum(told[one] > 0 for one in ended_s), "",
               at_least=2)
    report.add("4 askers: last one done beside first one done", max(ended_s.values()), "s",
               baseline=min(ended_s.values()), ratio_at_most=2.0)


async def run_jobs(asker: Side, providers: Sequence[Provider], jobs: Sequence[Job]) -> float:
    """Seconds until all jobs are done, each sent where the router says."""
    book = Reservations(time.monotonic)
    by_id = {one.side.peer_id: one for one in providers}

    async def run(job: Job) -> None:
        """One job, again until it is whole."""
        seen = tuple(
            PeerCandidate(
                one.side.peer_id, one.side.name, "home", True, True, (OFFER,), in_flight=book.count(one.side.peer_id),
                wait_s=book.wait_s(one.side.peer_id, 0.0, 0.0))
            for one in providers)
        needs = JobNeeds("auto", len(job.text) // 4, job.tokens)
        choice = choose(needs, NOBODY_HERE, seen, mode="lan")
        assert choice.peer_id is not None
        provider = by_id[choice.peer_id]
        with book.hold(choice.peer_id, choice.work_s):
            request_id = SystemEntropy().bytes(16)
            clearance = await clear(asker, provider.side, request_id, job.text)
            request = InferRequest(
                request_id=request_id, prompt=PromptParts((WirePart("user", clearance.texts[0]),)),
                max_tokens=job.tokens, deadline_s=600)
            channel = await asker.open_channel(provider.side.peer_id, INFER)
            try:
                await ask_peer(channel, request, clearance, _on_text)
            except AnswerBroken:
                GIVEN_UP.append(provider.side.name)     # nothing moved for 3 s: the machine is overloaded
                await clearance.close("broken")
                return await run(job)
            await clearance.close("end")
            provider.done += 1
            return None

    begun_s = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for job in jobs:
            nursery.start_soon(run, job)
    return time.perf_counter() - begun_s


async def _on_text(_: str) -> bool:
    return True


def jobs_of(kind: str, number: int, count: int) -> list[Job]:
    """Jobs that no engine has seen: their first words differ."""
    if kind == "prefill":
        filling = SENTENCE * LONG_PROMPT_SENTENCES
        return [Job(f"Note {n}. {filling}Say it in ten words.", 16) for n in range(number, number + count)]
    return [Job(f"Tell a long story, number {n}.", 128) for n in range(number, number + count)]


async def run_bare(providers: Sequence[Provider], jobs: Sequence[Job]) -> float:
    """Seconds until all jobs are done, handed round to the engines with no node between."""

    async def run(number: int, job: Job) -> None:
        request = GenerateRequest(
            request_id=SystemEntropy().bytes(16).hex(), principal="bare", max_tokens=job.tokens,
            prompt=ChatPrompt((Message("user", job.text),)))
        async with providers[number % len(providers)].engine.stream(request) as events:
            async for event in events:
                if isinstance(event, Failed):
                    raise RuntimeError(event.message)

    begun_s = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for number, job in enumerate(jobs):
            nursery.start_soon(run, number, job)
    return time.perf_counter() - begun_s


@dataclass
class Round:
    """What one round of jobs took, and gave. engine_s: CPU of the engine that had most to do, which no other work on
    this machine changes."""

    wall_s: float
    engine_s: float
    own_ms: float
    most: int


async def one_round(asker: Side, group: Sequence[Provider], jobs: Sequence[Job], *, bare: bool) -> Round:
    """The jobs by these machines."""
    done, engines = [one.done for one in group], [one.cpu_s() for one in group]
    before = resource.getrusage(resource.RUSAGE_SELF)
    wall_s = await (run_bare(group, jobs) if bare else run_jobs(asker, group, jobs))
    after = resource.getrusage(resource.RUSAGE_SELF)
    own_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Round(
        wall_s, max(one.cpu_s() - was for one, was in zip(group, engines, strict=True)), 1000 * own_s / len(jobs),
        max(one.done - was for one, was in zip(group, done, strict=True)))


async def two_beside_one(
    report: Report, asker: Side, providers: Sequence[Provider], load: dict[str, int], kind: str, *, bare: bool
) -> None:
    """The same kind of jobs with one machine and with two, taking turns. What is to be read is new each time; what is
    to be written is the same for both, since answers differ in length."""
    count, rounds = load["jobs"], load["rounds"]
    name, bound = KINDS[kind]
    one: list[Round] = []
    two: list[Round] = []
    number = int(bare) * 10_000
    for _ in range(rounds):
        for group, took in ((providers[:1], one), (providers, two)):
            jobs = jobs_of(kind, number, count)
            number += count if kind == "prefill" or took is two else 0
            took.append(await one_round(asker, group, jobs, bare=bare))
            print(f"{kind}{' bare' if bare else ''}, {len(group)} at work: {took[-1]}", file=sys.stderr)
    said = f"{count} jobs, {name}{', engines only' if bare else ''}"
    report.add(f"{said}: one machine beside two, median of {rounds}", median([each.wall_s for each in one]), "s",
               baseline=median([each.wall_s for each in two]), ratio_at_least=None if bare else bound)
    report.add(f"{said}: CPU of the busier engine, one beside two", median([each.engine_s for each in one]), "s",
               baseline=median([each.engine_s for each in two]), ratio_at_least=bound)
    report.add(f"{said}: CPU of asker and both nodes together, a job", median([each.own_ms for each in two]), "ms")
    if not bare:
        report.add(f"{said}: most done by one of two", max(each.most for each in two), "", at_most=count // 2 + 1)


async def many_streams(report: Report, asker: Side, provider: Provider, load: dict[str, int]) -> None:
    """Eight answers at once, delegated beside direct, taking turns: tokens a second of all of them together."""
    streams, tokens = load["streams"], load["tokens"]
    number = 0

    async def burst(ask: Callable[[int], Awaitable[Timed]]) -> tuple[float, float]:
        """Tokens a second of all, and the median of the times to the first token."""
        nonlocal number
        timed: list[Timed] = []

        async def one(n: int) -> None:
            timed.append(await ask(n))

        async with trio.open_nursery() as nursery:
            for _ in range(streams):
                number += 1
                nursery.start_soon(one, number)
        first = min(one.at_s[0] for one in timed)
        last = max(one.at_s[-1] for one in timed)
        return sum(len(one.at_s) for one in timed) / (last - first), median([one.first_ms for one in timed])

    rtt_ms = await round_trip_ms(asker, provider.side, 50)
    direct: list[tuple[float, float]] = []
    delegated: list[tuple[float, float]] = []
    while len(direct) <= load["turns"]:   # the first turn warms up
        pair: list[tuple[float, float]] = []
        try:
            pair.append(await burst(lambda n: ask_directly(provider.engine, asker.peer_id, n + 50_000, tokens)))
            pair.append(await burst(lambda n: ask_delegated(asker, provider.side, n + 50_000, tokens)))
        except* AnswerBroken:
            GIVEN_UP.append(provider.side.name)
        if len(pair) == 2:
            direct.append(pair[0])
            delegated.append(pair[1])
    del direct[0], delegated[0]
    (rate, first_ms), (rate_there, first_ms_there) = (
        [median(values) for values in zip(*pairs, strict=True)] for pairs in (direct, delegated))
    said = f"{streams} streams of {tokens} tokens"
    report.add(f"delegated: tokens a second, {said}", rate_there, "1/s", baseline=rate)
    report.add(f"delegated: tokens a second beside direct, {said}, median of pair ratios",
               median([there[0] / here[0] for here, there in zip(direct, delegated, strict=True)]), "", at_least=0.97)
    report.add(f"delegated: time to first token, {said}, median of the streams", first_ms_there, "ms",
               baseline=first_ms, at_most=round(1.05 * first_ms + rtt_ms, 3))


@asynccontextmanager
async def household() -> AsyncIterator[tuple[Side, list[Provider]]]:
    """The asker, and two providers with an engine each, on a core each."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kb-"))
        asker, others = await stack.enter_async_context(sides(Path(folder), 2))
        nursery = await stack.enter_async_context(trio.open_nursery())
        providers = []
        for number, side in enumerate(others):
            limits = HostLimits(slots=4, context_tokens=8192, queue_limit=32)
            engine = LocalEngine([MODELS], limits=limits, threads=1)
            await nursery.start(engine.run)
            await engine.warm()
            for pid in engine.worker_pids:
                for task in os.listdir(f"/proc/{pid}/task"):
                    os.sched_setaffinity(int(task), {number % (os.cpu_count() or 1)})
            side.serve[INFER] = InferenceServer(
                engine, OneGrant(side.peer_id, asker.peer_id), QuotaBook(FreeUsage(), today)).serve
            providers.append(Provider(side, engine))
        yield asker, providers
        nursery.cancel_scope.cancel()


async def measure(report: Report, load: dict[str, int], parts: Sequence[str]) -> None:
    """The rows that need engines."""
    if "turns" in parts:
        await taking_turns(report, load["tokens"])
    if not {"streams", *KINDS} & set(parts):
        return
    async with household() as (asker, providers):
        if "streams" in parts:
            everywhere = os.sched_getaffinity(0)
            pin_self()      # the engine has the other core
            await many_streams(report, asker, providers[0], load)
            os.sched_setaffinity(0, everywhere)
        for kind in KINDS if load["rounds"] else ():
            if kind in parts:
                await two_beside_one(report, asker, providers, load, kind, bare=False)
                if "bare" in parts:
                    fewer = {**load, "rounds": max(1, load["rounds"] // 2)}
                    await two_beside_one(report, asker, providers, fewer, kind, bare=True)
        report.add("answers given up as stalled and asked for again", len(GIVEN_UP), "")


def main() -> None:
    """Measure and print; the exit code says whether every bound was met."""
    given = options("household", parts=PARTS)
    load = dict(LOAD[QUICK if given.quick else FULL])
    load["rounds"] = load["rounds"] if given.rounds is None else given.rounds
    report = Report("household")
    if "picking" in given.only:
        picking(report, load["picks"])
    trio.run(measure, report, load, given.only)
    report.print(as_json=given.json)
    sys.exit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
