"""The guard over real streams on loopback: what the tap saw is what the transport got, and nothing planted is in it."""

import trio
from canary import Canary
from frame_samples import DIGEST, ID
from guard_bench import GuardBench, guard_bench
from netpair import LOOPBACK, know_each_other, make

from node.net.streams import PeerStream
from node.privacy.egress import Part, PeerView
from node.privacy.labels import owner_text
from protocol import names
from protocol.errors import ChannelClosed
from protocol.frames import inference

PLANTED = [("Zdravka Korenjak", "PERSON"), ("zdravka.koren@beispiel.example", "EMAIL")]


class WatchedStream:
    """The real stream, and every byte that was handed to it."""

    def __init__(self, stream: PeerStream) -> None:
        self.stream = stream
        self.peer_id = stream.peer_id
        self.protocol = stream.protocol
        self.written: list[bytes] = []

    async def write(self, data: bytes) -> None:
        self.written.append(data)
        await self.stream.write(data)

    async def read(self, max_bytes: int, *, deadline_s: float) -> bytes:
        return await self.stream.read(max_bytes, deadline_s=deadline_s)

    async def close_write(self) -> None:
        await self.stream.close_write()

    async def reset(self) -> None:
        await self.stream.reset()


async def test_a_masked_request_and_its_answer_cross_the_real_network() -> None:
    asker, provider = await guard_bench(PLANTED), await guard_bench()

    async def serve(stream: PeerStream) -> None:
        channel = provider.egress.channel(stream)
        request = await channel.receive(deadline_s=10)
        assert isinstance(request, inference.InferRequest)
        assert isinstance(request.prompt, inference.PromptParts)
        await channel.send(inference.Accepted(request.request_id, DIGEST, 0))
        for seq, text in enumerate(("Dear ", "[PER", "SON_1]")):
            await channel.send(inference.TokenFrame(request.request_id, seq, text, 1, (), b"\0" * 16))
        await channel.send(inference.End(request.request_id, "stop", 3, b"\0" * 16, DIGEST))
        await channel.finish()

    near = make("guard-near", protocols=(names.INFER,))
    far = make("guard-far", handler=serve, protocols=(names.INFER,))
    know_each_other(near, far)
    async with trio.open_nursery() as nursery:
        addresses = await nursery.start(far.network.serve, [LOOPBACK])
        await nursery.start(near.network.serve, [])
        await near.network.connect(far.peer_id, addresses, timeout_s=10)
        watched = WatchedStream(await near.network.open(far.peer_id, names.INFER, timeout_s=10))
        shown = await _ask(asker, watched, PeerView(far.peer_id, "far", "home"))
        nursery.cancel_scope.cancel()
    assert shown == "Dear Zdravka Korenjak"
    assert watched.written == [data for _, _, data in asker.tapped]
    assert Canary(value for value, _ in PLANTED).scan(watched.written) == []
    asked, answered = await asker.ledger.view(1), await provider.ledger.view(1)
    assert asked is not None
    assert answered is not None
    assert asked.close is not None
    assert answered.close is not None
    assert asked.close.sent_bytes == sum(map(len, watched.written))
    assert (answered.entry.level, answered.close.outcome) == ("accounted", "end")


async def _ask(asker: GuardBench, watched: WatchedStream, peer: PeerView) -> str:
    clearance = await asker.clear(
        Part("user", owner_text("Write to Zdravka Korenjak, zdravka.koren@beispiel.example")), peer=peer,
        request_id=ID.hex(),
    )
    channel = asker.egress.channel(watched)
    await channel.send_cleared(inference.InferRequest(
        request_id=ID, prompt=inference.PromptParts((inference.Part("user", clearance.texts[0]),)), max_tokens=8,
        deadline_s=5,
    ), clearance)
    await channel.finish()
    stream, shown = clearance.rehydrator(), ""
    try:
        while True:
            frame = await channel.receive(deadline_s=10)
            if isinstance(frame, inference.TokenFrame):
                shown += stream.feed(frame.text)
    except ChannelClosed:
        await clearance.close("end")
    return shown + stream.end()
