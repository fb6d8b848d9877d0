"""Where real nodes send work: the idle one of two, both of two for a burst, and past one that talks nonsense.

Scenarios S31 and S22. One phone, two machines at home with the same model; the second one's key is known to the test.
"""

import contextlib
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from embedded_model import model_path
from netpair import HANG_S, LOOPBACK, seed_of
from running_nodes import WAIT_S, until
from three_nodes import ATTIC, ThreeNodes, three_nodes

from node.cli.client import NodeClient
from node.cli.demo.nodes import DemoNode
from node.cli.demo.owner import Event, Owner
from node.cli.failure import CommandFailure
from node.net.gate import Gate
from node.net.host import Network
from protocol import canonical, names
from protocol.errors import ChannelError
from protocol.frames.link import Hello
from protocol.framing import encode_frame

pytestmark = [pytest.mark.e2e, pytest.mark.model]

LONG = "Explain how a sailing boat works in detail"
SHORT = "Explain in one sentence what salt is"
LOOKS = 20


class Three(ThreeNodes):
    """With what the phone says of them."""

    def explain(self) -> dict[str, Any]:
        view: dict[str, Any] = self.phone.client().post("/v1/offload/explain", {"text": SHORT})
        return view

    def line(self, name: str) -> dict[str, Any]:
        return next(line for line in self.explain()["candidates"] if line["name"] == name)

    def make_equal(self) -> None:
        """Have both measure themselves until they know that they are about equally fast; the test machine is noisy."""
        for number in range(12):
            for provider in (self.home_pc, self.attic):
                Owner(self.phone.client()).ask(f"Explain what a boat is, part {number}", on=provider.name)
            self.wait_idle()
            took = [line["prompt_s"] + line["answer_s"] for line in map(self.line, ("home-pc", ATTIC))]
            if max(took) < 1.3 * min(took):
                return
        raise AssertionError(f"two equal machines say that they differ: {took}")

    def wait_idle(self) -> None:
        """Both have told the phone that nothing is at work there."""
        for name in ("home-pc", ATTIC):
            until(lambda name=name: self.line(name)["wait_s"] == 0, f"{name} is idle")  # type: ignore[misc]

    @contextlib.contextmanager
    def busy(self, node: DemoNode) -> Iterator[None]:
        """The node's own owner asks it something long, meanwhile."""
        over = threading.Event()

        def ask() -> None:
            with contextlib.suppress(CommandFailure, OSError):
                while not over.is_set():
                    with contextlib.closing(Owner(node.client()).follow(LONG, local=True)) as events:
                        for _ in events:
                            if over.is_set():
                                return

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        try:
            until(lambda: self.line(node.name)["wait_s"] > 0, f"the phone hears that {node.name} is busy")
            yield
        finally:
            over.set()
            thread.join(60)


class Hesitating(Owner):
    """Lets its text leave when the others have been asked as well: a machine is chosen for each by then."""

    def __init__(self, client: NodeClient, together: threading.Barrier) -> None:
        super().__init__(client)
        self.together = together
        self.shown_peer = ""

    def _decide(self, event: Event, expect: Any) -> dict[str, Any]:
        self.shown_peer = event["peer"]
        self.together.wait()
        return super()._decide(event, expect)


@pytest.fixture(scope="module")
def three() -> Iterator[Three]:
    model_path()
    with three_nodes() as nodes:
        found = Three(nodes.phone, nodes.home_pc, nodes.attic)
        found.make_equal()
        yield found


def test_the_idle_one_of_two_is_chosen_every_time(three: Three) -> None:
    """Busy is the one that would be chosen otherwise."""
    three.wait_idle()
    busy = three.explain()["runs_on"]
    idle = ATTIC if busy == "home-pc" else "home-pc"
    with three.busy(three.home_pc if busy == "home-pc" else three.attic):
        picks = Counter(three.explain()["runs_on"] for _ in range(LOOKS))
        assert picks == {idle: LOOKS}
        assert Owner(three.phone.client()).ask(SHORT)["ran_on"] == idle
    three.wait_idle()
    candidates = {line["name"]: line for line in three.explain()["candidates"]}
    for name in ("home-pc", ATTIC):  # the numbers that it was chosen by
        assert candidates[name]["answer_s"] > 0 and candidates[name]["warm"], candidates[name]


def test_a_burst_spreads_over_both(three: Three) -> None:
    """The control is the test above: one at a time would all go to one."""
    three.make_equal()
    together = threading.Barrier(4, timeout=WAIT_S)
    owners = [Hesitating(three.phone.client(), together) for _ in range(4)]
    answers: list[Event] = []

    def ask(number: int) -> None:
        answers.append(owners[number].ask(f"{SHORT}, the {number}th time"))

    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert Counter(owner.shown_peer for owner in owners) == {"home-pc": 2, ATTIC: 2}
    assert len(answers) == 4 and all(answer["text"].strip() for answer in answers)


def test_honest_machines_pass_the_spot_check(three: Three) -> None:
    """Their own model is on the phone as well: it looks at a few tokens when it has nothing else to do."""
    Owner(three.phone.client()).ask("Explain why bread rises")

    def verdicts() -> list[str]:
        lines = three.phone.paths.log_file.read_text().splitlines()
        return [line for line in lines if "spot check of" in line]

    until(verdicts, "an answer was looked at")
    assert not [line for line in verdicts() if "(False)" in line]
    assert [peer["doubt"] for peer in three.phone.status()["peers"]] == ["", ""]


@asynccontextmanager
async def speaking_for_attic(three: Three) -> AsyncIterator[Network]:
    phone_id, address = three.phone.status()["peer_id"], three.phone.status()["addresses"][0]
    network = Network(seed_of(ATTIC), Gate([phone_id]), lambda stream: stream.reset(), lambda event: None)
    async with trio.open_nursery() as nursery:
        await nursery.start(network.serve, [LOOPBACK])
        await network.connect(phone_id, [address], timeout_s=HANG_S)
        yield network
        nursery.cancel_scope.cancel()


NONSENSE = [
    msgspec.msgpack.encode([4, [["m", "x" * 64, -1, True]]]),               # an advert of another shape
    b"\xc1\xc1\xc1",
    msgspec.msgpack.encode([1, "attic", "0.1.0", [], ["infer"], [[1, 2, 3]], b""]),     # a greeting of nonsense
]


@pytest.mark.parametrize("payload", NONSENSE)
async def test_nonsense_of_one_does_not_stop_the_next(three: Three, payload: bytes) -> None:
    await trio.to_thread.run_sync(three.attic.stop)
    async with speaking_for_attic(three) as network:
        stream = await network.open(three.phone.status()["peer_id"], names.LINK, timeout_s=HANG_S)
        hello = Hello(ATTIC, "0.1.0", names.PROTOCOLS, ("infer",), ())
        if payload[:2] != b"\x97\x01":
            await stream.write(encode_frame(canonical.encode(hello)))
        await stream.write(encode_frame(payload))
        with contextlib.suppress(ChannelError):
            while True:
                await stream.read(65536, deadline_s=3)  # the phone ends this link
        answer = await trio.to_thread.run_sync(lambda: Owner(three.phone.client()).ask(SHORT))
    assert answer["ran_on"] == "home-pc"
    peers = {peer["name"]: peer for peer in three.phone.status()["peers"]}
    assert peers["home-pc"]["connected"]
    grants = three.phone.client().get(f"/v1/peers/{ATTIC}/grant")
    assert any(one["service"] == names.LINK for one in grants["refusals"])  # and its owner can read of it
