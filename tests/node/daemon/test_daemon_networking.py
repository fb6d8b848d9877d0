"""Listeners as switches and addresses want them, over a network that only remembers; the real one is tested end to end.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest
import trio
from patience import HANG_S

from node.daemon import networking as module
from node.daemon.networking import Networking, Wiring
from node.net.errors import AddressInUse
from node.net.gate import Gate

LOOP, LAN, OTHER = "/ip4/127.0.0.1/tcp/4711", "/ip4/192.168.1.7/tcp/4711", "/ip4/10.0.0.9/tcp/4711"


class FakeNetwork:
    """Listens on whatever this machine has."""

    here: ClassVar[set[str]] = {"127.0.0.1", "192.168.1.7"}
    taken = False
    made: "FakeNetwork"

    def __init__(self, *_: Any, **__: Any) -> None:
        type(self).made = self
        self.listening: set[str] = set()
        self.served = 0

    async def serve(self, listen: Sequence[str], *, task_status: Any) -> None:
        self.served += 1
        try:
            task_status.started()
            await trio.sleep_forever()
        finally:
            self.listening.clear()

    async def add_listener(self, address: str) -> str:
        await trio.lowlevel.checkpoint()
        if self.taken or address.split("/")[2] not in self.here:
            raise AddressInUse(f"{address} is in use by another program.")
        self.listening.add(address)
        return address

    async def remove_listener(self, address: str) -> None:
        await trio.lowlevel.checkpoint()
        self.listening.discard(address)

    def addresses(self) -> list[str]:
        return sorted(self.listening)

    def connected(self) -> set[str]:
        return set()

    def drop_stale(self, addresses: frozenset[str]) -> int:
        return 0


class FakeLinks:
    woken = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    async def run(self, *, task_status: Any) -> None:
        task_status.started()
        await trio.sleep_forever()

    def wake(self, peer_id: str | None = None) -> None:
        type(self).woken += 1

    async def leave_all(self, code: str) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None        # what else is told to links is the links' matter


class Nothing:
    """Identity, guard and entropy, which nobody looks at here."""

    seed = b""
    peer_id = "me"


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "_import_network", lambda: (FakeNetwork, FakeLinks))
    monkeypatch.setattr(FakeNetwork, "here", {"127.0.0.1", "192.168.1.7"})
    monkeypatch.setattr(FakeNetwork, "taken", False)
    monkeypatch.setattr(FakeLinks, "woken", 0)
    return None


async def _drop(_: Any) -> None:
    raise AssertionError


def made(mode: str) -> Networking:
    wiring = Wiring(on_channel=_drop, on_event=lambda event: None, hello=lambda peer: None, known=lambda: ())  # type: ignore[arg-type,return-value]
    return Networking(Nothing(), Gate(), Nothing(), Nothing(), wiring, mode=mode)  # type: ignore[arg-type]


async def started(nursery: trio.Nursery, net: Networking, *listen: str) -> None:
    await nursery.start(lambda **kw: net.run(listen, any_port=False, **kw))
    with trio.fail_after(HANG_S):
        while net.stage != "ready":
            await trio.sleep(0.01)


async def test_a_taken_port_leaves_it_offline_and_running(fakes: None, nursery: trio.Nursery) -> None:
    net = made("offline")
    await started(nursery, net, LOOP)
    FakeNetwork.taken = True
    with pytest.raises(AddressInUse, match="stays offline") as caught:
        await net.set_mode("lan")
    assert caught.value.hint.endswith("kith mode lan")
    assert (net.mode, net.stage, net.addresses()) == ("offline", "ready", [])
    FakeNetwork.taken = False
    await net.set_mode("lan")
    assert net.addresses() == [LOOP]


async def test_a_start_that_cannot_listen_still_ends_the_node(fakes: None) -> None:
    FakeNetwork.taken = True
    with pytest.RaisesGroup(AddressInUse, allow_unwrapped=True, flatten_subgroups=True):
        await made("lan").run((LOOP,), any_port=False)


async def test_listeners_follow_the_addresses_of_the_machine(fakes: None, nursery: trio.Nursery) -> None:
    net = made("lan")
    await started(nursery, net, LOOP, LAN, OTHER)
    assert net.addresses() == [LOOP, LAN]
    FakeNetwork.here = {"127.0.0.1", "10.0.0.9"}        # another network
    await net.refresh(frozenset({"10.0.0.9"}))
    assert net.addresses() == [OTHER, LOOP]
    FakeNetwork.here = {"127.0.0.1"}
    await net.refresh(frozenset())                      # none: loopback stays
    assert net.addresses() == [LOOP]
    FakeNetwork.here = {"127.0.0.1", "192.168.1.7"}
    await net.refresh(frozenset({"192.168.1.7"}))
    assert net.addresses() == [LOOP, LAN]
    assert FakeLinks.woken == 3                         # whoever is away is called each time


async def test_what_pairing_added_comes_back_with_the_next_mode(fakes: None, nursery: trio.Nursery) -> None:
    net = made("lan")
    await started(nursery, net, LOOP)
    await net.add_listener(LAN)
    await net.set_mode("offline")
    assert net.addresses() == []
    await net.set_mode("lan")
    assert net.addresses() == [LOOP, LAN]
    await net.remove_listener(LAN)
    await net.set_mode("offline")
    await net.set_mode("lan")
    assert net.addresses() == [LOOP]


async def test_offline_a_change_of_addresses_opens_nothing(fakes: None, nursery: trio.Nursery) -> None:
    net = made("lan")
    await started(nursery, net, LOOP)
    await net.set_mode("offline")
    await net.refresh(frozenset({"192.168.1.7"}))
    assert (net.addresses(), FakeNetwork.made.listening) == ([], set())
