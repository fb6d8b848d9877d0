"""Relays by grant and mode, addresses told and taken, and nothing that brings a dead peer back."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from fixed import FixedClock
from pairing_node import PairingNode, open_node
from patience import HANG_S

from node.daemon.grants import Grants
from node.daemon.peers import Roster
from node.daemon.reaching import Reaching
from node.identity import granting
from node.identity.keystore import Identity
from node.identity.peerbook import PeerBook
from node.identity.trust import DEFAULT_TERMS, Trust
from node.net.events import AddressesTold, LinkDown, LinkUp, Rerouted
from node.privacy.traffic import Traffic
from node.settings import NetConfig
from node.store import grants as grant_rows
from node.store import peers
from node.store.peers import Peer
from protocol.frames.link import Hello
from protocol.names import PROTOCOLS
from protocol.whereabouts import sign_whereabouts, verify_whereabouts

BEA_SEED, CARA_SEED = bytes([7]) * 32, bytes([8]) * 32
BEA, CARA = (Identity.from_seed(seed).peer_id for seed in (BEA_SEED, CARA_SEED))
OLD, NEW = "/ip4/10.0.0.9/tcp/1", "/ip4/10.0.0.77/tcp/4711"


class Net:
    """What reaching tells the network."""

    def __init__(self) -> None:
        self.mode = "online"
        self.listening = ["/ip4/0.0.0.0/tcp/4711"]
        self.relays: list[list[str]] = []
        self.told: list[bytes] = []
        self.known: list[tuple[str, tuple[str, ...]]] = []
        self.improved: list[str] = []
        self.rerouted: list[str] = []
        self.observed: tuple[Any, ...] = ()
        self.after_event: Any = None

    def addresses(self) -> list[str]:
        return self.listening

    def use_relays(self, relays: Any) -> None:
        self.relays.append(list(relays))

    def relocate(self, addresses: bytes) -> None:
        self.told.append(addresses)

    def know(self, peer_id: str, addresses: Any) -> None:
        self.known.append((peer_id, tuple(addresses)))

    def improve(self, peer_id: str) -> None:
        self.improved.append(peer_id)

    def reroute(self, peer_id: str) -> None:
        self.rerouted.append(peer_id)

    def observe(self, addresses: Any) -> None:
        self.observed = addresses


class Account:
    def __init__(self) -> None:
        self.counted = 0
        self.outcome = ""

    def count(self, data: bytes) -> None:
        self.counted += len(data)

    async def close(self, outcome: str) -> None:
        await trio.lowlevel.checkpoint()
        self.outcome = outcome


class Accounts:
    def __init__(self) -> None:
        self.opened: list[tuple[Any, ...]] = []
        self.last = Account()

    async def open(self, *what: Any) -> Account:
        await trio.lowlevel.checkpoint()
        self.opened.append(what)
        self.last = Account()
        return self.last


class House:
    def __init__(self, node: PairingNode, settings: NetConfig) -> None:
        self.node = node
        self.clock: FixedClock = node.clock
        self.book = PeerBook(node.database, node.identity, node.clock, lambda peer_id: self.roster.cut(peer_id))
        self.grants = Grants(self.book, node.clock)
        self.roster = Roster(node.database, self.book, self.grants, node.clock, self._style)
        self.net, self.accounts, self.traffic = Net(), Accounts(), Traffic()
        self.here = frozenset({"192.168.1.7"})
        self.reaching = Reaching(
            node.identity, settings, self.grants, self.roster, node.database, self.accounts,  # type: ignore[arg-type]
            self.traffic, node.clock, lambda: "id-1", lambda: self.here,
        )
        self.roster.networking = self.net  # type: ignore[assignment]
        self.reaching.attach(self.net)  # type: ignore[arg-type]

    async def _style(self, digest: str | None) -> str:
        return "brackets"

    def hear(self, event: Any) -> None:
        if isinstance(event, LinkUp):
            self.roster.link_up(event)
        if isinstance(event, LinkDown):
            self.roster.link_down(event)
        self.reaching.hear(event)

    def up(self, peer_id: str, *capabilities: str, address: str = OLD) -> None:
        hello = Hello("bea", "0.1.0", PROTOCOLS, capabilities, ())
        self.hear(LinkUp(peer_id, hello, frozenset(PROTOCOLS), frozenset(capabilities), address, 1.0))

    async def addresses_of(self, peer_id: str) -> tuple[str, ...]:
        row = await self.book.get(peer_id)
        assert row is not None
        return row.addresses


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async for found in _house(tmp_path, NetConfig()):
        yield found


async def _house(tmp_path: Path, settings: NetConfig) -> AsyncIterator[House]:
    node = await open_node(tmp_path / "n", "phone", 1)

    def fill(tx: Any) -> None:
        for peer_id, name, trust in ((BEA, "bea", "home"), (CARA, "cara", "friend")):
            peers.add(tx, Peer(peer_id, name, trust, "self", (OLD,), 1, None))
            blob = granting.issue(node.identity, peer_id, DEFAULT_TERMS[Trust(trust)], 1, node.clock.now())
            grant_rows.put(tx, peer_id, "issued", 1, blob, 1)
        grant_rows.reserve_epoch(tx)

    await node.database.write(fill)
    found = House(node, settings)
    await found.roster.load()
    yield found
    await node.database.close()


async def running(house: House, nursery: trio.Nursery) -> None:
    await nursery.start(house.reaching.run)


async def until(condition: Any) -> None:
    with trio.fail_after(HANG_S):
        while not await condition():
            await trio.sleep(0.01)


def told_by(seed: bytes, number_ms: int, *addresses: str, seen_at: str | None = None) -> AddressesTold:
    peer_id = Identity.from_seed(seed).peer_id
    return AddressesTold(peer_id, sign_whereabouts(addresses, number_ms=number_ms, seed=seed), seen_at)


async def test_an_own_device_may_use_this_relay_and_a_friend_needs_a_grant(house: House) -> None:
    assert house.reaching.carries_for(BEA)
    assert not house.reaching.carries_for(CARA)
    assert not house.reaching.carries_for("12D3KooWnobody")
    house.net.mode = "lan"
    assert not house.reaching.carries_for(BEA)


async def test_the_owner_can_carry_for_nobody(tmp_path: Path) -> None:
    async for house in _house(tmp_path, NetConfig(relay=False)):
        assert not house.reaching.carries_for(BEA)


async def test_a_circuit_is_entered_before_it_is_carried_and_counted_as_an_opaque_blob(house: House) -> None:
    account = await house.reaching.account(BEA, CARA)
    assert [one[0] for one in house.accounts.opened] == [CARA]
    assert str(house.accounts.opened[0][2]) == "relay"
    account.add(b"x" * 100)
    assert house.accounts.last.counted == 100
    assert house.traffic.of(CARA)["relay"].bytes == 100
    await account.close("end")
    assert house.accounts.last.outcome == "end"


async def test_a_peer_whose_clock_was_put_back_is_heard_again_once_it_has_come_anew(
    house: House, nursery: trio.Nursery,
) -> None:
    await running(house, nursery)
    house.up(BEA, "mail")
    house.hear(told_by(BEA_SEED, 4_000_000_000_000, OLD))  # by a clock of the year 2096
    house.hear(told_by(BEA_SEED, 1_800_000_000_000, NEW))  # on the same link: an old list that comes late
    house.hear(LinkDown(BEA, "lost"))
    house.up(BEA, "mail")
    house.hear(told_by(BEA_SEED, 1_800_000_000_000, NEW))

    async def known() -> bool:
        return NEW in await house.addresses_of(BEA)

    await until(known)
    nursery.cancel_scope.cancel()


async def test_relays_are_the_present_peers_that_grant_it(house: House) -> None:
    house.up(CARA, "mail")
    assert house.net.relays[-1] == []
    house.up(BEA, "mail", "relay")
    assert house.net.relays[-1] == [BEA]
    house.hear(LinkDown(BEA, "silent"))
    assert house.net.relays[-1] == []


async def test_a_told_address_is_remembered_first_and_used(house: House) -> None:
    async with trio.open_nursery() as nursery:
        await running(house, nursery)
        house.hear(told_by(BEA_SEED, 1, NEW, "/ip4/127.0.0.1/tcp/22"))

        async def noted() -> bool:
            return (await house.addresses_of(BEA))[0] == NEW

        await until(noted)
        assert await house.addresses_of(BEA) == (NEW, OLD)  # loopback is nobody's address elsewhere
        assert house.net.known[-1] == (BEA, (NEW, OLD))
        assert house.net.improved == [BEA]
        nursery.cancel_scope.cancel()


async def test_what_another_signed_or_an_older_list_changes_nothing(house: House) -> None:
    async with trio.open_nursery() as nursery:
        await running(house, nursery)
        forged = AddressesTold(BEA, told_by(CARA_SEED, 9, NEW).addresses, None)
        house.hear(forged)
        house.hear(AddressesTold(BEA, b"nonsense", None))
        house.hear(told_by(BEA_SEED, 5, "/ip4/10.0.0.50/tcp/1"))
        house.hear(told_by(BEA_SEED, 4, NEW))

        async def noted() -> bool:
            return (await house.addresses_of(BEA))[0] == "/ip4/10.0.0.50/tcp/1"

        await until(noted)
        await trio.sleep(0.1)
        assert await house.addresses_of(BEA) == ("/ip4/10.0.0.50/tcp/1", OLD)
        nursery.cancel_scope.cancel()


async def test_told_addresses_make_nobody_present(house: House) -> None:
    """S20: presence follows the peer's own link; a list of addresses is a place to call, no sign of life."""
    house.up(BEA)
    house.hear(LinkDown(BEA, "silent"))
    house.hear(told_by(BEA_SEED, 1, NEW))
    assert not house.roster.is_present(BEA)


async def test_own_addresses_are_told_when_they_change_with_a_higher_number(house: House) -> None:
    async with trio.open_nursery() as nursery:
        await running(house, nursery)
        with trio.fail_after(HANG_S):
            while not house.net.told:
                await trio.sleep(0.01)
            first = verify_whereabouts(house.net.told[-1], peer_id=house.node.identity.peer_id)
            assert first.addresses == ("/ip4/192.168.1.7/tcp/4711",)
            house.here = frozenset({"192.168.1.8"})
            house.reaching.set_mapped(["/ip4/203.0.113.2/tcp/4711"])
            while len(house.net.told) < 2:
                await trio.sleep(0.01)
        second = verify_whereabouts(house.net.told[-1], peer_id=house.node.identity.peer_id)
        assert second.addresses == ("/ip4/203.0.113.2/tcp/4711", "/ip4/192.168.1.8/tcp/4711")
        assert second.number_ms > first.number_ms
        nursery.cancel_scope.cancel()


async def test_where_others_see_us_is_kept_for_hole_punching_and_bounded(house: House) -> None:
    for number in range(9):
        house.hear(told_by(BEA_SEED, 1, seen_at=f"/ip4/203.0.113.{number}/tcp/9"))
    house.hear(told_by(CARA_SEED, 1, seen_at="/ip4/127.0.0.1/tcp/9"))
    house.hear(told_by(CARA_SEED, 1, seen_at="/dns/x.example/tcp/9"))
    assert [str(one) for one in house.net.observed] == ["/ip4/203.0.113.8/tcp/9"]


async def test_a_better_route_moves_the_link_and_is_remembered_when_we_found_it(house: House) -> None:
    async with trio.open_nursery() as nursery:
        await running(house, nursery)
        house.up(BEA, address=f"/p2p/{CARA}/p2p-circuit")
        house.hear(Rerouted(BEA, NEW, True))
        assert house.net.rerouted == [BEA]
        assert house.roster.address_of(BEA) == NEW

        async def noted() -> bool:
            return (await house.addresses_of(BEA))[0] == NEW

        await until(noted)
        nursery.cancel_scope.cancel()


async def test_neither_a_relays_way_nor_a_callers_port_is_remembered(house: House) -> None:
    for address, dialled in ((f"/p2p/{CARA}/p2p-circuit", True), ("/ip4/10.0.0.7/tcp/50123", False)):
        hello = Hello("bea", "0.1.0", PROTOCOLS, (), ())
        house.roster.link_up(LinkUp(BEA, hello, frozenset(), frozenset(), address, 1.0, dialled))
        await house.roster.note_contact(BEA)
        assert await house.addresses_of(BEA) == (OLD,)
    house.up(BEA, address=NEW)  # control
    await house.roster.note_contact(BEA)
    assert await house.addresses_of(BEA) == (NEW, OLD)
