"""This machine's addresses on local networks, as multiaddrs to listen on. Must not open a socket."""

import ipaddress
import socket

import psutil

__all__ = ["lan_addresses"]


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
