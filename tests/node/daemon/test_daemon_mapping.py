"""A port of the router: asked for only when wanted, renewed, told, and taken back. A mock clock and a fake router."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import trio
from patience import HANG_S, until

from node.daemon.mapping import RETRY_S, Mapping
from node.net.port_mapping import MappingFailed, PortMapping, Router
from node.settings import NetConfig


@dataclass
class World:
    mode: str = "online"
    listening: list[str] = field(default_factory=lambda: ["/ip4/0.0.0.0/tcp/4711"])
    found: tuple[str, str] | None = ("192.168.1.7", "192.168.1.1")
    failure: str = ""
    asked_s: list[float] = field(default_factory=list)
    told: list[tuple[str, ...]] = field(default_factory=list)

    def addresses(self) -> list[str]:
        return self.listening

    def tell(self, addresses: Sequence[str]) -> None:
        self.told.append(tuple(addresses))

    async def ask(self, router: Router, own: str, port: int) -> PortMapping:
        await trio.lowlevel.checkpoint()
        self.asked_s.append(trio.current_time())
        if self.failure:
            raise MappingFailed(self.failure)
        assert (router.gateway, own, port) == ("192.168.1.1", "192.168.1.7", 4711)
        return PortMapping("203.0.113.2", 4711, 3600, "NAT-PMP")

    def mapping(self, *, wanted: bool = True) -> Mapping:
        return Mapping(
            NetConfig(port_mapping=wanted), self, self.tell, lambda: self.found,  # type: ignore[arg-type]
            router=lambda gateway: Router(gateway, 9, ("127.0.0.1", 9)), ask=self.ask,
        )


async def started(mapping: Mapping, nursery: trio.Nursery) -> None:
    await nursery.start(mapping.run)


async def test_a_port_is_mapped_told_renewed_and_no_longer_told_when_the_mode_narrows() -> None:
    world = World()
    mapping = world.mapping()
    async with trio.open_nursery() as nursery:
        await started(mapping, nursery)
        with trio.fail_after(HANG_S):
            while not world.told:
                await trio.sleep(0.01)
        assert world.told == [("/ip4/203.0.113.2/tcp/4711",)]
        assert mapping.state == "passes calls on (NAT-PMP)"
        world.mode = "lan"
        with trio.fail_after(HANG_S):
            while world.told[-1]:
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("world", [
    World(mode="lan"), World(mode="offline"), World(listening=[]), World(found=None),
    World(listening=["/ip4/127.0.0.1/tcp/4711"]),
])
async def test_nothing_is_asked_where_it_would_be_of_no_use(world: World) -> None:
    async with trio.open_nursery() as nursery:
        await started(world.mapping(), nursery)
        await trio.sleep(0.3)
        assert world.asked_s == []
        nursery.cancel_scope.cancel()


async def test_the_owner_has_to_want_it() -> None:
    world = World()
    mapping = world.mapping(wanted=False)
    async with trio.open_nursery() as nursery:
        await started(mapping, nursery)
        await trio.sleep(0.3)
    assert world.asked_s == []
    assert "net.port_mapping is false" in mapping.state


async def test_a_refusal_is_told_in_words_and_asked_again_rarely() -> None:
    world = World(failure="NAT-PMP: no answer; UPnP: no answer")
    mapping = world.mapping()
    async with trio.open_nursery() as nursery:
        await started(mapping, nursery)
        await until(lambda: mapping.state == "passes nothing on: NAT-PMP: no answer; UPnP: no answer")
        await trio.sleep(1.5)
        assert len(world.asked_s) == 1
        assert RETRY_S >= 60
        nursery.cancel_scope.cancel()
    assert all(not told for told in world.told)
