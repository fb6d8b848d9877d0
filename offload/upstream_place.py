"""Where an upstream engine is: its address taken apart, and whether it is this machine. Pure.

Must not know sockets or what is said there.
"""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from offload.upstream_errors import UpstreamMisconfigured

__all__ = ["Place", "parse_place"]

_UNIX = "unix:"


@dataclass(frozen=True, slots=True)
class Place:
    """host and port, or a Unix socket; prefix comes before every path ("" or "/v1" and the like, without it)."""

    host: str
    port: int
    tls: bool
    prefix: str = ""
    socket_path: str = ""

    @property
    def here(self) -> bool:
        """Whether it is this machine: a Unix socket, or a loopback address."""
        return bool(self.socket_path) or self.host == "localhost" or _is_loopback(self.host)

    @property
    def name(self) -> str:
        """What the owner reads, and the Host header."""
        if self.socket_path:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


def parse_place(url: str) -> Place:
    """The place of `http(s)://HOST[:PORT][/PREFIX][/v1]` or `unix:/PATH`. Raises UpstreamMisconfigured.

    Another machine needs https.
    """
    if url.startswith(_UNIX):
        path = "/" + url.removeprefix(_UNIX).lstrip("/")
        if path == "/":
            raise UpstreamMisconfigured("The upstream's address names no socket.")
        return Place("localhost", 0, tls=False, socket_path=path)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UpstreamMisconfigured(f"The upstream's address can't be read: {error}.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii() or not url.isprintable():
        raise UpstreamMisconfigured("The upstream's address must begin with http://, https:// or unix:/ and a host.")
    if parts.username is not None or parts.query or parts.fragment or " " in url:
        raise UpstreamMisconfigured("The upstream's address may hold no name, key, query or space; keys go to a file.")
    tls = parts.scheme == "https"
    prefix = parts.path.rstrip("/").removesuffix("/v1")
    place = Place(parts.hostname, port or (443 if tls else 80), tls, prefix)
    if not place.here and not tls:
        raise UpstreamMisconfigured("An upstream on another machine needs https://.")
    return place


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
