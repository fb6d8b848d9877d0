"""UPnP for routers: the search, the description and the calls to map a port, as text and back. Pure.

What a machine on the local network answers is not trusted: sizes are bounded by the caller, nothing is parsed as XML
(only the few elements that matter are looked for), and every address must be on the machine that answered. Source: UPnP
Device Architecture 1.1; WANIPConnection:1 and :2 service templates. Must not know sockets.
"""

import html
import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

__all__ = [
    "SSDP_GROUP", "SSDP_PORT", "Control", "UpnpRefused", "call_text", "encode_search", "read_description",
    "read_external", "read_location", "request_text", "split_response",
]

SSDP_GROUP, SSDP_PORT = "239.255.255.250", 1900
_DEVICES = (
    "urn:schemas-upnp-org:device:InternetGatewayDevice:1", "urn:schemas-upnp-org:device:InternetGatewayDevice:2",
)
_SERVICE = re.compile(r"urn:schemas-upnp-org:service:WAN(?:IP|PPP)Connection:[12]")
_STATUS = re.compile(r"HTTP/1\.[01] (\d{3})")


class UpnpRefused(Exception):
    """The router answered, and said no; the text says why."""


@dataclass(frozen=True, slots=True)
class Control:
    """Where a router takes calls: host and port of the router, the path, and the name of the service."""

    host: str
    port: int
    path: str
    service: str


def encode_search(device: str = _DEVICES[0]) -> bytes:
    """Who is the router?"""
    return (
        f'M-SEARCH * HTTP/1.1\r\nHOST: {SSDP_GROUP}:{SSDP_PORT}\r\nMAN: "ssdp:discover"\r\nMX: 1\r\n'
        f"ST: {device}\r\n\r\n"
    ).encode()


def read_location(packet: bytes, sender: str) -> Control | None:
    """Where the sender describes itself; None for anything else, and for a description on another machine."""
    head = packet.decode("latin-1")
    if not head.startswith("HTTP/1.1 200") or not any(device in head for device in _DEVICES):
        return None
    fields = dict(line.partition(":")[::2] for line in head.split("\r\n")[1:])
    location = next((value.strip() for name, value in fields.items() if name.strip().lower() == "location"), "")
    return _place(location, sender, "")


def request_text(at: Control) -> bytes:
    """GET the description."""
    return f"GET {at.path} HTTP/1.0\r\nHost: {at.host}:{at.port}\r\nConnection: close\r\n\r\n".encode("latin-1")


def split_response(data: bytes) -> tuple[int, str]:
    """Status and body of an answer. Raises UpnpRefused for bytes that are none."""
    head, _, body = data.partition(b"\r\n\r\n")
    status = _STATUS.match(head.decode("latin-1"))
    if status is None:
        raise UpnpRefused("it answered nonsense")
    return int(status[1]), body.decode("utf-8", "replace")


def read_description(body: str, at: Control) -> Control:
    """Where ports are mapped. Raises UpnpRefused when the device has no such service."""
    for piece in body.split("<service>")[1:]:
        service = piece.partition("</service>")[0]
        kind = _SERVICE.search(service)
        path = service.partition("<controlURL>")[2].partition("</controlURL>")[0].strip()
        if kind is not None and path:
            found = _place(urljoin(f"http://{at.host}:{at.port}{at.path}", html.unescape(path)), at.host, kind[0])
            if found is not None:
                return found
    raise UpnpRefused("it describes no way to map ports")


def call_text(at: Control, action: str, **arguments: str) -> bytes:
    """One call of the service, the arguments in the given order."""
    inner = "".join(f"<{name}>{html.escape(value)}</{name}>" for name, value in arguments.items())
    body = (
        '<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" '
        's:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><s:Body>'
        f'<u:{action} xmlns:u="{at.service}">{inner}</u:{action}></s:Body></s:Envelope>'
    )
    return (
        f"POST {at.path} HTTP/1.0\r\nHost: {at.host}:{at.port}\r\nConnection: close\r\n"
        f'Content-Type: text/xml; charset="utf-8"\r\nSOAPAction: "{at.service}#{action}"\r\n'
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def read_external(body: str) -> str:
    """The router's address outside. Raises UpnpRefused."""
    text = body.partition("<NewExternalIPAddress>")[2].partition("</NewExternalIPAddress>")[0].strip()
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise UpnpRefused("it has no address outside") from None


def _place(url: str, sender: str, service: str) -> Control | None:
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError:
        return None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if parts.scheme != "http" or parts.hostname != sender or not path.isascii() or not path.isprintable():
        return None
    return Control(sender, port, path, service) if " " not in path and len(path) < 500 else None
