"""What the reader notices when a machine dies in mid-answer, and what going on costs in each lane.

Two real daemons on loopback: the home PC is killed or frozen, its link refused, itself restarted. One real worker: an
answer is gone on with from its ids, in the normal lane (one prefill) and in the exact one (read again token by token).
Run from the checkout: python -m benchmarks.seamless [--quick] [--json] [--only PART ...] [--rounds N]
Parts: refused (a dial nobody answers), next (time to the next token in each lane), same (how often the text is that of
the undisturbed answer), daemons (death, freezing and return).
"""

import contextlib
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psutil
import trio

from benchmarks.report import Report, options
from benchmarks.timing import median
from benchmarks.two_sides import Side, two_sides
from node.cli.demo.nodes import DemoNode
from node.cli.demo.owner import Owner, pair_two
from node.cli.demo.steps import HEAVY
from node.cli.demo.world import make_world
from node.errors import KithError
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits
from offload.ports import ChatPrompt, Failed, GenerateRequest, Lane, Message, Piece

MODELS = Path(sys.prefix) / "share" / "kith" / "models"
LONG = "Explain how a sailing boat works in detail"
STALL_S, PREFILL_AND_START_S = 3.0, 2.0
PARTS = ("refused", "next", "same", "daemons")
BOTH: tuple[Lane, ...] = ("normal", "exact")
LENGTHS = (50, 500, 2000)
TOPICS = ("bread", "salt", "rivers", "iron", "glass", "boats", "clocks", "sand")
LOAD = {
    True: {"rounds": 1, "lengths": LENGTHS[:2], "answers": 2, "cuts": 2},
    False: {"rounds": 5, "lengths": LENGTHS, "answers": 8, "cuts": 6},
}


# -- real daemons --


def longest_gap_s(phone: DemoNode, act: Callable[[], None], after: int) -> tuple[float, str]:
    """The longest time without a new word in one answer during which act() happened, and who ended it."""
    last_s, gap_s, seen, ran_on = time.monotonic(), 0.0, 0, ""
    with contextlib.closing(Owner(phone.client()).follow(LONG)) as events:
        for event in events:
            now_s = time.monotonic()
            if event["event"] == "delta":
                gap_s = max(gap_s, now_s - last_s) if seen > after else gap_s
                last_s, seen = now_s, seen + 1
                if seen == after:
                    act()
                    last_s = time.monotonic()
            elif event["event"] == "answer":
                ran_on = event["ran_on"]
    return gap_s, ran_on


def connected(status: dict[str, object]) -> bool:
    peers = status["peers"]
    assert isinstance(peers, list)
    return any(peer["connected"] for peer in peers)


def daemons(report: Report, rounds: int) -> None:
    """Death, freezing and return of the home PC."""
    with tempfile.TemporaryDirectory(prefix="kb-") as folder:
        world = make_world(Path(folder), datetime.now(UTC))
        with DemoNode("phone", world.phone) as phone, DemoNode("home-pc", world.home_pc) as home_pc:
            phone.start()
            home_pc.start()
            pair_two(home_pc.client(), phone.client())
            phone.wait_for(connected, "connected", 60)
            Owner(phone.client()).ask(HEAVY, local=True)    # the model here is loaded
            killed, frozen, back = [], [], []
            for _ in range(rounds):
                Owner(phone.client()).ask(HEAVY, on="home-pc")
                gap_s, ran_on = longest_gap_s(phone, lambda: _stop(home_pc), 10)
                _expect(ran_on == "phone")
                killed.append(gap_s)
                home_pc.start()
                begun_s = time.monotonic()
                while not connected(phone.status()):
                    time.sleep(0.01)
                back.append(time.monotonic() - begun_s)
                process = psutil.Process(home_pc.pid)
                freeze = partial(process.send_signal, signal.SIGSTOP)
                Owner(phone.client()).ask(HEAVY, on="home-pc")
                try:
                    gap_s, ran_on = longest_gap_s(phone, freeze, 10)
                finally:
                    process.send_signal(signal.SIGCONT)
                _expect(ran_on == "phone")
                frozen.append(gap_s)
                phone.wait_for(connected, "connected", 60)
    said = f"median of {rounds}, the model here goes on"
    report.add(f"killed peer: longest time without a new word ({said})", median(killed), "s",
               at_most=STALL_S + PREFILL_AND_START_S)
    report.add(f"frozen peer: longest time without a new word ({said})", median(frozen), "s",
               at_most=STALL_S + PREFILL_AND_START_S)
    report.add("provider restarted: from ready to connected, nobody called anything, median", median(back), "s",
               at_most=1.0)


def _stop(node: DemoNode) -> None:
    node.stop(signal.SIGKILL)


def _expect(held: bool) -> None:
    if not held:
        raise RuntimeError("the answer did not take the way that is measured")


async def refused_dial(report: Report, asker: Side, provider: Side) -> None:
    """A port at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    times = []
    for _ in range(5):
        await asker.network.disconnect(provider.peer_id)
        begun_s = time.perf_counter()
        try:
            await asker.network.connect(provider.peer_id, [f"/ip4/127.0.0.1/tcp/{port}"], timeout_s=10)
        except KithError:
            times.append(time.perf_counter() - begun_s)
    report.add("refused dial: until it is known, worst of 5", max(times), "s", at_most=1.0)


# -- lanes --


class Written:
    """Pieces as they came: text and the ids for it."""

    def __init__(self, pieces: Sequence[tuple[str, tuple[int, ...]]] = ()) -> None:
        self.pieces = list(pieces)

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(text for text, _ in self.pieces)

    @property
    def ids(self) -> tuple[int, ...]:
        """All of them."""
        return tuple(one for _, ids in self.pieces for one in ids)

    def first(self, tokens: int) -> "Written":
        """The beginning, with so many ids."""
        return Written(self.pieces[:tokens])


class Lanes:
    """One worker, asked in both lanes; each question as somebody else, so that nothing is in memory."""

    def __init__(self, engine: LocalEngine, digest: str) -> None:
        self._engine = engine
        self._digest = digest
        self._asked = 0

    async def write(
        self, topic: str, lane: Lane, tokens: int, so_far: "Written | None" = None, *, temperature: float = 0.0,
    ) -> tuple["Written", float]:
        """What follows, and the seconds to the first token of it."""
        so_far = so_far or Written()
        self._asked += 1
        request = GenerateRequest(
            request_id=f"lane-{self._asked}", prompt=ChatPrompt((Message("user", f"Tell all about {topic}."),)),
            principal=f"somebody-{self._asked}", model=self._digest, max_tokens=tokens, lane=lane,
            token_ids_so_far=so_far.ids, text_so_far=so_far.text, temperature=temperature, seed=self._asked,
            shortcuts=False,
        )
        begun_s, first_s, written = time.perf_counter(), 0.0, Written()
        async with self._engine.stream(request) as events:
            async for event in events:
                match event:
                    case Piece(text=text, token_ids=new):
                        first_s = first_s or (time.perf_counter() - begun_s if new else 0.0)
                        written.pieces.append((text, new))
                    case Failed(message=message):
                        raise RuntimeError(message)
        return written, first_s


async def lanes(report: Report, load: dict[str, object], parts: Sequence[str]) -> None:
    """What going on costs in each lane, and what comes of it."""
    engine = LocalEngine([MODELS], limits=HostLimits(context_tokens=4096))
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        model = (await engine.models())[0]
        asked = Lanes(engine, model.digest)
        await asked.write("salt", "exact", 4)
        if "next" in parts:
            await next_token(report, asked, load["lengths"])  # type: ignore[arg-type]
        if "same" in parts:
            await same_text(report, asked, load["answers"], load["cuts"])  # type: ignore[arg-type]
        nursery.cancel_scope.cancel()


async def next_token(report: Report, asked: Lanes, lengths: tuple[int, ...]) -> None:
    """The time to the next token; the lanes take turns."""
    long, number = Written(), 0
    while len(long.ids) < max(lengths):
        more, _ = await asked.write(TOPICS[number % len(TOPICS)], "normal", 250, temperature=1.0)
        long, number = Written([*long.pieces, *more.pieces]), number + 1
    for length in lengths:
        times: dict[Lane, list[float]] = {lane: [] for lane in BOTH}
        for _ in range(3):
            for lane in BOTH:
                times[lane].append((await asked.write("boats", lane, 2, long.first(length)))[1])
        for lane in BOTH:
            said = f"{lane} lane: to the next token after {length} tokens of text so far, median of 3"
            report.add(said, median(times[lane]), "s")


async def same_text(report: Report, asked: Lanes, answers: int, cuts: int) -> None:
    """How often an answer that is cut and gone on with is the undisturbed one."""
    for lane in BOTH:
        same, total = 0, 0
        for topic in TOPICS[:answers]:
            whole, _ = await asked.write(topic, lane, 120)
            for cut in range(cuts):
                at = 5 + (len(whole.ids) - 10) * cut // max(1, cuts)
                rest, _ = await asked.write(topic, lane, len(whole.ids) - at, whole.first(at))
                same, total = same + (whole.ids[at:] == rest.ids), total + 1
        report.add(
            f"{lane} lane: resumed answers equal to the undisturbed one, of {total}", same / total, "",
            at_least=1.0 if lane == "exact" else None)


async def _in_process(report: Report, load: dict[str, object], parts: Sequence[str]) -> None:
    if "refused" in parts:
        with tempfile.TemporaryDirectory(prefix="kb-") as folder:
            async with two_sides(Path(folder)) as (asker, provider):
                await refused_dial(report, asker, provider)
    if {"next", "same"} & set(parts):
        await lanes(report, load, parts)


def main() -> None:
    """Measure and print; the exit code says whether every bound was met."""
    given = options("seamless", parts=PARTS)
    load = LOAD[given.quick]
    report = Report("seamless")
    trio.run(_in_process, report, load, given.only)
    if "daemons" in given.only:
        daemons(report, given.rounds or load["rounds"])  # type: ignore[arg-type]
    report.print(as_json=given.json)
    sys.exit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
