"""Two homes behind routers with NAT and a relay in the internet: real nodes in network namespaces.

Skips, with the reason, where namespaces cannot be made. The nodes pair while the homes are one network, as people do
at home, and are parted then.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from labnodes import LabNodes, lab_nodes
from netlab import lab
from running_nodes import cli, until

pytestmark = pytest.mark.e2e

SUPPORT = Path(__file__).parents[1] / "support"
CANARY = "the spare key lies under the third flower pot"


@contextmanager
def three(letter: str, **settings: str) -> Iterator[LabNodes]:
    """a and b at their homes, net in the internet; all know each other and nothing is between them yet."""
    with lab(letter) as made, lab_nodes(made) as nodes:
        nodes.add("a", "b", "net", **settings)
        for shower, typist in (("net", "a"), ("net", "b"), ("b", "a")):
            nodes.pair(shower, typist)
        yield nodes


@pytest.fixture(scope="module")
def pierced() -> Iterator[LabNodes]:
    """The routers show each device's calls under one address, as most do."""
    with three("h") as nodes:
        nodes.lab.close_up()
        nodes.wait_absent("a", "b")
        yield nodes


@pytest.fixture(scope="module")
def homes(pierced: LabNodes) -> LabNodes:
    """The routers show each call under another port: no hole can be punched, what is relayed stays so."""
    pierced.lab.close_up(symmetric=True)
    pierced.restart("a", "b")
    pierced.wait_route("a", "b", "relayed via net")
    pierced.wait_route("b", "a", "relayed via net")
    return pierced


def test_a_hole_is_punched_through_two_routers_and_nothing_breaks(pierced: LabNodes) -> None:
    nodes = pierced
    assert nodes.wait_route("a", "b", "lan /ip4/203.0.113.2/tcp/")
    nodes.wait_route("b", "a", "lan /ip4/198.51.100.2/tcp/")
    nodes.send("a", "b", "straight through")
    nodes.wait_message("b", "straight through")
    nodes["net"].stop()  # the relay is not needed any more
    nodes.send("b", "a", "still there")
    nodes.wait_message("a", "still there")
    assert nodes.route("a", "b").startswith("lan /ip4/203.0.113.2/tcp/")
    # control: nothing but the punched hole leads there
    assert nodes.lab.run(
        "a", "timeout", "2", "bash", "-c", "echo > /dev/tcp/203.0.113.2/4711 && echo open", check=False
    ) == ""
    nodes["net"].start()


def test_two_nodes_behind_routers_meet_through_the_relay(homes: LabNodes) -> None:
    homes.send("a", "b", CANARY)
    homes.wait_message("b", CANARY)
    homes.send("b", "a", "found it")
    homes.wait_message("a", "found it")


def test_ping_and_peers_show_the_way(homes: LabNodes) -> None:
    done = cli(homes["a"], "ping", "b", "-n", "2", "-i", "0")
    assert done.returncode == 0, done.stderr
    assert all(" ms relayed via net" in line for line in done.stdout.splitlines()), done.stdout
    view = json.loads(cli(homes["a"], "ping", "b", "-n", "1", "--json").stdout)
    assert (view["replies"][0]["route"], view["replies"][0]["transport"]) == ("relayed via net", "circuit")
    assert "relayed via net" in cli(homes["b"], "peers").stdout
    assert " via lan tcp " in cli(homes["a"], "ping", "net", "-n", "1").stdout


def test_the_relay_keeps_none_of_the_words_and_enters_an_opaque_blob(homes: LabNodes) -> None:
    entries = homes["net"].client().get("/v1/ledger", limit=100)
    carried = [entry for entry in entries if entry["purpose"] == "relay"]
    assert carried
    assert {entry["level"] for entry in carried} == {"accounted"}
    for entry in carried:
        full = homes["net"].client().get(f"/v1/ledger/{entry['entry_id']}")
        assert not full["texts"]
    written = b"".join(path.read_bytes() for path in homes["net"].home.rglob("*") if path.is_file())
    assert CANARY.encode() not in written
    report = homes["net"].client().post("/v1/ledger/verify")
    assert report["ok"], report


def test_the_owner_of_the_relay_can_end_it(homes: LabNodes) -> None:
    kept = homes["net"].client().get("/v1/peers/a/grant")["services"]
    done = cli(homes["net"], "grant", "edit", "a", "--services", "mail")
    assert done.returncode == 0, done.stderr
    homes.wait_absent("b", "a")
    view = until(lambda: _net(homes, "a", relays=0), "a has no relay")
    assert any("Nobody can call this node from the internet" in text for text in view["advice"]), view["advice"]
    cli(homes["net"], "grant", "edit", "a", "--services", ",".join(kept))
    homes.wait_route("b", "a", "relayed via net")


def test_a_symmetric_router_keeps_the_way_relayed_and_kith_net_says_so(homes: LabNodes) -> None:
    until(lambda: "answer" in _row(homes, "a", "b")["direct_problem"], "a hole was tried")
    assert _row(homes, "a", "b")["route"] == "relayed via net"
    text = cli(homes["a"], "net").stdout
    assert "relayed via net" in text


def _net(homes: LabNodes, at: str, *, relays: int) -> dict[str, Any] | None:
    view = json.loads(cli(homes[at], "net", "--json").stdout)
    return view if len(view["relays"]) == relays else None


def _row(homes: LabNodes, at: str, to: str) -> dict[str, str]:
    view = json.loads(cli(homes[at], "net", "--json").stdout)
    (row,) = [one for one in view["peers"] if one["name"] == to]
    return row


def test_lan_mode_uses_no_relay(homes: LabNodes) -> None:
    homes["a"].client().put("/v1/mode", {"mode": "lan"})
    try:
        homes.wait_absent("a", "b")
        homes.wait_absent("b", "a")
        homes.wait_route("a", "net", "lan")  # the lab's internet has addresses that count as local
    finally:
        homes["a"].client().put("/v1/mode", {"mode": "online"})
    homes.wait_route("a", "b", "relayed via net")


def test_internet_down_ends_presence_and_it_comes_back_by_itself(homes: LabNodes) -> None:
    homes.lab.cut("ra", "wan")
    homes.wait_absent("a", "net")
    homes.wait_absent("a", "b")
    homes.send("a", "b", "written while the line was down")
    homes.lab.cut("ra", "wan", back=True)
    homes.wait_route("a", "b", "relayed via net")
    homes.wait_message("b", "written while the line was down")


def test_a_mapped_port_lets_a_home_be_called_with_no_relay_at_all(homes: LabNodes) -> None:
    """A home PC as the only always-on node: its router passes calls on, and its peers are told where."""
    router = subprocess.Popen(
        [*homes.lab.enter("ra"), sys.executable, str(SUPPORT / "fake_router.py"), "192.168.1.1", "198.51.100.2", "wan"],
        stdout=subprocess.PIPE, text=True,
    )
    try:
        assert router.stdout is not None
        assert router.stdout.readline().strip() == "ready"
        homes.reconfigure("a", net_port_mapping="true")
        view = until(lambda: _mapped(homes), "the router passes calls on")
        assert view["mapped"] == ["/ip4/198.51.100.2/tcp/4711"]
        assert "NAT-PMP" in view["mapping"]
        homes.wait_route("b", "a", "lan /ip4/198.51.100.2/tcp/4711")  # told over the relayed link
        homes["net"].stop()
        homes.restart("b")
        homes.wait_route("b", "a", "lan /ip4/198.51.100.2/tcp/4711")      # and remembered
        homes.send("b", "a", "home without a relay")
        homes.wait_message("a", "home without a relay")
        homes["a"].stop()
        assert "mapped" not in homes.lab.run("ra", "nft", "list", "tables")  # taken back at the end
    finally:
        router.kill()
        router.wait()
        assert router.stdout is not None
        router.stdout.close()


def _mapped(homes: LabNodes) -> dict[str, Any] | None:
    view = json.loads(cli(homes["a"], "net", "--json").stdout)
    return view if view["mapped"] else None
