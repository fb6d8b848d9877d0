"""Listening sockets: opened by address, closed at once. Must not know peers, upgrades or libp2p.

Not libp2p's listeners: those share a port that is in use without an error (SO_REUSEPORT), and keep answering after the
swarm has ended because they live in a task outside it. These are owned by the nursery that serves them.
"""

import errno
import socket
from collections.abc import Awaitable, Callable

import trio

from node.net import addresses
from node.net.errors import AddressInUse, BadAddress, ListenError

__all__ = ["Listener", "bind"]

_BACKLOG = 128


class Listener:
    """One bound, listening address. close() refuses new connections from that instant on."""

    def __init__(self, asked: str, inner: trio.SocketListener) -> None:
        self.asked = asked
        self._inner = inner
        self.address = addresses.format_socket(inner.socket.getsockname())

    async def serve(self, handler: Callable[[trio.SocketStream], Awaitable[None]], nursery: trio.Nursery) -> None:
        """Accept until close(); each connection runs handler in nursery, which must not raise."""
        try:
            await trio.serve_listeners(handler, [self._inner], handler_nursery=nursery)
        except* trio.ClosedResourceError:
            pass  # close() was called: the way to stop

    def close(self) -> None:
        """Close the socket now. Doing it twice is fine."""
        self._inner.socket.close()


async def bind(text: str) -> Listener:
    """A listener on the address that text spells; port 0 takes any free one. Raises BadAddress, AddressInUse,
    ListenError."""
    address = addresses.parse(text)
    if address.is_name:
        raise BadAddress(f"{text!r}: listening needs an IP address, not a name.")
    sock = trio.socket.socket(address.family, socket.SOCK_STREAM)
    try:
        # no SO_REUSEPORT: a second listener on this port must fail. SO_REUSEADDR skips only the wait after a close.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        await sock.bind((address.host, address.port))
        sock.listen(_BACKLOG)
        return Listener(text, trio.SocketListener(sock))
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressInUse(f"{address} is in use by another program.") from None
        raise ListenError(f"Listening on {address} failed: {error.strerror or error}.") from None
    except BaseException:
        sock.close()
        raise
