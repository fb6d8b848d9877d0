"""Bad networks between real nodes, in namespaces: no multicast and no internet, another address, loss, a slow line,
packets that come late, twice and out of order. Skips, with the reason, where namespaces cannot be made."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from labnodes import LabNodes, lab_nodes
from netlab import HOME_A, ROUTER_A6, ROUTER_LAN, Lab, lab
from running_nodes import cli, rounds, until

from node.cli.demo.owner import pair_two

pytestmark = pytest.mark.e2e

AT_HOME = (f"lan /ip4/{ROUTER_LAN}/tcp/", f"lan /ip6/{ROUTER_A6}/tcp/")
"""Routes to the router's node over the wire at home: pairing made it listen on both, and whichever is quicker wins."""
SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(scope="module")
def home() -> Iterator[LabNodes]:
    """Two nodes of one home, a and the always-on router ra: multicast blocked, the internet down, addresses only."""
    with lab("r") as made, lab_nodes(made) as nodes:
        made.no_multicast("a", "ra")
        made.cut("ra", "wan")
        nodes.add("a", "ra", node_mode="lan", net_pair_discovery="true")
        nodes.pair("ra", "a")
        yield nodes


def test_pairing_and_presence_need_no_multicast_and_no_internet(home: LabNodes) -> None:
    """S21: only a unicast address is known; presence follows real contact."""
    home.wait_route("a", "ra", AT_HOME)
    home.send("a", "ra", "by address alone")
    home.wait_message("ra", "by address alone")
    home["ra"].stop()
    home.wait_absent("a", "ra")
    assert "away" in cli(home["a"], "net").stdout
    home["ra"].start()
    home.wait_route("a", "ra", "lan")


def test_control_multicast_really_is_blocked(home: LabNodes) -> None:
    sent = home.lab.run(
        "a", sys.executable, "-c",
        "import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
        "try: s.sendto(b'x',('224.0.0.251',5353)); print('sent')\nexcept PermissionError: print('blocked')",
    )
    assert sent.strip() == "blocked"


def test_another_address_is_found_out_told_and_used_without_any_call(home: LabNodes) -> None:
    """The router gives the device a new address: it is listened on, told, and the link is back by itself."""
    old, new = HOME_A, "192.168.1.77"
    told = json.loads(cli(home["a"], "net", "--json").stdout)["told"]
    assert told == [f"/ip4/{old}/tcp/4711"]
    home.lab.readdress_a(old, new)
    until(lambda: f"/ip4/{new}/tcp/4711" in _known(home, "ra"), "the router's node was told the new address")
    home.wait_route("a", "ra", "lan")
    assert json.loads(cli(home["a"], "net", "--json").stdout)["told"] == [f"/ip4/{new}/tcp/4711"]
    # and it can be called there: the router's node forgets its connection and calls by itself
    home["ra"].stop()
    home["ra"].start()
    home.wait_route("ra", "a", "lan")


def _known(nodes: LabNodes, at: str) -> list[str]:
    """The addresses of its only peer."""
    (row,) = json.loads(cli(nodes[at], "net", "--json").stdout)["peers"]
    return list(row["addresses"])


@pytest.mark.parametrize("times", [rounds(20, 1)])
def test_a_restarted_node_is_reached_again_by_the_same_process(home: LabNodes, times: int) -> None:
    """S1: no call by anyone, the same process on the other side, and listeners do not multiply."""
    pid = home["a"].pid
    for number in range(times):
        home["ra"].stop()
        home.wait_absent("a", "ra")
        home["ra"].start()
        home.wait_route("a", "ra", "lan")
        home.send("a", "ra", f"after restart {number}")
        home.wait_message("ra", f"after restart {number}")
    assert home["a"].pid == pid
    for place in ("a", "ra"):
        listening = home.lab.run(place, sys.executable, "-c", _COUNT).split()
        assert listening == ["4711"], listening


_COUNT = """
import pathlib
for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
    parts = line.split()
    if parts[3] == "0A": print(int(parts[1].split(":")[1], 16))
"""


@pytest.mark.soak
def test_loss_and_a_slow_line_delay_and_change_nothing(home: LabNodes) -> None:
    home.lab.slow_down("a", "eth0", "2mbit")
    for place in ("a", "ra"):
        home.lab.lose(place, 10, "output")
    try:
        _all_arrive_once_in_order(home, "a", "ra", rounds(100, 3))
        _all_arrive_once_in_order(home, "ra", "a", rounds(100, 3))
    finally:
        home.lab.smooth("a", "eth0")
        home.lab.run("ra", "nft", "delete", "table", "ip", "loss")


@pytest.mark.soak
def test_packets_that_come_late_twice_and_out_of_order_change_nothing(home: LabNodes) -> None:
    with rough_wire(home.lab, "a", "ra", delay_ms=30, spread_ms=40, doubled=10):
        until(lambda: "/ip4/10.9.0.2/tcp/4711" in _known(home, "a"), "a was told the address on the rough wire")
        home.lab.cut("a", "eth0")  # it is the only way from now on
        home.wait_route("a", "ra", "lan /ip4/10.9.0.2/tcp/")  # whoever called
        _all_arrive_once_in_order(home, "a", "ra", rounds(100, 6))
        home.lab.cut("a", "eth0", back=True)
    home.wait_route("a", "ra", AT_HOME)


def test_ipv6_takes_over_where_ipv4_is_lost(home: LabNodes) -> None:
    for place in ("ra", "a"):
        home.reconfigure(place, net_listen="0.0.0.0,::", node_mode="lan", net_pair_discovery="true")
    until(lambda: f"/ip6/{ROUTER_A6}/tcp/4711" in _known(home, "a"), "the IPv6 address is told")
    for place in ("a", "ra"):
        home.lab.no_ipv4(place, "192.168.1.0/24")
    until(lambda: home.route("a", "ra").startswith("lan /ip6/fd00:a::"), "the link runs over IPv6")
    home.send("a", "ra", "by the newer protocol")
    home.wait_message("ra", "by the newer protocol")


def test_a_code_alone_finds_the_window_on_the_local_network(home: LabNodes) -> None:
    """Where multicast passes: no address is typed. The block is lifted; the two pair anew."""
    for place, other in (("a", "ra"), ("ra", "a")):
        cli(home[place], "forget", other, "--yes")
        home.lab.run(place, "nft", "flush", "ruleset")
    with overhearing(home.lab, "a", "192.168.1.77") as packets:
        pair_two(home["ra"].client(), home["a"].client(), by_address=False)
        home.wait_route("a", "ra", "lan")
        announced = packets()
    assert any(b"_kith" in packet for packet in announced), "control: the announcement was overheard"
    ids = [home[place].status()["peer_id"].encode() for place in ("a", "ra")]
    for packet in announced:
        assert not any(word in packet for word in (*ids, b"amber")), packet
    # and it falls silent with the window
    until(lambda: "nothing" in cli(home["ra"], "net").stdout, "nothing is announced any more")


@contextmanager
def overhearing(made: Lab, place: str, address: str) -> Iterator[Callable[[], list[bytes]]]:
    """Everything that is said by multicast DNS there; called once, at the end."""
    ear = subprocess.Popen(
        [*made.enter(place), sys.executable, str(SUPPORT / "mdns_ear.py"), address],
        stdout=subprocess.PIPE, stdin=subprocess.PIPE,
    )

    def packets() -> list[bytes]:
        text, _ = ear.communicate(b"\n", timeout=30)
        return [bytes.fromhex(line) for line in text.decode().split()]

    try:
        assert ear.stdout is not None
        assert ear.stdout.readline() == b"ready\n"
        yield packets
    finally:
        ear.kill()
        ear.communicate()


def _all_arrive_once_in_order(nodes: LabNodes, at: str, to: str, count: int) -> None:
    run = len(nodes[to].client().get("/v1/inbox", limit=1000))
    texts = [f"from {at}, {run}: {number} " + "x" * 3000 for number in range(count)]
    for text in texts:
        nodes.send(at, to, text)
    nodes.wait_message(to, texts[-1])
    inbox = [one["body"] for one in nodes[to].client().get("/v1/inbox", limit=1000) if one["body"] in texts]
    assert inbox[::-1] == texts


@contextmanager
def rough_wire(made: Lab, one: str, two: str, *, delay_ms: int, spread_ms: int, doubled: int) -> Iterator[None]:
    """10.9.0.1 at one, 10.9.0.2 at two. What it carried is more than nothing, or the test proved nothing."""
    wire = subprocess.Popen(
        [sys.executable, str(SUPPORT / "rough_wire.py"), made.name(one), "10.9.0.1",
         made.name(two), "10.9.0.2", str(delay_ms), str(spread_ms), str(doubled), "7"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    try:
        assert wire.stdout is not None
        assert wire.stdout.readline().strip() == "ready"
        yield
        assert wire.stdin is not None
        wire.stdin.write("end\n")
        wire.stdin.flush()
        assert int(wire.stdout.readline()) > 50
    finally:
        wire.kill()
        wire.wait()
        for pipe in (wire.stdin, wire.stdout):
            assert pipe is not None
            pipe.close()
        time.sleep(0.1)


