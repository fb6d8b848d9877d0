"""When a node announces itself on the local network, whom it recognises there, and whose window it finds. No socket."""

from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from fixed import SeededEntropy

from node.daemon.discovering import MAX_WINDOWS, Discovering
from node.net.gate import Gate
from node.net.mdns_messages import Announcement, tag_of
from node.settings import NetConfig

OWN, BEA, STRANGER = ("12D3KooW" + letter * 44 for letter in "ABC")
NONCE = bytes(range(16))


@dataclass
class Net:
    mode: str = "lan"
    hints: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def addresses(self) -> list[str]:
        return ["/ip4/192.168.1.7/tcp/4711"]

    def hint(self, peer_id: str, addresses: Any) -> None:
        self.hints.append((peer_id, tuple(addresses)))


def made(settings: NetConfig | None = None) -> tuple[Discovering, Net, Gate]:
    net, gate = Net(), Gate()
    told = ("/dns/home.example/tcp/9", "/ip4/192.168.1.7/tcp/4711", "/ip4/8.8.8.8/tcp/4711")
    return Discovering(
        settings or NetConfig(), net, gate, OWN, lambda: [(BEA, ())], lambda: told,  # type: ignore[arg-type]
        frozenset, SeededEntropy(),
    ), net, gate


def said(peer_id: str, *hosts: str, nonce: bytes = NONCE, pairing: bool = False) -> Announcement:
    return Announcement(nonce, tag_of(nonce, peer_id), 4711, hosts or ("192.168.1.9",), pairing)


def test_by_default_nothing_is_wanted_but_for_the_length_of_a_window() -> None:
    discovering, net, gate = made()
    assert not discovering._wanted()
    assert discovering._says() is None
    gate.open_pairing()
    assert discovering._wanted()
    announced = discovering._says()
    assert announced is not None
    assert (announced.pairing, announced.hosts, announced.port) == (True, ("192.168.1.7",), 4711)  # local ones only
    net.mode = "offline"
    assert not discovering._wanted()
    net.mode = "lan"
    gate.close_pairing()
    assert not discovering._wanted()


def test_the_owner_can_switch_it_on_for_good_or_off_even_while_pairing() -> None:
    always, _, _ = made(NetConfig(discovery=True))
    assert always._wanted()
    announced = always._says()
    assert announced is not None
    assert not announced.pairing
    never, _, gate = made(NetConfig(pair_discovery=False))
    gate.open_pairing()
    assert not never._wanted()
    assert never._says() is None


def test_a_paired_peer_is_recognised_and_called_and_a_stranger_is_not() -> None:
    discovering, net, _ = made()
    discovering._hears(said(STRANGER))
    discovering._hears(said(BEA, "8.8.8.8"))     # nobody on the local network is there
    discovering._hears(said(BEA, "127.0.0.1"))
    assert net.hints == []
    discovering._hears(said(BEA))
    assert net.hints == [(BEA, ("/ip4/192.168.1.9/tcp/4711",))]


async def test_a_window_is_found_and_two_are_told_apart(autojump_clock: trio.testing.MockClock) -> None:
    discovering, _, _ = made()
    assert await discovering.find_windows() == []
    discovering._hears(said(STRANGER))
    assert await discovering.find_windows() == []
    discovering._hears(said(STRANGER, pairing=True))
    assert await discovering.find_windows() == [("/ip4/192.168.1.9/tcp/4711",)]
    discovering._hears(said(BEA, "192.168.1.10", nonce=bytes(16), pairing=True))
    assert len(await discovering.find_windows()) == 2
    await trio.sleep(60)
    assert await discovering.find_windows() == []  # nobody keeps a window that is heard of no more


async def test_a_flood_of_windows_is_bounded(autojump_clock: trio.testing.MockClock) -> None:
    discovering, _, _ = made()
    for number in range(200):
        discovering._hears(said(STRANGER, nonce=number.to_bytes(16, "big"), pairing=True))
    assert len(await discovering.find_windows()) == MAX_WINDOWS


async def test_nothing_is_looked_for_when_the_owner_switched_it_off(autojump_clock: trio.testing.MockClock) -> None:
    discovering, _, _ = made(NetConfig(pair_discovery=False))
    discovering._hears(said(STRANGER, pairing=True))
    assert await discovering.find_windows() == []


@pytest.mark.parametrize("hosts", [("not a host",), ("",), ("192.168.1.9" * 40,)])
def test_nonsense_for_a_host_is_passed_over(hosts: tuple[str, ...]) -> None:
    discovering, net, _ = made()
    discovering._hears(said(BEA, *hosts, pairing=True))
    assert net.hints == []
