"""What a relay costs beside a direct connection: round trips, bytes a second, and how soon a circuit stands.

Three networks in this process, on loopback; both ways are measured in turn, in the same run. The relay shares the
processor with both ends, so the ratios are a lower bound of what two machines and a third see. Run from the checkout:
python -m benchmarks.reaching [--quick] [--json]
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

from benchmarks.report import Report, options
from benchmarks.timing import median
from node.net.addresses import parse
from node.net.gate import Gate
from node.net.host import Network
from node.net.streams import PeerStream
from protocol.errors import ChannelClosed

ECHO, SINK = "/bench/echo/1", "/bench/sink/1"
LOAD = {True: {"trips": 50, "mib": 4, "rounds": 3}, False: {"trips": 300, "mib": 32, "rounds": 5}}


class Nothing:
    """An account that counts nothing."""

    def add(self, data: bytes) -> None:
        """Bytes were handed on."""

    async def close(self, outcome: str) -> None:
        """The circuit is over."""
        await trio.lowlevel.checkpoint()


class Everyone:
    """A relay for all that are paired with it."""

    def carries_for(self, peer_id: str) -> bool:
        """Always."""
        return True

    def now_s(self) -> int:
        """Any time."""
        return 0

    async def account(self, caller: str, called: str) -> Nothing:
        """Nothing is counted."""
        await trio.lowlevel.checkpoint()
        return Nothing()


async def serve(stream: PeerStream) -> None:
    """Echo, or swallow and confirm at the end."""
    try:
        while True:
            data = await stream.read(1 << 16, deadline_s=60)
            if stream.protocol == ECHO:
                await stream.write(data)
    except ChannelClosed:
        await stream.write(b"!")


def network(seed: int) -> Network:
    """One node."""
    return Network(
        bytes([seed]) * 32, Gate(), serve, lambda event: None, protocols=(ECHO, SINK), relay=Everyone()
    )


@dataclass
class Three:
    """Two ends and a relay; far_at is where far listens, which near is told late."""

    near: Network
    far: Network
    relay: Network
    far_at: str


@asynccontextmanager
async def around_a_relay() -> AsyncIterator[Three]:
    """Both ends are connected to the relay, and far holds a place there."""
    near, far, relay = nodes = network(1), network(2), network(3)
    async with trio.open_nursery() as nursery:
        at = {}
        for node in nodes:
            (at[node],) = await nursery.start(node.serve, ["/ip4/127.0.0.1/tcp/0"])
            for other in nodes:
                if other is not node:
                    node._gate.allow(other.peer_id)
        for end in (near, far):
            await end.connect(relay.peer_id, [at[relay]], timeout_s=5)
            end.guest.use([relay.peer_id])
        with trio.fail_after(5):
            while not far.guest.places:  # noqa: ASYNC110 - a place announces nothing
                await trio.sleep(0.01)
        yield Three(near, far, relay, at[far])
        nursery.cancel_scope.cancel()


async def round_trip_ms(three: Three, trips: int) -> float:
    """The median of as many echoes of 64 bytes."""
    stream = await three.near.open(three.far.peer_id, ECHO, timeout_s=5)
    found = []
    for _ in range(trips):
        began_s = trio.current_time()
        await stream.write(b"x" * 64)
        await stream.read(64, deadline_s=5)
        found.append((trio.current_time() - began_s) * 1000)
    await stream.reset()
    return median(found)


async def mib_per_s(three: Three, mib: int) -> float:
    """One stream, until the other end has confirmed the last byte."""
    stream = await three.near.open(three.far.peer_id, SINK, timeout_s=5)
    began_s = trio.current_time()
    for _ in range(mib):
        await stream.write(b"x" * (1 << 20))
    await stream.close_write()
    await stream.read(1, deadline_s=60)
    return mib / (trio.current_time() - began_s)


async def measure(report: Report, *, quick: bool) -> None:
    """All rows."""
    load = LOAD[quick]
    up_ms, relayed_ms, direct_ms, relayed_rate, direct_rate = [], [], [], [], []
    for _ in range(load["rounds"]):
        async with around_a_relay() as three:
            began_s = trio.current_time()
            await three.near.connect(three.far.peer_id, [], timeout_s=5)
            up_ms.append((trio.current_time() - began_s) * 1000)
            relayed_ms.append(await round_trip_ms(three, load["trips"]))
            relayed_rate.append(await mib_per_s(three, load["mib"]))
            session = three.near._running()
            await session.reach(parse(three.far_at), three.far.peer_id)
            direct_ms.append(await round_trip_ms(three, load["trips"]))
            direct_rate.append(await mib_per_s(three, load["mib"]))
    report.add("a circuit stands, proven from end to end, median", median(up_ms), "ms", at_most=500)
    report.add("round trip through a relay, beside direct, median", median(relayed_ms), "ms",
               baseline=median(direct_ms), ratio_at_most=6)
    report.add("one stream through a relay, beside direct, median", median(relayed_rate), "MiB/s",
               baseline=median(direct_rate), ratio_at_least=0.1)


def main() -> int:
    """Measure and print; 1 when a bound is not met."""
    wanted = options("reaching")
    report = Report("reaching")
    trio.run(lambda: measure(report, quick=wanted.quick))
    report.print(as_json=wanted.json)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
