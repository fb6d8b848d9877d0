"""What is local: this machine's addresses and neighbours on its networks, and which addresses a mode lets us reach.
Opens no socket."""

import ipaddress
import socket
from pathlib import Path

import psutil

from node.daemon.routes import relay_of
from node.net.addresses import parse
from node.net.errors import BadAddress

__all__ = ["broadcast_addresses", "lan_addresses", "may_reach", "neighbour_in", "read_neighbour"]

ARP_TABLE = Path("/proc/net/arp")
COMPLETE = 0x2


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
