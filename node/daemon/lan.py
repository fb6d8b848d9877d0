"""What is local: this machine's addresses on its networks, and which addresses a mode lets us reach. Opens no
socket."""

import ipaddress
import socket

import psutil

from node.net.addresses import parse
from node.net.errors import BadAddress

__all__ = ["lan_addresses", "may_reach"]


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


def may_reach(mode: str, address: str) -> bool:
    """Whether the mode lets this node talk to this address: online anywhere, lan to private, loopback, link-local and
    .local ones, offline to none. Text that is no address may not be reached."""
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
