"""Whom a running node lets in, and what a peer with one grant can do: ask a model, and nothing else.

The peer's key is known to the test, which speaks for it frame by frame. Scenarios S3 and S4.
"""

import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from embedded_model import model_path
from frame_samples import SAMPLES
from netpair import HANG_S, LOOPBACK, seed_of
from running_nodes import cli, until

from node.cli.demo.nodes import DemoNode
from node.cli.demo.owner import pair_two
from node.cli.demo.world import make_world
from node.cli.failure import CommandFailure
from node.errors import PeerUnreachable
from node.identity import keystore
from node.net.errors import ProtocolNotServed, RefusedByPeer
from node.net.gate import Gate
from node.net.host import Network
from protocol import canonical, names
from protocol.errors import ChannelError
from protocol.frames import inference
from protocol.framing import FrameDecoder, encode_frame

pytestmark = [pytest.mark.e2e, pytest.mark.model]

PEER, STRANGER = "infer-only", "stranger"
ADMIN_PROTOCOLS = (
    "/kith/admin/1", "/kith/shutdown/1", "/kith/config/1", "/kith/cache/1", "/kith/logs/1", "/kith/download/1",
    "/kith/infer/2", "/ipfs/id/1.0.0", "/libp2p/autonat/1.0.0", "/x/exec/1",
)
ADMIN_WORDS = (
    ["shutdown"], [200, "shutdown"], [201, "config", {"node.mode": "online"}], [202, "delete_cache", "*"],
    [203, "stream_logs", True], [204, "download", "/etc/passwd"], {"type": "shutdownProvider"}, "unloadModel", [0], [],
)
SAID = {"Hello", "Beat", "MailRefused"}
"""What comes before anything was understood: the greeting of a link, and no to whoever may send no mail."""
SPOKEN = (names.INFER, names.LINK, names.QUERY, names.MAIL, names.MODEL, names.RECEIPT)


class OneSeed:
    """Entropy whose first 32 bytes are this name's key."""

    def __init__(self, name: str) -> None:
        self._name = name

    def bytes(self, n: int) -> "bytes":
        return seed_of(self._name)[:n]


class House:
    """home-pc, and the phone whose key the test knows; the phone's own node is stopped once it is paired."""

    def __init__(self, home_pc: DemoNode, phone: DemoNode, world: Any) -> None:
        self.home_pc, self.phone, self.world = home_pc, phone, world
        status = home_pc.status()
        self.peer_id, self.address = status["peer_id"], status["addresses"][0]

    @asynccontextmanager
    async def network_of(self, name: str) -> AsyncIterator[Network]:
        network = Network(seed_of(name), Gate([self.peer_id]), lambda stream: stream.reset(), lambda event: None)
        async with trio.open_nursery() as nursery:
            await nursery.start(network.serve, [LOOPBACK])
            yield network
            nursery.cancel_scope.cancel()

    async def refused(self, name: str) -> None:
        """This key gets no connection, and is told so: it does not find out at a deadline."""
        async with self.network_of(name) as network:
            with pytest.raises(RefusedByPeer):
                await network.connect(self.peer_id, [self.address], timeout_s=HANG_S)

    def pair(self) -> None:
        self.phone.start()
        pair_two(self.home_pc.client(), self.phone.client())
        self.phone.wait_for(lambda status: any(peer["connected"] for peer in status["peers"]), "connected")

    def refusals(self) -> dict[tuple[str, str], int]:
        view = self.home_pc.client().get("/v1/peers/phone/grant")
        return {(one["service"], one["code"]): one["times"] for one in view["refusals"]}


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    model_path()
    with tempfile.TemporaryDirectory(prefix="kx-") as folder:
        world = make_world(Path(folder), datetime.now(UTC))
        (world.phone / "data").mkdir(mode=0o700)
        keystore.create(world.phone / "data" / "identity.json", OneSeed(PEER))
        with DemoNode("phone", world.phone) as phone, DemoNode("home-pc", world.home_pc) as home_pc:
            home_pc.start()
            yield House(home_pc, phone, world)


async def test_an_empty_list_lets_nobody_in(house: House) -> None:
    assert house.home_pc.status()["peers"] == []
    for name in (PEER, STRANGER):
        await house.refused(name)


def call(node: DemoNode, at: str) -> None:
    """What `kith pair CODE --at HOST:PORT` sends."""
    body = {"code": "12-amber-otter", "at": at, "trust": None}
    with contextlib.suppress(CommandFailure):
        list(node.client().stream("/v1/pair/join", body))


async def test_having_called_somebody_lets_nobody_in(house: House) -> None:
    """The node dials a stranger, as for a pairing that comes to nothing; the stranger gets no stream for it."""
    streams = []
    gate = Gate([house.peer_id])
    network = Network(seed_of(STRANGER), gate, lambda stream: stream.reset(), lambda event: None)
    async with trio.open_nursery() as nursery:
        addresses = await nursery.start(network.serve, [LOOPBACK])
        host, port = addresses[0].split("/")[2], addresses[0].split("/")[4]
        nursery.start_soon(trio.to_thread.run_sync, call, house.home_pc, f"{host}:{port}")
        with trio.move_on_after(8):
            while not network.connected():
                await trio.sleep(0.02)
            for protocol in (names.INFER, names.LINK, names.MAIL, names.QUERY):
                try:
                    streams.append(await network.open(house.peer_id, protocol, timeout_s=3))
                except (PeerUnreachable, ProtocolNotServed, ChannelError):
                    continue
        await network.disconnect(house.peer_id)
        nursery.cancel_scope.cancel()
    assert streams == []
    assert house.home_pc.status()["peers"] == []
    await house.refused(STRANGER)


async def test_a_key_that_is_added_while_it_runs_is_let_in_and_a_changed_case_is_another_key(house: House) -> None:
    await trio.to_thread.run_sync(house.pair)
    (peer,) = house.home_pc.status()["peers"]
    await trio.to_thread.run_sync(house.phone.stop)
    async with house.network_of(PEER) as network:
        assert peer["peer_id"] == network.peer_id
        await network.connect(house.peer_id, [house.address], timeout_s=HANG_S)
        assert await say(network, house, names.QUERY, canonical.encode(SAMPLES[names.QUERY]["query"]))
    # ids are exact: another case is somebody else, for the owner's commands as well
    gate = Gate([peer["peer_id"]])
    for other in (peer["peer_id"].lower(), peer["peer_id"].upper(), peer["peer_id"].swapcase()):
        assert not gate.may(other, names.INFER)
        assert cli(house.home_pc, "grant", "show", other).returncode == 6
    await house.refused(STRANGER)


async def test_every_administrative_word_is_refused_told_and_changes_nothing(house: House) -> None:
    """S4. The control is the last line: the one thing that is granted works, in the same way."""
    client = house.home_pc.client()
    edit = ("grant", "edit", "phone", "--services", "infer")
    assert (await trio.to_thread.run_sync(lambda: cli(house.home_pc, *edit))).returncode == 0
    before, told_before = state_of(house.home_pc), house.refusals()
    async with house.network_of(PEER) as network:
        await network.connect(house.peer_id, [house.address], timeout_s=HANG_S)
        for protocol in ADMIN_PROTOCOLS:
            with pytest.raises((ProtocolNotServed, PeerUnreachable)):
                await open_any(network, house, protocol)
        for protocol in SPOKEN:
            for words in ADMIN_WORDS:
                assert await say(network, house, protocol, msgspec.msgpack.encode(words)) <= SAID
    asked = {(protocol, "not_served"): 1 for protocol in ADMIN_PROTOCOLS}
    until(lambda: set(asked) <= set(house.refusals()), "every attempt is told")
    for protocol in SPOKEN:
        services = {protocol, "mail"} if protocol == names.MAIL else {protocol}
        until(lambda services=services: refused_of(house.refusals(), services) - refused_of(told_before, services)
              >= len(ADMIN_WORDS), f"every word on {protocol} is told as refused")
    assert state_of(house.home_pc) == before
    assert client.get("/v1/status")["stage"] == "ready"
    async with house.network_of(PEER) as network:
        await network.connect(house.peer_id, [house.address], timeout_s=HANG_S)
        granted = msgspec.structs.replace(SAMPLES[names.INFER]["request_bare"], deadline_s=60)
        assert "Accepted" in await say(network, house, names.INFER, canonical.encode(granted), wait_s=20)


def refused_of(told: dict[tuple[str, str], int], services: set[str]) -> int:
    """How often something of these services was refused, for whatever reason."""
    return sum(times for (service, _), times in told.items() if service in services)


async def test_removing_the_key_cuts_its_live_stream_and_lets_it_in_no_more(house: House) -> None:
    frames: list[str] = []
    async with house.network_of(PEER) as network:
        await network.connect(house.peer_id, [house.address], timeout_s=HANG_S)
        stream = await network.open(house.peer_id, names.INFER, timeout_s=HANG_S)
        wanted = msgspec.structs.replace(
            SAMPLES[names.INFER]["request_bare"], deadline_s=120, max_tokens=1500,
            prompt=inference.PromptParts((inference.Part("user", "Tell a very long story about a boat."),)))
        await stream.write(encode_frame(canonical.encode(wanted)))
        decoder = FrameDecoder(names.FRAME_LIMITS[names.INFER])
        removed = False
        with trio.fail_after(60):
            try:
                while True:
                    decoder.receive_data(await stream.read(65536, deadline_s=30))
                    while (payload := decoder.next_frame()) is not None:
                        frames.append(type(canonical.decode(payload, names.FRAMES[names.INFER])).__name__)
                    if not removed and frames.count("TokenFrame") >= 3:
                        removed = True
                        done = await trio.to_thread.run_sync(lambda: cli(house.home_pc, "forget", "phone", "--yes"))
                        assert done.returncode == 0
            except ChannelError:
                pass
    assert removed and "End" not in frames  # cut, told why or not, and never a clean end
    await house.refused(PEER)


async def open_any(network: Network, house: House, protocol: str) -> Any:
    """A stream of any protocol, past this side's own gate."""
    await network.disconnect(house.peer_id)
    await network.connect(house.peer_id, [house.address], timeout_s=HANG_S)
    return await network.open(house.peer_id, protocol, timeout_s=HANG_S)


async def say(
    network: Network, house: House, protocol: str, payload: bytes, *, wait_s: float = 5.0
) -> set[str]:
    """Send one payload on a stream of its own; the kinds of frames that came back."""
    heard: set[str] = set()
    decoder = FrameDecoder(names.FRAME_LIMITS[protocol])
    stream = await open_any(network, house, protocol)
    try:
        await stream.write(encode_frame(payload))
        while True:
            decoder.receive_data(await stream.read(65536, deadline_s=wait_s))
            while (frame := decoder.next_frame()) is not None:
                heard.add(type(canonical.decode(frame, names.FRAMES[protocol])).__name__)
                if "TokenFrame" in heard:
                    await stream.reset()
                    return heard
    except ChannelError:
        await stream.reset()
    return heard


def state_of(node: DemoNode) -> dict[str, Any]:
    """Everything that an administrator could change."""
    client = node.client()
    told = ("peer_id", "name", "trust", "their_trust")
    grant = client.get("/v1/peers/phone/grant")
    config = (node.home / "config", node.home / "data" / "models")
    return {
        "peers": [{key: peer[key] for key in told} for peer in client.get("/v1/peers")],
        "mode": client.get("/v1/status")["mode"],
        "grant": {key: grant[key] for key in ("services", "models", "tokens_per_day", "epoch", "tokens_today")},
        "models": [(model["name"], model["default"]) for model in client.get("/v1/models")],
        "shares": client.get("/v1/shares"), "outbox": client.get("/v1/outbox"), "inbox": client.get("/v1/inbox"),
        "files": {str(path): path.read_bytes() for folder in config for path in folder.rglob("*") if path.is_file()},
    }
