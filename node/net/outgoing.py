"""One local port for all calls to other machines, so that a NAT shows them all under one address: the one that relays
see is then the one that a peer can be called back on. Must not know peers, nor why somebody wants to know.

The port is chosen anew for each session: a machine that died keeps no half of a connection under the same pair of
addresses in anyone's table. When a pair is taken, the call is made from any other port.
"""

import contextlib
import errno
import ipaddress
import socket

import trio

__all__ = ["OutgoingPort"]

_TAKEN = frozenset({errno.EADDRINUSE, errno.EADDRNOTAVAIL})
_ANY = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}  # noqa: S104 - the end of a call, nothing listens there


class OutgoingPort:
    """Held from the first call to another machine until close()."""

    def __init__(self) -> None:
        self._held: dict[int, socket.socket] = {}
        self.port = 0

    async def connect(self, family: int, where: tuple[object, ...], *, exactly: bool = False) -> trio.SocketStream:
        """A TCP connection. exactly: from the port or not at all. Raises OSError. The caller sets the deadline."""
        if not exactly and _is_loopback(str(where[0])):
            return await _connect(family, where, None)
        self._hold(family)
        try:
            return await _connect(family, where, self.port)
        except OSError as error:
            if exactly or error.errno not in _TAKEN:
                raise
        return await _connect(family, where, None)

    def close(self) -> None:
        """Give the port back. Doing it twice is fine."""
        for sock in self._held.values():
            sock.close()
        self._held.clear()
        self.port = 0

    def _hold(self, family: int) -> None:
        if family in self._held:
            return
        sock = socket.socket(family, socket.SOCK_STREAM)
        with contextlib.suppress(OSError):  # the other family has the number to itself, mostly; any other will do
            _share(sock, family, self.port)
        if not sock.getsockname()[1]:
            _share(sock, family, 0)
        self._held[family] = sock
        self.port = self.port or int(sock.getsockname()[1])


def _share(sock: socket.socket | trio.socket.SocketType, family: int, port: int) -> None:
    # without SO_REUSEPORT: a listener of ours still fails on a port that is in use
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    if isinstance(sock, socket.socket):
        sock.bind((_ANY[socket.AddressFamily(family)], port))


async def _connect(family: int, where: tuple[object, ...], port: int | None) -> trio.SocketStream:
    sock = trio.socket.socket(family, socket.SOCK_STREAM)
    try:
        if port:
            _share(sock, family, port)
            await sock.bind((_ANY[socket.AddressFamily(family)], port))
        await sock.connect(where)
        return trio.SocketStream(sock)
    except BaseException:
        sock.close()
        raise


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback
