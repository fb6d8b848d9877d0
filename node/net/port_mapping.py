"""Asks the router to pass calls from outside to this node: NAT-PMP first, then UPnP. Must not know who wants it or why.

Only ever called when the owner switched it on. One address and a port number are all that a router is told. Each wait
has a deadline and each answer a size.
"""

import ipaddress
import socket
from dataclasses import dataclass

import trio

from node.net import natpmp_messages as natpmp
from node.net import upnp_messages as upnp
from node.net.natpmp_messages import External, Mapped, NatPmpRefused
from node.net.upnp_messages import Control, UpnpRefused

__all__ = ["MappingFailed", "PortMapping", "Router", "map_port", "unmap_port"]

LIFETIME_S = 3600
_WAITS_S = (0.25, 0.5, 1.0)  # RFC 6886 section 3.1 doubles from 250 ms
_SEARCH_S = 2.5
_HTTP_S = 5.0
_MAX_ANSWER_BYTES = 64 << 10
_USELESS = tuple(map(ipaddress.ip_network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
)))


class MappingFailed(Exception):
    """No port is mapped; the text says why, in words for the owner."""


@dataclass(frozen=True, slots=True)
class Router:
    """Where to ask. The ports and the group are those of the standards but in tests."""

    gateway: str
    natpmp_port: int = natpmp.PORT
    ssdp: tuple[str, int] = (upnp.SSDP_GROUP, upnp.SSDP_PORT)


@dataclass(frozen=True, slots=True)
class PortMapping:
    """Calls to host:port outside arrive here, for lifetime_s. by: the protocol that did it."""

    host: str
    port: int
    lifetime_s: int
    by: str
    control: Control | None = None


async def map_port(router: Router, own_host: str, port: int) -> PortMapping:
    """A mapping to own_host:port. Raises MappingFailed."""
    problems = []
    for protocol, ask in (("NAT-PMP", _by_natpmp), ("UPnP", _by_upnp)):
        try:
            found = await ask(router, own_host, port)
        except (NatPmpRefused, UpnpRefused, OSError, trio.TooSlowError) as error:
            problems.append(f"{protocol}: {_in_words(error)}")
            continue
        if any(ipaddress.ip_address(found.host) in network for network in _USELESS):
            await unmap_port(router, found, port)
            raise MappingFailed(
                f"the router's own address, {found.host}, is no public one: it stands behind another router")
        return found
    raise MappingFailed("; ".join(problems))


async def unmap_port(router: Router, mapping: PortMapping, port: int) -> None:
    """Take it back. Never raises: what stays ends by itself with its lifetime."""
    try:
        if mapping.control is None:
            await _natpmp(router, natpmp.encode_map(port, 0))
        else:
            await _call(mapping.control, "DeletePortMapping", NewRemoteHost="", NewExternalPort=str(mapping.port),
                        NewProtocol="TCP")
    except (NatPmpRefused, UpnpRefused, OSError, trio.TooSlowError):
        return


def _in_words(error: Exception) -> str:
    if isinstance(error, trio.TooSlowError):
        return "no answer"
    return str(error) or type(error).__name__


# -- NAT-PMP --

async def _by_natpmp(router: Router, own_host: str, port: int) -> PortMapping:
    outside = await _natpmp(router, natpmp.encode_external())
    mapped = await _natpmp(router, natpmp.encode_map(port, LIFETIME_S))
    if not isinstance(outside, External) or not isinstance(mapped, Mapped) or mapped.internal_port != port:
        raise NatPmpRefused("it answered something else")
    if not mapped.external_port or not mapped.lifetime_s:
        raise NatPmpRefused("it maps no port, or for no time")
    return PortMapping(outside.host, mapped.external_port, min(mapped.lifetime_s, LIFETIME_S), "NAT-PMP")


async def _natpmp(router: Router, request: bytes) -> External | Mapped:
    """The router's answer. Raises NatPmpRefused, OSError, TooSlowError."""
    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        await sock.connect((router.gateway, router.natpmp_port))  # only the router's packets come in
        for wait_s in _WAITS_S:
            await sock.send(request)
            with trio.move_on_after(wait_s):
                while True:
                    answer = natpmp.read_answer(await sock.recv(64))
                    if answer is not None:
                        return answer
    raise trio.TooSlowError


# -- UPnP --

async def _by_upnp(router: Router, own_host: str, port: int) -> PortMapping:
    at = await _search(router, own_host)
    status, body = upnp.split_response(await _exchange(at, upnp.request_text(at)))
    if status != 200:
        raise UpnpRefused(f"it describes itself with {status}")
    control = upnp.read_description(body, at)
    outside = upnp.read_external(await _call(control, "GetExternalIPAddress"))
    await _call(
        control, "AddPortMapping", NewRemoteHost="", NewExternalPort=str(port), NewProtocol="TCP",
        NewInternalPort=str(port), NewInternalClient=own_host, NewEnabled="1",
        NewPortMappingDescription="kith", NewLeaseDuration=str(LIFETIME_S),
    )
    return PortMapping(outside, port, LIFETIME_S, "UPnP", control)


async def _search(router: Router, own_host: str) -> Control:
    """Where the router describes itself; only the gateway's own answer counts. Raises TooSlowError, OSError."""
    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 2)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(own_host))
        await sock.bind((own_host, 0))
        with trio.fail_after(_SEARCH_S):
            await sock.sendto(upnp.encode_search(), router.ssdp)
            while True:
                packet, (sender, *_) = await sock.recvfrom(2048)
                found = upnp.read_location(packet, str(sender)) if sender == router.gateway else None
                if found is not None:
                    return found


async def _call(at: Control, action: str, **arguments: str) -> str:
    status, body = upnp.split_response(await _exchange(at, upnp.call_text(at, action, **arguments)))
    if status != 200:
        said = body.partition("<errorDescription>")[2].partition("</errorDescription>")[0]
        words = "".join(one for one in said if one.isalnum() or one in " -.")[:80]
        raise UpnpRefused(f"it refused {action}" + (f" ({words})" if words else f" ({status})"))
    return body


async def _exchange(at: Control, request: bytes) -> bytes:
    """One request and the whole answer, 64 KiB at most. Raises OSError, TooSlowError, UpnpRefused."""
    with trio.fail_after(_HTTP_S):
        async with trio.SocketStream(await _connected(at)) as stream:
            answer = b""
            try:
                await stream.send_all(request)
                async for piece in stream:
                    answer += piece
                    if len(answer) > _MAX_ANSWER_BYTES:
                        raise UpnpRefused("its answer has no end")
            except trio.BrokenResourceError as error:  # no OSError
                raise UpnpRefused("it hung up") from error
            return answer


async def _connected(at: Control) -> trio.socket.SocketType:
    sock = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        await sock.connect((at.host, at.port))
    except BaseException:
        sock.close()
        raise
    return sock
