"""What delegation and pairing cost, on loopback: a delegated answer beside the same worker asked directly, connecting,
messages, and a paired node that does nothing. Run from the checkout:
python -m benchmarks.offload [--quick] [--json] [--only PART ...]; parts: command, pair, delegation, rest

Delegated and direct take turns, through the same worker process, from one clock; the engine is pinned to one core and
everything else - both nodes' Python - to the other. The text was scanned before the clock starts; scanning is a row of
its own. The rows of the running pair come from two real daemons.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import trio

from benchmarks.report import Report, options
from benchmarks.timing import cpu_ms_of, median, pin_process, pin_self, use_of
from benchmarks.two_sides import ECHO, OPEN_TIMEOUT_S, Allowing, FreeUsage, OneGrant, Side, today, two_sides
from node.cli.demo.nodes import DemoNode
from node.cli.demo.owner import Owner, pair_two
from node.cli.demo.steps import HEAVY
from node.cli.demo.world import make_world
from node.clock import SystemClock, SystemEntropy
from node.mail.deliver import Deliverer
from node.mail.outbox import Outbox
from node.mail.receive import Receiver
from node.privacy.egress import EgressClearance, Part, Purpose
from node.privacy.labels import owner_text
from node.store import mail
from offload.client import ask_peer
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.ports import ChatPrompt, Failed, GenerateRequest, Message, Piece
from offload.quota import QuotaBook
from offload.server import InferenceServer
from protocol.inference import InferRequest, PromptParts
from protocol.inference import Part as WirePart
from protocol.names import INFER, MAIL

MODELS = Path(sys.prefix) / "share" / "kith" / "models"
SENTENCE = "The tank on the roof holds water for a week and is filled again from the well behind the house. "
FILLING_SENTENCES = 8
QUICK, FULL = True, False

LOAD = {
    QUICK: {"pairs": 5, "tokens": 32, "echoes": 50, "links": 5, "messages": 300, "idle_s": 6.0, "status": 30},
    FULL: {"pairs": 15, "tokens": 128, "echoes": 300, "links": 15, "messages": 2000, "idle_s": 60.0, "status": 100},
}


class Timed:
    """Moments of one answer's pieces."""

    def __init__(self) -> None:
        self.begun_s = time.perf_counter()
        self.at_s: list[float] = []
        self._cpu_s = time.process_time()
        self.cpu_ms_per_piece = 0.0

    async def note(self, text: str) -> bool:
        """One piece of text arrived."""
        if text:
            self.at_s.append(time.perf_counter())
            self.cpu_ms_per_piece = (time.process_time() - self._cpu_s) * 1000 / len(self.at_s)
        return True

    @property
    def first_ms(self) -> float:
        """To the first text."""
        return (self.at_s[0] - self.begun_s) * 1000

    @property
    def per_s(self) -> float:
        """Pieces (one token each, as a rule) a second after the first."""
        return (len(self.at_s) - 1) / (self.at_s[-1] - self.at_s[0])


def prompt(number: int) -> str:
    """A prompt of about 180 tokens that no cache has seen: its first words differ."""
    return f"Note {number * 7919 % 100_003}. " + SENTENCE * FILLING_SENTENCES + "Tell a long story about it."


async def ask_directly(engine: LocalEngine, principal: str, number: int, tokens: int) -> Timed:
    """The worker behind the Engine port."""
    request = GenerateRequest(
        request_id=f"direct-{number}", prompt=ChatPrompt((Message("user", prompt(number)),)), principal=principal,
        max_tokens=tokens,
    )
    timed = Timed()
    async with engine.stream(request) as events:
        async for event in events:
            match event:
                case Piece(text):
                    await timed.note(text)
                case Failed(message=message):
                    raise RuntimeError(message)
    return timed


async def clear(asker: Side, provider: Side, request_id: bytes, text: str) -> EgressClearance:
    """What the guard does before the first byte: look, mask, ask, enter in the ledger."""
    return await asker.egress.clear(
        peer=provider.view(), purpose=Purpose.INFER, conversation=request_id.hex(), request_id=request_id.hex(),
        parts=(Part("user", owner_text(text)),), ask=Allowing(), why="benchmark",
    )


async def ask_delegated(asker: Side, provider: Side, number: int, tokens: int) -> Timed:
    """The same through stream, guard, grant check and frames."""
    request_id = SystemEntropy().bytes(16)
    clearance = await clear(asker, provider, request_id, prompt(number))
    request = InferRequest(
        request_id=request_id, prompt=PromptParts((WirePart("user", clearance.texts[0]),)), max_tokens=tokens,
        deadline_s=120,
    )
    timed = Timed()
    channel = await asker.open_channel(provider.peer_id, INFER)
    await ask_peer(channel, request, clearance, timed.note)
    await clearance.close("end")
    return timed


async def round_trip_ms(asker: Side, provider: Side, count: int) -> float:
    """Median of an echo of 32 bytes on an open stream."""
    stream = await asker.network.open(provider.peer_id, ECHO, timeout_s=OPEN_TIMEOUT_S)
    times = []
    for _ in range(count):
        begun_s = time.perf_counter()
        await stream.write(bytes(32))
        left = 32
        while left:
            left -= len(await stream.read(left, deadline_s=5))
        times.append((time.perf_counter() - begun_s) * 1000)
    await stream.reset()
    return median(times)


async def delegation(report: Report, asker: Side, provider: Side, load: dict[str, float], pinned: bool) -> None:
    """First token and tokens a second, delegated beside direct, taking turns."""
    pairs, tokens = int(load["pairs"]), int(load["tokens"])
    rtt_ms = await round_trip_ms(asker, provider, int(load["echoes"]))
    report.add("round trip of 32 bytes on an open stream, median", rtt_ms, "ms")
    engine = LocalEngine([MODELS], limits=HostLimits(), threads=1)
    provider.serve[INFER] = InferenceServer(
        engine, OneGrant(provider.peer_id, asker.peer_id), QuotaBook(FreeUsage(), today)
    ).serve
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        await engine.warm()
        if pinned:
            for pid in engine.worker_pids:
                pin_process(pid)
        direct, delegated = [], []
        for number in range(-2, 2 * pairs, 2):      # the first pair warms up
            one = await ask_directly(engine, asker.peer_id, number + 10, tokens)
            other = await ask_delegated(asker, provider, number + 11, tokens)
            if number >= 0:
                direct.append(one)
                delegated.append(other)
        nursery.cancel_scope.cancel()
    cores = "engine on one core, the rest on another" if pinned else "nothing pinned: one core"
    said = f"median of {pairs} turns, {cores}"
    first = median([timed.first_ms for timed in direct])
    report.add(
        f"delegated: time to first token ({said})", median([timed.first_ms for timed in delegated]), "ms",
        baseline=first, at_most=round(1.05 * first + rtt_ms, 3),
    )
    report.add(
        f"delegated: tokens a second, 1 stream of {tokens} tokens", median([timed.per_s for timed in delegated]), "1/s",
        baseline=median([timed.per_s for timed in direct]),
    )
    report.add(
        "delegated: tokens a second beside direct, median of pair ratios",
        median([b.per_s / a.per_s for a, b in zip(direct, delegated, strict=True)]), "", at_least=0.97,
    )
    report.add(
        "delegated: CPU of both nodes together, a token", median([timed.cpu_ms_per_piece for timed in delegated]), "ms",
        baseline=median([timed.cpu_ms_per_piece for timed in direct]),
    )
    report.add(
        "delegated: added to the first token, median of pair differences",
        median([b.first_ms - a.first_ms for a, b in zip(direct, delegated, strict=True)]), "ms",
    )


async def guarding(report: Report, asker: Side, provider: Side, count: int) -> None:
    """Everything the guard does before a prompt of 1,000 characters leaves, its durable ledger entry included."""
    text = (SENTENCE * 20)[:1000]
    times = []
    for _ in range(count):
        begun_s = time.perf_counter()
        clearance = await clear(asker, provider, SystemEntropy().bytes(16), text)
        times.append((time.perf_counter() - begun_s) * 1000)
        await clearance.close("end")
    report.add("guard: clear 1,000 new characters, ledger entry durable, median", median(times), "ms")


async def connecting(report: Report, asker: Side, provider: Side, rounds: int) -> None:
    """Dial to first byte, and dial to link up (greeted, and an echo came back)."""
    first_byte, link_up = [], []
    for _ in range(rounds):
        await asker.network.disconnect(provider.peer_id)
        begun_s = time.perf_counter()
        await asker.network.connect(provider.peer_id, provider.addresses, timeout_s=OPEN_TIMEOUT_S)
        await round_trip_ms(asker, provider, 1)
        first_byte.append((time.perf_counter() - begun_s) * 1000)
    for _ in range(rounds):
        await asker.network.disconnect(provider.peer_id)
        async with trio.open_nursery() as nursery:
            answering = provider.new_links()
            await nursery.start(answering.run)
            answering.know(asker.peer_id, ())
            calling = asker.new_links()
            await nursery.start(calling.run)
            begun_s = time.perf_counter()
            calling.know(provider.peer_id, provider.addresses)
            await asker.links_up.wait()
            link_up.append((time.perf_counter() - begun_s) * 1000)
            await calling.leave_all("shutdown")
            nursery.cancel_scope.cancel()
    report.add("connect: dial to first byte, warm, median", median(first_byte), "ms", at_most=50)
    report.add("connect: dial to link up, median", median(link_up), "ms")
    await asker.network.connect(provider.peer_id, provider.addresses, timeout_s=OPEN_TIMEOUT_S)


async def messages(report: Report, asker: Side, provider: Side, count: int) -> None:
    """Durable at the sender with its ledger entry, durable at the receiver, acknowledged and settled."""
    clock = SystemClock()
    outbox = Outbox(asker.database, asker.egress, clock, SystemEntropy())
    provider.serve[MAIL] = Receiver(provider.database, clock, lambda peer_id, message_id: None).serve

    async def find(peer_id: str) -> object:
        return provider.view()

    deliverer = Deliverer(
        asker.database, asker.egress, lambda peer_id: asker.open_channel(peer_id, MAIL), find, clock  # type: ignore[arg-type]
    )
    begun_s = time.perf_counter()
    for number in range(count):
        await outbox.put(provider.view(), f"message {number}: the roof is mended", Allowing())
    report.add(f"messages: queued durably, one after another ({count})", count / (time.perf_counter() - begun_s), "1/s")
    async with trio.open_nursery() as nursery:
        await nursery.start(deliverer.run)
        begun_s = time.perf_counter()
        deliverer.peer_up(provider.peer_id)
        while (await asker.database.read(mail.marks, provider.peer_id)).acked < count:  # noqa: ASYNC110 - no event
            await trio.sleep(0.005)
        rate = count / (time.perf_counter() - begun_s)
        nursery.cancel_scope.cancel()
    stored = await provider.database.read(lambda tx: len(mail.inbox(tx, limit=count + 1)))
    if stored != count:
        raise RuntimeError(f"{stored} messages arrived of {count}")
    report.add(f"messages: delivered one way, durable on both sides ({count})", rate, "1/s", at_least=500)


def running_pair(report: Report, load: dict[str, float]) -> None:
    """Two real daemons, paired: start, status, search, and their use while nothing is asked."""
    with tempfile.TemporaryDirectory(prefix="kb-") as folder:
        world = make_world(Path(folder), datetime.now(UTC))
        with DemoNode("phone", world.phone) as phone, DemoNode("home-pc", world.home_pc) as home_pc:
            begun_s = time.perf_counter()
            phone.start()
            report.add("daemon: start to ready", time.perf_counter() - begun_s, "s")
            home_pc.start()
            pair_two(home_pc.client(), phone.client())
            phone.wait_for(lambda status: any(peer["connected"] for peer in status["peers"]), "connected")
            home_pc.client().post("/v1/shares", {"folder": str(world.shared), "peers": ["phone"]})
            Owner(phone.client()).ask("What is on my calendar tomorrow?")
            Owner(phone.client()).ask(HEAVY, local=True)
            time.sleep(2)   # both workers of the phone run from now on, and have nothing to do
            seconds = load["idle_s"]
            use = use_of([phone.pid, home_pc.pid], seconds)
            said = f"idle paired node, over {seconds:g} s"
            busiest = max(one.cpu_s_per_minute for one in use)
            report.add(f"{said}: CPU, worse of two daemons", busiest, "s/min", at_most=0.6)
            report.add(f"{said}: memory, worse of two daemons", max(one.rss_mib for one in use), "MiB", at_most=150)
            report.add(f"{said}: CPU of its two workers", max(one.children_cpu_s_per_minute for one in use), "s/min")
            report.add(f"{said}: memory of its two workers", max(one.children_rss_mib for one in use), "MiB")
            count = int(load["status"])
            report.add(f"status over the socket, median of {count}", each_ms(phone.status, count), "ms")
            rounds = 10     # a peer answers 20 queries a minute
            report.add(
                f"search here and at one peer, median of {rounds}",
                each_ms(lambda: phone.client().post("/v1/search", {"query": "boiler pressure bar"}), rounds), "ms",
            )


def each_ms(act: Callable[[], object], count: int) -> float:
    """Median of one call."""
    times = []
    for _ in range(count):
        begun_s = time.perf_counter()
        act()
        times.append((time.perf_counter() - begun_s) * 1000)
    return median(times)


def command_line(report: Report) -> None:
    """kith --help beside an interpreter that does nothing, taking turns."""
    kith = str(Path(sys.executable).parent / "kith")
    bare, helped = [], []
    for _ in range(5):
        bare.append(cpu_ms_of([sys.executable, "-c", "pass"]))
        helped.append(cpu_ms_of([kith, "--help"]))
    report.add("kith --help, CPU, beside bare Python, median of 5", median(helped), "ms", baseline=median(bare),
               ratio_at_most=5)


async def in_process(report: Report, load: dict[str, float], pinned: bool, parts: Sequence[str]) -> None:
    """The rows that one process measures."""
    with tempfile.TemporaryDirectory(prefix="kb-") as folder:
        async with two_sides(Path(folder)) as (asker, provider):
            if "delegation" in parts:
                await delegation(report, asker, provider, load, pinned)
            if "rest" not in parts:
                return
            await guarding(report, asker, provider, int(load["echoes"]))
            await connecting(report, asker, provider, int(load["links"]))
            await messages(report, asker, provider, int(load["messages"]))


def main() -> None:
    """Measure and print; the exit code says whether every bound was met."""
    given = options("offload", parts=("command", "pair", "delegation", "rest"))
    load = LOAD[QUICK if given.quick else FULL]
    report = Report("offload")
    if "command" in given.only:
        command_line(report)
    if "pair" in given.only:
        running_pair(report, load)
    if {"delegation", "rest"} & set(given.only):
        trio.run(in_process, report, load, pin_self(), given.only)
    report.print(as_json=given.json)
    sys.exit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
