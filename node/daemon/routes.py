"""The way to a peer, in the owner's words, and which addresses are worth remembering. Must not know connections."""

import ipaddress
from collections.abc import Callable

from node.net.addresses import parse
from node.net.errors import BadAddress

__all__ = ["relay_of", "route_words"]

_START, _END = "/p2p/", "/p2p-circuit"


def relay_of(address: str) -> str | None:
    """The relay that carries a connection with this address; None for a direct one."""
    if address.startswith(_START) and address.endswith(_END):
        return address.removeprefix(_START).removesuffix(_END)
    return None


def route_words(address: str, name_of: Callable[[str], str]) -> str:
    """relayed via NAME; lan: the other end is on a local network; direct: anywhere else, this machine included."""
    relay = relay_of(address)
    if relay is not None:
        return f"relayed via {name_of(relay)}"
    try:
        ip = ipaddress.ip_address(parse(address).host)
    except (BadAddress, ValueError):
        return "direct"
    return "lan" if (ip.is_private or ip.is_link_local) and not ip.is_loopback else "direct"
