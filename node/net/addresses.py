"""Addresses as text and as parts: /ip4|ip6|dns4|dns6|dns/HOST/tcp/PORT with an optional /p2p/PEER at the end.

TCP only, nothing else is accepted. Must not import libp2p (its parser brings the whole library), nor resolve names.
"""

import ipaddress
import re
import socket
from dataclasses import dataclass

from node.net.errors import BadAddress

__all__ = ["Address", "format_socket", "parse"]

_FAMILIES = {
    "ip4": socket.AF_INET, "ip6": socket.AF_INET6,
    "dns4": socket.AF_INET, "dns6": socket.AF_INET6, "dns": socket.AF_UNSPEC,
}
_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")
_PEER_ID = re.compile(r"[1-9A-HJ-NP-Za-km-z]{40,64}")
_MAX_CHARS = 400


@dataclass(frozen=True, slots=True)
class Address:
    """One TCP endpoint. kind: ip4, ip6, dns, dns4 or dns6; peer_id: who is said to be there, or None."""

    kind: str
    host: str
    port: int
    peer_id: str | None = None

    @property
    def family(self) -> int:
        """The socket's address family; AF_UNSPEC for a name that may be either."""
        return _FAMILIES[self.kind]

    @property
    def is_name(self) -> bool:
        """Whether the host must be looked up before it can be used."""
        return self.kind.startswith("dns")

    def __str__(self) -> str:
        """The address without the peer id."""
        return f"/{self.kind}/{self.host}/tcp/{self.port}"


def parse(text: str) -> Address:
    """The address that text spells; raises BadAddress with what is wrong. Port 0 is allowed (listen on any)."""
    parts = text.split("/") if len(text) <= _MAX_CHARS else []
    if len(parts) not in (5, 7) or parts[0] != "" or parts[3] != "tcp" or (len(parts) == 7 and parts[5] != "p2p"):
        raise BadAddress(f"{text[:80]!r} is no TCP address.")
    kind, host, port = parts[1], parts[2], parts[4]
    peer_id = parts[6] if len(parts) == 7 else None
    if not port.isascii() or not port.isdigit() or len(port) > 5 or int(port) > 65535:
        raise BadAddress(f"{text[:80]!r} has no port between 0 and 65535.")
    if peer_id is not None and not _PEER_ID.fullmatch(peer_id):
        raise BadAddress(f"{text[:80]!r} names no peer after /p2p/.")
    return Address(kind, _host(kind, host, text), int(port), peer_id)


def _host(kind: str, host: str, text: str) -> str:
    try:
        if kind == "ip4":
            return str(ipaddress.IPv4Address(host))
        if kind == "ip6":
            return str(ipaddress.IPv6Address(host))
    except ValueError:
        raise BadAddress(f"{text[:80]!r} has no valid {kind} host.") from None
    if kind in _FAMILIES and len(host) <= 253 and _HOST_NAME.fullmatch(host):
        return host
    raise BadAddress(f"{text[:80]!r} has no host this node understands.")


def format_socket(name: tuple[object, ...]) -> str:
    """The address for a socket's own or peer's name, as getsockname() and getpeername() give it (2- or 4-tuple)."""
    host, port = str(name[0]), name[1]
    if ":" in host:
        address = ipaddress.IPv6Address(host)
        if address.ipv4_mapped is not None:
            return f"/ip4/{address.ipv4_mapped}/tcp/{port}"
        return f"/ip6/{host}/tcp/{port}"
    return f"/ip4/{host}/tcp/{port}"
