"""Against a running node: a stranger gets nowhere, malformed input harms nobody, a friend can do what it may, no more.

The friend's key is known to the test, so that the last tests can speak for it frame by frame. They come last: what they
send in the friend's name is not what its own node would say.
"""

import contextlib
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import malformed
import msgspec
import pytest
import roguepeer
import trio
from embedded_model import model_path
from frame_samples import SAMPLES
from netpair import HANG_S, LOOPBACK, seed_of
from prometheus_client.parser import text_string_to_metric_families
from running_nodes import WAIT_S, composed, until

from node.cli.demo.nodes import DemoNode
from node.cli.demo.owner import pair_two
from node.cli.demo.world import make_world
from node.errors import PeerUnreachable
from node.identity import keystore
from node.net.errors import RefusedByPeer
from node.net.gate import Gate
from node.net.host import Network
from node.net.streams import PeerStream
from protocol import canonical, names
from protocol.errors import ChannelError
from protocol.frames import inference, mail, model, pairing, query, receipt
from protocol.framing import FrameDecoder, encode_frame

pytestmark = [pytest.mark.e2e, pytest.mark.model]

FRIEND, STRANGER = "friend", "stranger"
QUERY = {"query": "boiler pressure bar"}


class OneSeed:
    """Entropy whose first 32 bytes are this name's key."""

    def __init__(self, name: str) -> None:
        self._name = name

    def bytes(self, n: int) -> "bytes":
        return seed_of(self._name)[:n]


@dataclass
class Pair:
    """home-pc, the node that is attacked, and its paired peer."""

    home_pc: DemoNode
    phone: DemoNode

    @property
    def address(self) -> str:
        found: str = self.home_pc.status()["addresses"][0]
        return found

    @property
    def peer_id(self) -> str:
        found: str = self.home_pc.status()["peer_id"]
        return found

    def search(self) -> bool:
        """Whether home-pc answers its paired peer."""
        view = self.phone.client().post("/v1/search", QUERY)
        return any(hit["origin"] == "home-pc" and "1.8 bar" in hit["text"] for hit in view["hits"])

    def send(self, number: int) -> None:
        self.phone.client().post("/v1/messages", {"to": "home-pc", "body": f"message {number}"})

    def refusals(self) -> int:
        """How many keys were turned away, by the node's own log."""
        return self.home_pc.paths.log_file.read_text().count("who is not paired")

    def arrived(self) -> list[str]:
        return [row["body"] for row in reversed(self.home_pc.client().get("/v1/inbox"))]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    model_path()
    with tempfile.TemporaryDirectory(prefix="kx-") as folder:
        world = make_world(Path(folder), datetime.now(UTC))
        (world.phone / "data").mkdir(mode=0o700)
        keystore.create(world.phone / "data" / "identity.json", OneSeed(FRIEND))
        with DemoNode("phone", world.phone) as phone, DemoNode(
            "home-pc", world.home_pc, composed("daemon_hurried.py")) as home_pc:
            phone.start()
            home_pc.start()
            pair_two(home_pc.client(), phone.client())
            phone.wait_for(lambda status: any(peer["connected"] for peer in status["peers"]), "connected")
            home_pc.client().post("/v1/shares", {"folder": str(world.shared), "peers": ["phone"]})
            yield Pair(home_pc, phone)


@asynccontextmanager
async def network_of(name: str, pair: Pair) -> AsyncIterator[Network]:
    """A network with this name's key, whose owner would talk to home-pc."""
    gate = Gate([pair.peer_id])
    network = Network(seed_of(name), gate, lambda stream: stream.reset(), lambda event: None)
    async with trio.open_nursery() as nursery:
        await nursery.start(network.serve, [LOOPBACK])
        yield network
        nursery.cancel_scope.cancel()


async def test_a_stranger_is_refused_before_any_stream(pair: Pair) -> None:
    async with network_of(STRANGER, pair) as network:
        for _ in range(5):
            with pytest.raises(RefusedByPeer):
                await network.connect(pair.peer_id, [pair.address], timeout_s=HANG_S)
        assert network.connected() == set()
    assert [peer["name"] for peer in pair.home_pc.status()["peers"]] == ["phone"]


async def test_a_stranger_that_insists_gets_no_byte_of_an_answer(pair: Pair) -> None:
    async with roguepeer.secured(pair.address, STRANGER) as conn:
        answer = b""
        with trio.fail_after(HANG_S):
            try:
                await conn.write(roguepeer.HELLO + roguepeer.token(b"/yamux/1.0.0"))
                answer = await conn.read(1024)
            except Exception:
                answer = b""
    assert answer == b""


async def test_control_the_paired_key_is_let_in_the_same_way(pair: Pair) -> None:
    async with roguepeer.muxed(pair.address, FRIEND) as conn:
        assert conn is not None


async def test_1000_malformed_inputs_harm_neither_the_node_nor_its_peer(pair: Pair) -> None:
    pid, rounds, refused = pair.home_pc.pid, 4, pair.refusals()
    assert await trio.to_thread.run_sync(pair.search)
    for number in range(rounds):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, pair.send, number)
            thrown = await malformed.throw_at(pair.address, count=250, name=STRANGER, seed=number)
            assert await trio.to_thread.run_sync(pair.search)
        assert sum(thrown.values()) == 250
        assert set(thrown) == set(malformed.KINDS)
    deep = sum(kind.startswith(("yamux", "stream")) for kind in malformed.KINDS)
    assert pair.refusals() - refused >= 900 * deep // len(malformed.KINDS)    # they came as far as a stranger can
    assert await trio.to_thread.run_sync(pair.search)
    with trio.fail_after(WAIT_S):
        while len(await trio.to_thread.run_sync(pair.arrived)) < rounds:
            await trio.sleep(0.1)
    assert pair.arrived() == [f"message {number}" for number in range(rounds)]
    status = pair.home_pc.status()
    assert (pair.home_pc.pid, status["stage"]) == (pid, "ready")
    assert [(peer["name"], peer["connected"]) for peer in status["peers"]] == [("phone", True)]


def turned_away(node: DemoNode) -> float:
    """As its metrics tell it: calls that came too fast."""
    text = node.client().text("/metrics")
    return next(
        sample.value for family in text_string_to_metric_families(text) for sample in family.samples
        if sample.name == "kith_turned_away_total" and sample.labels["reason"] == "calls_too_fast")


async def test_a_flood_of_calls_is_turned_away_told_and_shuts_nobody_out(pair: Pair) -> None:
    """Strangers call the phone from 127.0.0.2; its paired machine leaves, comes back and is used meanwhile. The control
    is the node of the test above, which has no limit and takes them all."""
    pid, counts, over = pair.phone.pid, Counter[str](), trio.Event()
    address = pair.phone.status()["addresses"][0]
    before = await trio.to_thread.run_sync(turned_away, pair.phone)

    def is_back() -> bool:
        return bool(pair.phone.status()["peers"][0]["connected"]) and pair.search()

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(roguepeer.knock, address, "127.0.0.2", over.is_set, counts)
        await trio.to_thread.run_sync(pair.home_pc.stop)
        await trio.to_thread.run_sync(pair.home_pc.start)
        await trio.to_thread.run_sync(until, is_back, "the phone's peer is back and answers")
        while counts["turned away"] <= 200:     # how fast that goes is the machine's matter
            await trio.sleep(0.05)
        over.set()
    assert pair.phone.pid == pid
    assert counts["proven"] > 0, counts
    assert turned_away(pair.phone) - before >= counts["turned away"] // 2
    health, net = pair.phone.client().look("/v1/health"), pair.phone.client().get("/v1/net")
    assert health["turned_away"] > 0 and net["turned_away"]["lately"]
    assert any("Calls come faster" in advice for advice in net["advice"])


# -- the friend, frame by frame --

GRANTED = {mail.Ack, mail.Nack}
"""What answers a message: the one service that a friend has by default."""
SERVED = {query.Answer, query.QueryEnd, inference.Accepted, inference.TokenFrame, inference.End, inference.Progress,
          inference.Usage, inference.ToolCallFrame, pairing.PairCard, pairing.PairAccept, pairing.ReplyCode,
          pairing.ReplySecret, pairing.PairConfirm, model.ModelOffer, model.ModelChunk, model.ModelEnd}
"""What a node says when it does what was asked."""


QUIET_S = {names.LINK: 0.4, names.MAIL: 0.4, names.PAIR: 5.0, names.INFER: 5.0, names.QUERY: 5.0, names.MODEL: 5.0,
           names.RECEIPT: 5.0}
"""How long nothing may come before a stream counts as silent; all but the first two end by themselves once refused."""


async def say_everything(pair: Pair) -> dict[tuple[str, str], list[type]]:
    """Send every frame of every protocol in the friend's name, each on a stream of its own; what came back."""
    heard: dict[tuple[str, str], list[type]] = {}
    async with network_of(FRIEND, pair) as network:
        for protocol, samples in SAMPLES.items():
            for name, frame in samples.items():
                heard[protocol, name] = await say(network, pair, protocol, frame)
    return heard


async def open_stream(network: Network, pair: Pair, protocol: str) -> PeerStream:
    """A stream on a fresh connection; home-pc hangs up on a peer whose link broke, perhaps just now."""
    for _ in range(10):
        await network.disconnect(pair.peer_id)
        await network.connect(pair.peer_id, [pair.address], timeout_s=HANG_S)
        with contextlib.suppress(PeerUnreachable):
            return await network.open(pair.peer_id, protocol, timeout_s=HANG_S)
    raise AssertionError("home-pc takes no stream of its friend")


async def say(network: Network, pair: Pair, protocol: str, frame: msgspec.Struct) -> list[type]:
    """Send one frame on a stream of its own; the frames that came back."""
    heard: list[type] = []
    decoder = FrameDecoder(names.FRAME_LIMITS[protocol])
    stream = await open_stream(network, pair, protocol)
    try:
        await stream.write(encode_frame(canonical.encode(frame)))
        while True:
            decoder.receive_data(await stream.read(65536, deadline_s=QUIET_S[protocol]))
            while (payload := decoder.next_frame()) is not None:
                heard.append(type(canonical.decode(payload, names.FRAMES[protocol])))
    except ChannelError:
        await stream.reset()
    return heard


def state_of(node: DemoNode) -> dict[str, Any]:
    """Everything that an administrator could change."""
    client = node.client()
    told = ("peer_id", "name", "trust", "their_trust")
    peers = [{key: peer[key] for key in told} for peer in client.get("/v1/peers")]
    folders = {name: (node.home / name) for name in ("config", "library", "calendar", "contacts", "notes")}
    return {
        "peers": peers, "mode": client.get("/v1/status")["mode"], "ledger": client.get("/v1/ledger", limit=1000),
        "questions": client.get("/v1/questions"), "outbox": client.get("/v1/outbox"),
        **{path: client.get(path) for path in ("/v1/shares", "/v1/conversations")},
        "models": [(model["name"], model["default"]) for model in client.get("/v1/models")],
        "files": {
            str(path): path.read_bytes() for folder in folders.values() for path in folder.rglob("*") if path.is_file()
        },
    }


async def test_control_the_owners_own_device_is_served(pair: Pair) -> None:
    """Trust self: the same frames get answers, so the lists above can tell."""
    pair.phone.stop()
    async with network_of(FRIEND, pair) as network:
        asked = SAMPLES[names.QUERY]["query"]
        assert set(await say(network, pair, names.QUERY, asked)) & SERVED
        asked = msgspec.structs.replace(SAMPLES[names.INFER]["request_bare"], deadline_s=60)
        assert inference.Accepted in await say(network, pair, names.INFER, asked)


async def test_a_friend_can_send_messages_and_nothing_else_with_any_frame(pair: Pair) -> None:
    pair.phone.stop()
    pair.home_pc.client().post("/v1/peers/phone/trust", {"trust": "friend"})
    before, inbox = state_of(pair.home_pc), pair.arrived()
    heard = await say_everything(pair)
    assert set(heard) == {(protocol, name) for protocol, samples in SAMPLES.items() for name in samples}
    said = {kind for kinds in heard.values() for kind in kinds}
    assert said & SERVED == set()
    assert heard[names.QUERY, "query"] == [query.QueryRefused]
    for name in ("request", "request_bare", "request_tokens"):
        assert heard[names.INFER, name] == [inference.Refused]
    assert heard[names.MODEL, "request"] == [model.ModelRefused]
    # what it was served while it was the owner's own device it may have receipts for
    assert {kind for (protocol, _), kinds in heard.items() if protocol == names.RECEIPT for kind in kinds} <= {
        receipt.Receipt, receipt.ReceiptsEnd}
    assert all(kinds == [] or kinds == [pairing.PairRefused] for (protocol, _), kinds in heard.items()
               if protocol == names.PAIR)
    assert {kind for (protocol, _), kinds in heard.items() if protocol == names.MAIL for kind in kinds} <= GRANTED
    assert state_of(pair.home_pc) == before
    assert set(pair.arrived()) - set(inbox) <= {SAMPLES[names.MAIL]["mail"].body}  # type: ignore[attr-defined]


async def test_malformed_input_of_a_known_key_harms_no_handler(pair: Pair) -> None:
    """A friend reaches every protocol's parser; the node outlives what it sends there."""
    pair.phone.stop()
    before = state_of(pair.home_pc)
    thrown = await malformed.throw_at(pair.address, count=200, name=FRIEND, levels=("yamux", "stream"))
    assert sum(thrown.values()) == 200
    assert state_of(pair.home_pc) == before
    async with network_of(FRIEND, pair) as network:
        assert await say(network, pair, names.QUERY, SAMPLES[names.QUERY]["query"]) == [query.QueryRefused]
