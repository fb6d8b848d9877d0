"""Looking for something better than a relay: the exchange before both sides dial at once, when it is tried, and the one
port that all calls leave from. That holes are really punched is shown in namespaces (test_e2e_behind_routers)."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
import trio
from netpair import read_all, until
from netrelay import Trio, around_a_relay

from node.net import delimited
from node.net.addresses import Address
from node.net.improving import Improver
from node.net.limits import RelayLimits
from node.net.outgoing import OutgoingPort
from node.net.punching import Puncher
from node.net.relay_messages import DCUTR, Punch, decode_punch, encode_punch
from protocol.errors import ChannelClosed, ChannelLost

FAR, NEAR = Address("ip4", "203.0.113.2", 4001), Address("ip4", "198.51.100.2", 4002)
LOCAL = Address("ip4", "127.0.0.1", 22)


@dataclass
class FakeSession:
    """Notes what would be dialled, and when; the first dial is refused, as by a router that was too early."""

    dialled: list[tuple[str, bool]] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)

    async def punch(self, address: Address, peer_id: str, *, begins: bool) -> object:
        self.dialled.append((str(address), begins))
        self.at_s.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if len(self.dialled) == 1:
            raise ConnectionRefusedError
        return object()

    def discard(self, connection: object) -> None:
        raise AssertionError("one dial, one connection")


@asynccontextmanager
async def two_punchers() -> AsyncIterator[tuple[Trio, Puncher, Puncher]]:
    """near called far through the relay; each has a puncher of its own beside the network's."""
    async with around_a_relay() as three:
        await three.near.network.connect(three.far.peer_id, [], timeout_s=5)
        await until(lambda: three.near.peer_id in three.far.network.connected())
        limits = RelayLimits(punch_s=1.0)
        yield three, Puncher(lambda: (NEAR, LOCAL), limits), Puncher(lambda: (FAR,), limits)


async def test_both_sides_dial_what_the_other_was_seen_at_and_one_begins() -> None:
    async with two_punchers() as (three, at_near, at_far):
        three.near.network.puncher = at_near
        calls, answers = FakeSession(), FakeSession()
        three.near.network._running = lambda: _with_table(three, answers)  # type: ignore[method-assign]
        done = await at_far.begin(
            calls, three.near.peer_id, lambda: three.far.network.open(three.near.peer_id, DCUTR, timeout_s=5)
        )
        assert done
        # the side that was called begins; loopback is not told, so nothing of this machine is dialled
        assert set(calls.dialled) == {(str(NEAR), True)}
        await until(lambda: len(answers.dialled) == 2)
        assert set(answers.dialled) == {(str(FAR), False)}
        assert len(calls.dialled) == 2  # a call that came too early is repeated
        assert at_far.problems == {}


def _with_table(three: Trio, session: FakeSession) -> object:
    real = three.near.network._session
    assert real is not None

    class Both:
        table = real.table
        punch = session.punch
        discard = session.discard

    return Both()


async def test_addresses_that_a_peer_must_not_choose_are_not_dialled() -> None:
    async with two_punchers() as (three, _, at_far):
        session = FakeSession()

        async def lying() -> None:
            stream = await three.near.network.open(three.far.peer_id, DCUTR, timeout_s=5)
            bad = (LOCAL, Address("ip4", "0.0.0.0", 1), Address("ip4", "224.0.0.1", 1), Address("ip6", "fe80::1", 1))
            await delimited.send(stream, encode_punch(Punch("connect", bad)))
            assert decode_punch(await delimited.receive(stream, deadline_s=5)).addresses == (FAR,)
            await delimited.send(stream, encode_punch(Punch("sync")))
            await trio.sleep(0.2)

        three.far.network.puncher = at_far
        real = three.far.network._session
        assert real is not None
        real.punch = session.punch  # type: ignore[method-assign]
        await lying()
        assert session.dialled == []


async def test_without_an_address_that_others_saw_there_is_nothing_to_try() -> None:
    async with two_punchers() as (three, _, _):
        puncher = Puncher(tuple, RelayLimits())
        session = FakeSession()

        async def never() -> object:
            raise AssertionError("nothing is opened")

        assert not await puncher.begin(session, three.near.peer_id, never)  # type: ignore[arg-type]
        assert "no other node has told" in puncher.problems[three.near.peer_id]


@pytest.mark.parametrize("junk", [b"", b"\x02\x08\x63", b"\xff\x7f", b"\x03\x08\xac\x02"])
async def test_nonsense_in_the_exchange_costs_one_stream(junk: bytes) -> None:
    async with two_punchers() as (three, _, _):
        stream = await three.near.network.open(three.far.peer_id, DCUTR, timeout_s=5)
        if junk:
            await stream.write(junk)
        await stream.close_write()
        _, end = await read_all(stream)
        assert end in (ChannelClosed, ChannelLost)
        assert three.near.peer_id in three.far.network.connected()


async def test_it_is_not_spoken_on_a_direct_connection() -> None:
    async with around_a_relay() as three:
        stream = await three.near.network.open(three.relay.peer_id, DCUTR, timeout_s=5)
        with pytest.raises((ChannelClosed, ChannelLost)):  # nothing to do there: ended at once
            await stream.read(100, deadline_s=5)


async def test_tries_become_rare_and_start_anew_when_something_is_new(
    autojump_clock: trio.testing.MockClock,
) -> None:
    relayed, tries_s = {"bea"}, []

    async def improve(peer_id: str) -> None:
        await trio.lowlevel.checkpoint()
        tries_s.append(trio.current_time())

    limits = RelayLimits()
    improver = Improver(lambda: relayed, improve, limits)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(improver.run)
        await trio.sleep(3600)
        pauses = [later - earlier for earlier, later in pairwise(tries_s)]
        assert pauses[0] < 3 < pauses[-1]
        assert pauses[-1] >= limits.improve_after_s[-1]
        assert len(tries_s) < 25
        before = len(tries_s)
        improver.nudge("bea")
        await trio.sleep(2)
        assert len(tries_s) > before
        relayed.clear()
        before = len(tries_s)
        await trio.sleep(3600)
        assert len(tries_s) == before
        nursery.cancel_scope.cancel()


async def test_one_try_at_a_time_for_each_peer(autojump_clock: trio.testing.MockClock) -> None:
    running, most = 0, 0

    async def improve(peer_id: str) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.sleep(1000)
        running -= 1

    improver = Improver(lambda: {"bea"}, improve, RelayLimits())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(improver.run)
        await trio.sleep(500)
        improver.nudge("bea")
        await trio.sleep(100)
        assert most == 1
        nursery.cancel_scope.cancel()


async def test_all_calls_leave_from_one_port_that_is_held_and_given_back() -> None:
    port = OutgoingPort()
    listeners = [await trio.open_tcp_listeners(0, host="127.0.0.1") for _ in range(2)]
    streams = []
    for (listener,) in listeners:
        where = listener.socket.getsockname()
        streams.append(await port.connect(socket.AF_INET, where, exactly=True))
    assert {stream.socket.getsockname()[1] for stream in streams} == {port.port}
    # a second call to the same place cannot share it, and is made all the same
    with pytest.raises(OSError, match=r".*"):
        await port.connect(socket.AF_INET, listeners[0][0].socket.getsockname(), exactly=True)
    for stream in streams:
        await stream.aclose()
    port.close()
    assert port.port == 0
    for (listener,) in listeners:
        await listener.aclose()


async def test_a_listener_on_that_port_is_still_refused() -> None:
    """The port is shared by calls alone: two programs never listen on one port unnoticed."""
    port = OutgoingPort()
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    stream = await port.connect(socket.AF_INET, listener.socket.getsockname(), exactly=True)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as other, pytest.raises(OSError, match=r".*"):
        other.bind(("127.0.0.1", port.port))
    await stream.aclose()
    port.close()
    await listener.aclose()


async def test_calls_on_this_machine_take_any_port() -> None:
    port = OutgoingPort()
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    stream = await port.connect(socket.AF_INET, listener.socket.getsockname())
    assert port.port == 0
    await stream.aclose()
    await listener.aclose()
