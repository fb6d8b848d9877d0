"""What is local: this machine's addresses and neighbours on its networks, and which addresses a mode lets us reach.
Opens no socket."""

import ipaddress
import socket
import sys
from pathlib import Path

import psutil

from node.daemon.routes import relay_of
from node.net.addresses import parse
from node.net.errors import BadAddress

__all__ = [
    "broadcast_addresses", "gateway_in", "lan_addresses", "may_reach", "neighbour_in", "own_and_gateway",
    "read_neighbour",
]

ARP_TABLE = Path("/proc/net/arp")
COMPLETE = 0x2
ROUTES = Path("/proc/net/route")
ROUTE_UP = 0x1


def lan_addresses(port: int) -> list[str]:
    """One address per private IPv4 or unique-local IPv6 of an interface that is up; loopback and link-local are left
    out."""
    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    found = []
    for name, entries in psutil.net_if_addrs().items():
        if name not in up:
            continue
        for entry in entries:
            if entry.family in (socket.AF_INET, socket.AF_INET6):
                address = ipaddress.ip_address(entry.address.partition("%")[0])
                if address.is_private and not address.is_loopback and not address.is_link_local:
                    found.append(f"/ip{address.version}/{address}/tcp/{port}")
    return sorted(found)


def broadcast_addresses() -> list[str]:
    """The IPv4 broadcast address of each network that is up; loopback has none."""
    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    return sorted({
        entry.broadcast
        for name, entries in psutil.net_if_addrs().items() if name in up
        for entry in entries if entry.family == socket.AF_INET and entry.broadcast
    })


def neighbour_in(table: str, host: str) -> str | None:
    """The hardware address of `host` in a table as Linux's /proc/net/arp prints it; None when it holds none."""
    for line in table.splitlines()[1:]:
        columns = line.split()
        if len(columns) >= 6 and columns[0] == host and int(columns[2], 16) & COMPLETE:
            return columns[3]
    return None


def gateway_in(table: str) -> tuple[str, str] | None:
    """The default gateway and its interface in a table as Linux's /proc/net/route prints it; None when there is
    none."""
    best: tuple[int, str, str] | None = None
    for line in table.splitlines()[1:]:
        columns = line.split()
        if len(columns) < 8 or columns[1] != "00000000" or columns[7] != "00000000":
            continue
        gateway = socket.inet_ntoa(int(columns[2], 16).to_bytes(4, sys.byteorder))
        if int(columns[3], 16) & ROUTE_UP and gateway != "0.0.0.0":  # noqa: S104 - no address but the lack of one
            best = min(filter(None, (best, (int(columns[6]), gateway, columns[0]))))
    return None if best is None else best[1:]


def own_and_gateway() -> tuple[str, str] | None:
    """This machine's IPv4 address on the network of its default gateway, and the gateway; None without one."""
    try:
        found = gateway_in(ROUTES.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    if found is None:
        return None
    gateway, interface = found
    own = [one.address for one in psutil.net_if_addrs().get(interface, ()) if one.family == socket.AF_INET]
    return (own[0], gateway) if own else None


def read_neighbour(host: str) -> str | None:
    """The hardware address behind an IPv4 address that this machine has talked to on its own network, or None."""
    try:
        return neighbour_in(ARP_TABLE.read_text(encoding="ascii"), host)
    except (OSError, ValueError):
        return None  # not Linux, or a table of another form: the owner can name the address


def may_reach(mode: str, address: str) -> bool:
    """Whether the mode lets this node talk to this address: online anywhere, lan to private, loopback, link-local and
    .local ones, offline to none. Through a relay online only: nobody knows how far it goes. Text that is no address may
    not be reached."""
    if relay_of(address) is not None:
        return mode == "online"
    try:
        host = parse(address).host
    except BadAddress:
        return False
    if mode != "lan":
        return mode == "online"
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.rstrip(".").endswith(".local")
    return found.is_private or found.is_loopback or found.is_link_local
