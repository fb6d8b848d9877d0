"""Which addresses are told to peers, which told ones are taken, where to listen after a move; routes in words."""

import pytest

from node.daemon.lan import gateway_in, may_reach
from node.daemon.own_addresses import hosts_to_add, may_be_told, own_addresses, stated_addresses
from node.daemon.routes import relay_of, route_words

PEER = "12D3KooW" + "A" * 44
OTHER = "12D3KooW" + "B" * 44
HERE = frozenset({"192.168.1.7", "fd00::7", "10.8.0.2", "203.0.113.9", "2a00:1450:4001::1", "fe80::1"})


def test_a_wildcard_stands_for_every_address_here_public_ones_first() -> None:
    assert own_addresses(["/ip4/0.0.0.0/tcp/4711"], HERE, ()) == (
        "/ip4/10.8.0.2/tcp/4711", "/ip4/192.168.1.7/tcp/4711", "/ip4/203.0.113.9/tcp/4711",
    )
    assert own_addresses(["/ip6/::/tcp/4711", "/ip4/192.168.1.7/tcp/4711"], HERE, ()) == (
        "/ip6/2a00:1450:4001::1/tcp/4711", "/ip4/192.168.1.7/tcp/4711", "/ip6/fd00::7/tcp/4711",
    )


def test_loopback_means_nothing_elsewhere_and_stated_ones_come_first() -> None:
    told = own_addresses(
        ["/ip4/127.0.0.1/tcp/1", "/ip6/::1/tcp/1", "/ip4/10.8.0.2/tcp/1"], HERE, ("/dns/home.example/tcp/9",)
    )
    assert told == ("/dns/home.example/tcp/9", "/ip4/10.8.0.2/tcp/1")


@pytest.mark.parametrize(("text", "address"), [
    ("home.example", "/dns/home.example/tcp/4711"), ("home.example:9", "/dns/home.example/tcp/9"),
    ("203.0.113.9", "/ip4/203.0.113.9/tcp/4711"), ("203.0.113.9:9", "/ip4/203.0.113.9/tcp/9"),
    ("[2001:db8::1]:9", "/ip6/2001:db8::1/tcp/9"), ("[2001:db8::1]", "/ip6/2001:db8::1/tcp/4711"),
    ("2001:db8::1", "/ip6/2001:db8::1/tcp/4711"),
])
def test_stated_addresses_are_spelled_out_with_the_port_that_is_listened_on(text: str, address: str) -> None:
    assert stated_addresses((text,), ["/ip4/0.0.0.0/tcp/4711"]) == (address,)


def test_what_makes_no_sense_is_not_told() -> None:
    assert stated_addresses(("a b", "x:99999"), ["/ip4/0.0.0.0/tcp/4711"]) == ()
    assert stated_addresses(("home.example",), []) == ()  # no port to tell


@pytest.mark.parametrize("text", [
    "/ip4/127.0.0.1/tcp/22", "/ip6/::1/tcp/22", "/ip4/0.0.0.0/tcp/1", "/ip4/224.0.0.251/tcp/5353", "/ip6/fe80::1/tcp/1",
    "/dns/localhost/tcp/80", "/dns4/localhost./tcp/80", "/ip4/10.0.0.1/tcp/0", "/ip4/10.0.0.1/udp/1", "nonsense",
    f"/ip4/10.0.0.1/tcp/1/p2p/{OTHER}", f"/p2p/{OTHER}/p2p-circuit",
])
def test_a_peer_cannot_make_us_call_this_machine_a_group_or_somebody_else(text: str) -> None:
    assert not may_be_told(text, PEER)


@pytest.mark.parametrize("text", [
    "/ip4/192.168.1.7/tcp/4711", "/ip6/fd00::7/tcp/1", "/dns/home.example/tcp/1", f"/ip4/10.0.0.1/tcp/1/p2p/{PEER}",
])
def test_control_its_own_addresses_are_taken(text: str) -> None:
    assert may_be_told(text, PEER)


def test_after_a_move_the_new_private_address_is_listened_on() -> None:
    wanted = ["127.0.0.1", "192.168.1.7"]
    moved = frozenset({"192.168.1.9", "fd00::7"})
    assert hosts_to_add(wanted, ["127.0.0.1"], moved) == ["192.168.1.9"]
    assert hosts_to_add(wanted, ["127.0.0.1", "192.168.1.9"], moved) == []
    # back again: the wanted one alone
    assert hosts_to_add(wanted, ["127.0.0.1"], frozenset({"192.168.1.7", "10.0.0.1"})) == ["192.168.1.7"]


@pytest.mark.parametrize("wanted", [["127.0.0.1"], ["0.0.0.0"], ["8.8.8.8"], ["127.0.0.1", "::"]])
def test_who_listens_on_no_private_address_gets_none(wanted: list[str]) -> None:
    assert hosts_to_add(wanted, wanted, frozenset({"192.168.1.9", "fd00::9"})) == []


def test_routes_in_words() -> None:
    def name(peer_id: str) -> str:
        return {PEER: "attic"}[peer_id]

    assert route_words(f"/p2p/{PEER}/p2p-circuit", name) == "relayed via attic"
    assert relay_of(f"/p2p/{PEER}/p2p-circuit") == PEER
    assert relay_of("/ip4/10.0.0.1/tcp/1") is None
    assert route_words("/ip4/192.168.1.7/tcp/1", name) == "lan"
    assert route_words("/ip6/fd00::7/tcp/1", name) == "lan"
    assert route_words("/ip4/8.8.8.8/tcp/1", name) == "direct"
    assert route_words("/ip4/127.0.0.1/tcp/1", name) == "direct"
    assert route_words("", name) == "direct"


def test_a_relay_is_for_mode_online_only() -> None:
    address = f"/p2p/{PEER}/p2p-circuit"
    assert [may_reach(mode, address) for mode in ("offline", "lan", "online")] == [False, False, True]


ROUTES = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
wlan0\t00000000\tFE02A8C0\t0003\t0\t0\t50\t00000000\t0\t0\t0
tun0\t00000000\t00000000\t0001\t0\t0\t10\t00000000\t0\t0\t0
eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
"""


def test_the_gateway_is_the_cheapest_default_route_that_has_one() -> None:
    assert gateway_in(ROUTES) == ("192.168.2.254", "wlan0")
    assert gateway_in(ROUTES.replace("FE02A8C0", "00000000")) == ("192.168.1.1", "eth0")
    assert gateway_in("") is None
    assert gateway_in("Iface\nshort line\n") is None
