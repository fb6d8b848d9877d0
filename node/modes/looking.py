"""Looks at this machine on Linux: addresses, the way out, metered or not, battery. Opens no internet socket.

Addresses come from the kernel's netlink (psutil), everything else from /proc and /sys; a file that is not there means
that there is nothing to tell. Blocking, a fraction of a millisecond. Must not know modes.
"""

import fnmatch
import ipaddress
from collections.abc import Sequence
from pathlib import Path

import psutil

from node.modes.facts import Facts

__all__ = ["addresses_up", "look"]

PROC_NET = Path("/proc/net")
SYS_CLASS = Path("/sys/class")
_UP = frozenset({"up", "unknown"})  # tunnels and loopback say unknown while they work
_ROUTE_UP = 0x1
_ROUTE_REJECTS = 0x200


def look(metered: Sequence[str], *, proc_net: Path = PROC_NET, sys_class: Path = SYS_CLASS) -> Facts:
    """This machine now. metered: patterns of names of interfaces that cost by the byte."""
    ways = _default_interfaces(proc_net)
    on_battery, percent = _power(sys_class / "power_supply")
    return Facts(
        addresses=addresses_up(sys_class),
        default_route=bool(ways),
        metered=bool(ways) and all(any(fnmatch.fnmatch(way, one) for one in metered) for way in ways),
        on_battery=on_battery,
        battery_percent=percent,
    )


def addresses_up(sys_class: Path = SYS_CLASS) -> frozenset[str]:
    """The addresses of interfaces that are up, without loopback and link-local ones."""
    found = set()
    for name, entries in psutil.net_if_addrs().items():
        state = _read(sys_class / "net" / name / "operstate")
        if state and state not in _UP:
            continue
        for entry in entries:
            try:
                address = ipaddress.ip_address(entry.address.partition("%")[0])
            except ValueError:
                continue  # a hardware address
            if not address.is_loopback and not address.is_link_local:
                found.add(str(address))
    return frozenset(found)


def _default_interfaces(proc_net: Path) -> list[str]:
    """The interfaces of default routes, IPv4 and IPv6, that lead somewhere."""
    found = []
    for line in _read(proc_net / "route").splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[1] == fields[7] == "00000000" and int(fields[3], 16) & _ROUTE_UP:
            found.append(fields[0])
    for line in _read(proc_net / "ipv6_route").splitlines():
        fields = line.split()
        if len(fields) == 10 and fields[0] == "0" * 32 and fields[1] == "00":
            flags = int(fields[8], 16)
            if flags & _ROUTE_UP and not flags & _ROUTE_REJECTS and fields[9] != "lo":
                found.append(fields[9])
    return found


def _power(folder: Path) -> tuple[bool, int | None]:
    """Whether this machine runs on its battery, and how full the emptiest one is."""
    percents, discharging = [], False
    try:
        supplies = sorted(folder.iterdir())
    except OSError:
        return False, None
    for supply in supplies:
        if _read(supply / "type") != "Battery" or _read(supply / "scope") == "Device":
            continue  # a mouse's battery is none of ours
        capacity = _read(supply / "capacity")
        if capacity.isdecimal():
            percents.append(int(capacity))
        discharging = discharging or _read(supply / "status") == "Discharging"
    return discharging, min(percents, default=None)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
