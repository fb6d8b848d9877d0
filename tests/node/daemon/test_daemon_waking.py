"""Waking a peer's machine: its hardware address is learnt while it is here, and the packet sent until it comes."""

import itertools
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
from fixed import FixedClock
from pairing_node import PairingNode, open_node

from node.daemon import lan
from node.daemon.grants import Grants
from node.daemon.peers import Roster
from node.daemon.waking import REPEAT_S, Waking
from node.errors import PeerUnreachable, UnknownPeer
from node.identity.keystore import Identity
from node.identity.peerbook import PeerBook
from node.identity.trust import Trust
from node.net.errors import BadAddress
from node.net.events import LinkUp
from node.net.magic_packet import hardware_address
from node.privacy.traffic import Count, Traffic
from node.store import peers
from node.store.peers import Peer
from protocol.frames.link import Hello
from protocol.names import PROTOCOLS

BEA = Identity.from_seed(bytes([7]) * 32).peer_id
CARD = "00:11:22:33:44:55"
ARP = """IP address       HW type     Flags       HW address            Mask     Device
10.0.0.7         0x1         0x2         00:11:22:33:44:55     *        wlan0
10.0.0.8         0x1         0x0         00:00:00:00:00:00     *        wlan0
"""


def test_the_kernels_table_tells_the_neighbours_it_has_resolved() -> None:
    assert lan.neighbour_in(ARP, "10.0.0.7") == CARD
    assert lan.neighbour_in(ARP, "10.0.0.8") is None  # asked for, never answered
    assert lan.neighbour_in(ARP, "10.0.0.70") is None
    assert lan.neighbour_in("", "10.0.0.7") is None


def test_every_network_that_is_up_has_its_broadcast_address() -> None:
    assert "127.255.255.255" not in lan.broadcast_addresses()


class House:
    """A node that is paired with Bea; what was sent, and when she comes."""

    def __init__(self, node: PairingNode) -> None:
        book = PeerBook(node.database, node.identity, node.clock, lambda peer_id: self.roster.cut(peer_id))
        self.clock: FixedClock = node.clock
        self.database = node.database
        self.roster = Roster(node.database, book, Grants(book, node.clock), node.clock, self._style)
        self.traffic = Traffic()
        self.sent: list[tuple[float, bytes, tuple[str, ...]]] = []
        self.comes_after_packets: int | None = None
        self.mode = "lan"
        self.neighbours = {"10.0.0.7": CARD}
        self.waking = Waking(
            node.database, self.roster, self.traffic, node.clock, lambda: self.mode,
            neighbour=self.neighbours.get, broadcasts=lambda: ["10.0.0.255"], send=self._send,
        )

    async def _style(self, digest: str | None) -> str:
        return "brackets"

    def _send(self, address: bytes, broadcasts: Sequence[str]) -> int:
        if not broadcasts:
            raise OSError("no network to send it on")
        self.sent.append((trio.current_time(), address, tuple(broadcasts)))
        if self.comes_after_packets is not None and len(self.sent) >= self.comes_after_packets:
            self.appear()
        return len(broadcasts)

    async def adopt(self) -> None:
        row = Peer(BEA, "bea", Trust.HOME, Trust.SELF, (), 1, None)
        await self.database.write(peers.add, row)
        await self.roster.adopt(row)

    def appear(self, address: str = "/ip4/10.0.0.7/tcp/4001") -> None:
        hello = Hello("bea", "0.1.0", PROTOCOLS, (), ())
        self.roster.link_up(LinkUp(BEA, hello, frozenset(PROTOCOLS), frozenset(), address, 1.0))


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    node = await open_node(tmp_path / "n", "phone", 1)
    built = House(node)
    await built.adopt()
    yield built
    await node.database.close()


async def test_the_address_is_learnt_while_the_peer_is_here_and_outlives_a_restart(house: House) -> None:
    with pytest.raises(PeerUnreachable, match="hardware address of bea is not known") as unknown:
        await house.waking.wake("bea", hardware=None, wait_s=0)
    assert unknown.value.hint == "Name it once: kith wake bea --mac aa:bb:cc:dd:ee:ff"
    house.appear()
    await house.waking.note(BEA)
    later = Waking(house.database, house.roster, house.traffic, house.clock, lambda: "lan")
    view = await later.wake("bea", hardware=None, wait_s=0)
    assert (view.hardware, view.awake, view.packets) == (CARD, True, 0)


async def test_a_peer_that_is_no_neighbour_leaves_what_was_known(house: House) -> None:
    house.appear()
    await house.waking.note(BEA)
    house.appear("/ip4/192.0.2.9/tcp/4001")
    await house.waking.note(BEA)
    house.appear("")
    await house.waking.note(BEA)
    assert (await house.waking.wake("bea", hardware=None, wait_s=0)).hardware == CARD


async def test_the_packet_is_sent_again_until_the_peer_is_here(house: House, autojump_clock: Any) -> None:
    house.comes_after_packets = 3
    view = await house.waking.wake("bea", hardware=CARD, wait_s=60)
    assert (view.awake, view.packets) == (True, 3)
    assert {(address, broadcasts) for _, address, broadcasts in house.sent} == {
        (hardware_address(CARD), ("10.0.0.255",)),
    }
    times = [at for at, _, _ in house.sent]
    assert [round(b - a) for a, b in itertools.pairwise(times)] == [REPEAT_S, REPEAT_S]
    assert house.traffic.of(BEA) == {"control": Count(3, 306)}


async def test_a_peer_that_does_not_come_is_given_up_at_the_deadline(house: House, autojump_clock: Any) -> None:
    view = await house.waking.wake("bea", hardware=CARD, wait_s=12)
    assert (view.awake, view.packets) == (False, 3)  # at 0, 5 and 10 s


async def test_what_cannot_be_done_is_said(house: House) -> None:
    with pytest.raises(UnknownPeer):
        await house.waking.wake("zoe", hardware=None, wait_s=1)
    with pytest.raises(BadAddress):
        await house.waking.wake("bea", hardware="ff:ff:ff:ff:ff:ff", wait_s=1)
    house.mode = "offline"
    with pytest.raises(PeerUnreachable, match="offline"):
        await house.waking.wake("bea", hardware=CARD, wait_s=1)
    assert house.sent == []


async def test_a_forgotten_peers_address_is_gone(house: House) -> None:
    house.appear()
    await house.waking.note(BEA)
    await house.waking.forget(BEA)
    with pytest.raises(PeerUnreachable, match="not known"):
        await house.waking.wake("bea", hardware=None, wait_s=0)
