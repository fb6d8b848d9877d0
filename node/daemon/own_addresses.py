"""The addresses that a node tells its peers, best first, and which told ones are worth a call. Must not know peers."""

import ipaddress
from collections.abc import Container, Iterable, Sequence

from node.net.addresses import parse
from node.net.errors import BadAddress

__all__ = ["hosts_to_add", "is_everywhere", "may_be_told", "own_addresses", "stated_addresses"]


def own_addresses(listening: Iterable[str], here: frozenset[str], stated: Sequence[str]) -> tuple[str, ...]:
    """Stated ones first, then those listened on; a wildcard stands for every address in `here`. Loopback and
    link-local ones mean nothing to another machine and are left out. Public ones come before private ones."""
    found: list[tuple[bool, str]] = []
    for text in listening:
        address = parse(text)
        ip = ipaddress.ip_address(address.host)
        hosts = [one for one in here if _version(one) == ip.version] if ip.is_unspecified else [address.host]
        for host in sorted(hosts):
            one = ipaddress.ip_address(host)
            if not (one.is_loopback or one.is_link_local):
                found.append((one.is_private, f"/ip{one.version}/{host}/tcp/{address.port}"))
    return tuple(dict.fromkeys((*stated, *(text for _, text in sorted(found)))))


def is_everywhere(host: str) -> bool:
    """Loopback, wildcard and link-local addresses stay whatever networks come and go."""
    found = ipaddress.ip_address(host)
    return found.is_loopback or found.is_unspecified or found.is_link_local


def hosts_to_add(wanted: Sequence[str], listening: Container[str], here: frozenset[str]) -> list[str]:
    """Where to listen now that the machine has the addresses in `here`: wanted ones that came back; and when a wanted
    private address is gone, the private ones of the same kind that there are instead: a router gave out a new one."""
    found = [host for host in wanted if host in here]
    gone = [host for host in wanted if not is_everywhere(host) and host not in here]
    kinds = {_version(host) for host in gone if ipaddress.ip_address(host).is_private}
    new = sorted(host for host in here if _version(host) in kinds and _is_local(host))
    return [host for host in dict.fromkeys((*found, *new)) if host not in listening]


def stated_addresses(stated: Sequence[str], listening: Sequence[str]) -> tuple[str, ...]:
    """What the owner stated - HOST, HOST:PORT, [IPv6]:PORT or a multiaddr - as multiaddrs; without a port, the one
    listened on. What makes no sense is left out: the settings' check has said so."""
    port = parse(listening[0]).port if listening else 0
    found = []
    for text in stated:
        address = _stated(text, port)
        if address is not None:
            found.append(address)
    return tuple(found)


def may_be_told(text: str, peer_id: str) -> bool:
    """Whether an address that a peer tells of itself is one to call: an endpoint elsewhere, and no other peer's."""
    try:
        address = parse(text)
        if not address.port or address.peer_id not in (None, peer_id):
            return False
        if address.is_name:
            return address.host.rstrip(".").lower() != "localhost"
        ip = ipaddress.ip_address(address.host)
    except (BadAddress, ValueError):
        return False
    return not (ip.is_loopback or ip.is_multicast or ip.is_unspecified or ip.is_link_local)


def _stated(text: str, port: int) -> str | None:
    if not text.startswith("/"):
        host, given = _host_and_port(text)
        port = int(given) if given.isdecimal() else port
        text = f"/{_kind(host)}/{host}/tcp/{port}"
    try:
        address = parse(text)
    except BadAddress:
        return None
    return str(address) if address.port else None


def _host_and_port(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":")
    if text.count(":") > 1:
        return text, ""
    host, _, port = text.partition(":")
    return host, port


def _kind(host: str) -> str:
    version = _version(host)
    return f"ip{version}" if version else "dns"


def _is_local(host: str) -> bool:
    ip = ipaddress.ip_address(host)
    return ip.is_private and not (ip.is_loopback or ip.is_link_local)


def _version(host: str) -> int:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0
