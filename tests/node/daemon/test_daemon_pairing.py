"""Windows and joinings as the owner meets them: kept apart, never silent, and what failed is said as it is."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from memory_channel import MemoryChannel
from pairing_node import PairingNode, channels, open_node

from node.daemon import pairing
from node.daemon.pairing import TICK_EVERY_S, Pairing
from node.errors import PairingRefused, PeerUnreachable, StorageError
from node.identity.trust import Trust
from node.net.gate import Gate
from node.store.peers import Peer
from protocol import limits
from protocol.names import PAIR

CLIENT_PATIENCE_S = 60.0
WRONG = "7-crossover-clockwork"


class Net:
    """The network of a node: meets one other node through whatever the test gave it."""

    mode = "lan"

    def __init__(self) -> None:
        self.channel: MemoryChannel | None = None
        self.hold = trio.Event()

    def addresses(self) -> list[str]:
        return ["/ip4/127.0.0.1/tcp/4001"]

    async def meet(self, addresses: Sequence[str], *, peer_id: str | None, timeout_s: float) -> str:
        await self.hold.wait()
        if self.channel is None:
            raise PeerUnreachable("Nobody is there.")
        return self.channel.peer_id

    async def open_channel(self, peer_id: str, protocol: str) -> MemoryChannel:
        assert self.channel is not None
        return self.channel


class Guests:
    """The roster: who was welcomed."""

    def __init__(self) -> None:
        self.welcomed: list[Peer] = []

    async def welcome(self, row: Peer) -> None:
        await trio.lowlevel.checkpoint()
        self.welcomed.append(row)


class Desk:
    """An owner that says yes, at once or after a while."""

    def __init__(self) -> None:
        self.thinks_s = 0.0

    def speak_to(self, emit: Any) -> None:
        """Everybody hears this owner."""

    async def check_pairing(self, payload: Mapping[str, Any], deadline_s: float) -> dict[str, Any]:
        await trio.sleep(self.thinks_s)
        return {"allow": True}


class Side:
    """One node's pairing service and what its owner heard, with the time of each event."""

    def __init__(self, node: PairingNode) -> None:
        self.node = node
        self.gate, self.net, self.guests, self.desk = Gate(), Net(), Guests(), Desk()
        self.heard: list[tuple[float, dict[str, Any]]] = []
        self.pairing = Pairing(
            node.driver, self.net, self.gate, self.guests, self.desk, node.clock,  # type: ignore[arg-type]
            lan=lambda: (), keep_lan=lambda added: None,
        )

    async def emit(self, event: Mapping[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        self.heard.append((trio.current_time(), dict(event)))

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for _, event in self.heard if event["event"] == kind]

    async def first(self, kind: str) -> dict[str, Any]:
        while not (found := self.events(kind)):
            await trio.sleep(0.01)
        return found[0]

    def last(self) -> str:
        """The last event that says something."""
        kind: str = [event["event"] for _, event in self.heard if event["event"] != "tick"][-1]
        return kind

    def silences_s(self) -> list[float]:
        return [later - earlier for (earlier, _), (later, _) in zip(self.heard, self.heard[1:], strict=False)]


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Side]:
    node = await open_node(tmp_path / "home", "home-pc", 2)
    yield Side(node)
    await node.database.close()


@pytest.fixture
async def phone(tmp_path: Path) -> AsyncIterator[Side]:
    node = await open_node(tmp_path / "phone", "phone", 1)
    yield Side(node)
    await node.database.close()


async def join(phone: Side, home: Side, code: str) -> None:
    """The phone types a code; home serves what it opens."""
    near, far = channels(phone.node, home.node)
    phone.net.channel = near
    phone.net.hold.set()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(home.pairing.serve, far)
        try:
            await phone.pairing.join(code, "127.0.0.1:4001", "home", phone.emit)
        except PairingRefused as error:
            refused = error
        else:
            return
    raise refused


async def test_joining_does_not_end_a_window_that_was_opened_meanwhile(home: Side) -> None:
    async with trio.open_nursery() as nursery:

        async def join_nobody() -> None:
            with pytest.raises(PeerUnreachable):
                await home.pairing.join(WRONG, "127.0.0.1:4001", "home", home.emit)

        nursery.start_soon(join_nobody)
        await home.first("status")
        assert not home.gate.admit("a stranger that calls")
        nursery.start_soon(home.pairing.open, "home", home.emit)
        await home.first("waiting")
        home.net.hold.set()
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert not home.gate.is_meeting
        assert home.gate.pairing_open
        assert home.gate.admit("a stranger that calls")
        nursery.cancel_scope.cancel()
    assert not home.gate.pairing_open


async def test_a_window_that_ends_does_not_end_a_joining(home: Side) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(home.pairing.open, "home", home.emit)
        await home.first("waiting")
        with home.gate.meeting():
            assert home.gate.admit("met", dialled=True)
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                while home.gate.pairing_open:
                    await trio.sleep(0.01)
            assert home.gate.may("met", PAIR)


async def longest_silence_s(home: Side, clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch) -> float:
    """Of a window that nobody comes to."""
    monkeypatch.setattr(pairing, "LOOK_EVERY_S", 20.0)
    await home.pairing.open("home", home.emit)
    assert home.last() == "expired"
    assert home.heard[-1][0] - home.heard[0][0] == pytest.approx(limits.PAIRING_WINDOW_S, abs=5)
    return max(home.silences_s())


async def test_an_owner_who_leaves_while_the_window_opens_leaves_nothing_behind(home: Side) -> None:
    lan = ["/ip4/192.168.1.7/tcp/4001", "/ip4/192.168.1.8/tcp/4001"]
    removed: list[str] = []

    async def add(address: str) -> str:
        await trio.lowlevel.checkpoint()
        if address == lan[1]:
            raise PeerUnreachable("It is in use.")
        return address

    async def remove(address: str) -> None:
        await trio.lowlevel.checkpoint()
        removed.append(address)

    async def gone(event: Mapping[str, Any]) -> None:
        raise trio.BrokenResourceError("nobody listens")

    home.net.add_listener, home.net.remove_listener = add, remove  # type: ignore[attr-defined]
    home.pairing = Pairing(
        home.node.driver, home.net, home.gate, home.guests, home.desk, home.node.clock,  # type: ignore[arg-type]
        lan=lambda: lan, keep_lan=lambda added: None)
    with pytest.RaisesGroup(trio.BrokenResourceError, allow_unwrapped=True):
        await home.pairing._hold_window(Trust.FRIEND, gone)
    assert removed == lan[:1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(home.pairing.open, None, home.emit)
        await home.first("waiting")  # no window is open already
        nursery.cancel_scope.cancel()
    assert not home.gate.pairing_open


async def test_a_disk_that_fails_at_the_end_of_a_window_leaves_the_gate_closed(
    home: Side, monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail() -> None:
        raise StorageError("The disk is full.")

    async with trio.open_nursery() as nursery:
        monkeypatch.setattr(home.node.driver, "close_window", fail)

        async def opened() -> None:
            with pytest.RaisesGroup(StorageError, allow_unwrapped=True, flatten_subgroups=True):
                await home.pairing._hold_window(Trust.FRIEND, home.emit)

        scope = trio.CancelScope()

        async def until_cancelled() -> None:
            with scope:
                await opened()

        nursery.start_soon(until_cancelled)
        await home.first("waiting")
        assert home.gate.pairing_open
        scope.cancel()
    assert not home.gate.pairing_open


async def test_a_window_is_never_silent_for_long(
    home: Side, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await longest_silence_s(home, autojump_clock, monkeypatch) < CLIENT_PATIENCE_S


async def test_control_without_ticks_it_is(
    home: Side, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairing, "TICK_EVERY_S", 10_000.0)
    assert await longest_silence_s(home, autojump_clock, monkeypatch) > 300


async def test_both_sides_hear_their_node_while_the_pictures_are_compared(
    home: Side, phone: Side, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairing, "LOOK_EVERY_S", 20.0)
    home.desk.thinks_s = phone.desk.thinks_s = 150
    async with trio.open_nursery() as nursery:
        nursery.start_soon(home.pairing.open, "self", home.emit)
        await join(phone, home, (await home.first("waiting"))["code"])
    for side in (home, phone):
        assert side.last() == "paired"
        assert max(side.silences_s()) <= TICK_EVERY_S + 1
        assert len(side.events("tick")) >= 4
        assert len(side.guests.welcomed) == 1


async def test_a_wrong_code_leaves_the_right_one_good_and_both_owners_are_told_so(home: Side, phone: Side) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(home.pairing.open, "self", home.emit)
        code = (await home.first("waiting"))["code"]
        with pytest.raises(PairingRefused) as refused:
            await join(phone, home, WRONG)
        assert "do not match" in refused.value.text
        for untrue_or_inviting in ("used up", "again"):
            assert untrue_or_inviting not in refused.value.text + refused.value.hint
        (told,) = home.events("status")
        assert "2 of 3 tries are left" in told["text"]
        await join(phone, home, code)
    assert phone.events("paired")
    assert home.events("paired")


async def test_the_last_miss_ends_the_window_and_a_good_code_is_refused(home: Side, phone: Side) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(home.pairing.open, "self", home.emit)
        await home.first("waiting")
        for _ in range(limits.PAIRING_TRIES):
            with pytest.raises(PairingRefused, match="do not match"):
                await join(phone, home, WRONG)
    assert [status["text"].rpartition(": ")[2] for status in home.events("status")] == [
        "2 of 3 tries are left.", "1 of 3 tries are left."
    ]
    assert "used up" in home.events("expired")[0]["text"]
    assert not home.gate.pairing_open
