"""What is seen of a machine: routes and batteries as the kernel writes them, and the machine the test runs on."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from node.modes.looking import addresses_up, look

HEADER = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
# as on a laptop: 192.168.1.1 as the way out over wlan0, and the network itself
WLAN = (
    "wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
    "wlan0\t0001A8C0\t00000000\t0001\t0\t0\t600\t00FFFFFF\t0\t0\t0\n"
)
MODEM = "wwan0\t00000000\t0100000A\t0003\t0\t0\t700\t00000000\t0\t0\t0\n"
NET_ONLY = "eth0\t0001A8C0\t00000000\t0001\t0\t0\t600\t00FFFFFF\t0\t0\t0\n"
ZERO = "0" * 32
# what a kernel without IPv6 routes shows: the rejecting default of lo, flags 00200200
REJECT = f"{ZERO} 00 {ZERO} 00 {ZERO} ffffffff 00000001 00000000 00200200       lo\n"
V6 = f"{ZERO} 00 {ZERO} 00 fe80000000000000020000fffe000001 00000400 00000001 00000000 00450003     eth0\n"


def see(tmp_path: Path, route: str, ipv6: str = REJECT, batteries: dict[str, dict[str, str]] | None = None):
    (tmp_path / "route").write_text(HEADER + route)
    (tmp_path / "ipv6_route").write_text(ipv6)
    for name, files in (batteries or {}).items():
        folder = tmp_path / "power_supply" / name
        folder.mkdir(parents=True)
        for file, text in files.items():
            (folder / file).write_text(text + "\n")
    return look(["wwan*", "ppp*"], proc_net=tmp_path, sys_class=tmp_path)


@pytest.mark.parametrize(("route", "ipv6", "way_out", "metered"), [
    (WLAN, REJECT, True, False),
    (MODEM, REJECT, True, True),
    (WLAN + MODEM, REJECT, True, False),    # one way that costs nothing is enough
    (NET_ONLY, REJECT, False, False),
    ("", "", False, False),
    ("", V6, True, False),
    (MODEM, V6, True, False),
])
def test_the_way_out(tmp_path: Path, route: str, ipv6: str, way_out: bool, metered: bool) -> None:
    facts = see(tmp_path, route, ipv6)
    assert (facts.default_route, facts.metered) == (way_out, metered)


@pytest.mark.parametrize(("batteries", "expected"), [
    ({}, (False, None)),
    ({"BAT0": {"type": "Battery", "capacity": "41", "status": "Discharging"}}, (True, 41)),
    ({"BAT0": {"type": "Battery", "capacity": "41", "status": "Charging"}}, (False, 41)),
    ({"AC": {"type": "Mains", "online": "1"}}, (False, None)),
    ({"hid-mouse": {"type": "Battery", "scope": "Device", "capacity": "3", "status": "Discharging"}}, (False, None)),
    ({"BAT0": {"type": "Battery", "capacity": "9", "status": "Discharging"},
      "BAT1": {"type": "Battery", "capacity": "80", "status": "Unknown"}}, (True, 9)),
    ({"BAT0": {"type": "Battery", "capacity": "?", "status": "Discharging"}}, (True, None)),
])
def test_the_battery(tmp_path: Path, batteries: dict[str, dict[str, str]], expected: tuple[bool, int | None]) -> None:
    facts = see(tmp_path, WLAN, batteries=batteries)
    assert (facts.on_battery, facts.battery_percent) == expected


def test_nothing_there_is_nothing_told(tmp_path: Path) -> None:
    facts = look([], proc_net=tmp_path / "none", sys_class=tmp_path / "none")
    assert (facts.default_route, facts.on_battery, facts.battery_percent) == (False, False, None)


def test_this_machine_has_no_loopback_among_its_addresses() -> None:
    assert not {"127.0.0.1", "::1"} & addresses_up()


def test_a_look_opens_no_internet_socket(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed (apt install strace)")
    record = tmp_path / "trace"

    def traced(program: str) -> str:
        done = subprocess.run(
            [strace, "-f", "-e", "trace=network", "-o", str(record), sys.executable, "-c", program],
            capture_output=True, check=False,
        )
        if done.returncode != 0:
            pytest.skip("this system does not let strace trace (ptrace is forbidden)")
        return record.read_text()

    assert "socket(AF_INET" not in traced("from node.modes.looking import look; look(['wwan*'])")
    # the control: the library's other way of looking does open one
    assert "socket(AF_INET" in traced("import psutil; psutil.net_if_stats()")
