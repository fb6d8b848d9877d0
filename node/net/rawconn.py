"""One TCP connection as libp2p's layers want it, with the peer's real address and an abrupt end. Must not know peers.

libp2p's own wrapper returns no remote address for IPv6 (it expects a pair and gets four values), so address rules and
addresses vanish there.
"""

import contextlib
import socket
import struct

import trio
from libp2p.io.trio import TrioTCPStream
from libp2p.network.connection.raw_connection import RawConnection

from node.net.addresses import format_socket

__all__ = ["TcpConnection", "wrap"]

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class TcpConnection(TrioTCPStream):  # type: ignore[misc]  # libp2p is untyped to mypy
    """A TCP stream that knows who is at the other end, on IPv4 and IPv6."""

    def __init__(self, stream: trio.SocketStream) -> None:
        """Raises OSError, with the socket closed, when the other end is gone already."""
        super().__init__(stream)
        self._socket = stream.socket
        try:
            name = stream.socket.getpeername()
        except OSError:
            stream.socket.close()
            raise
        self.address = format_socket(name)
        self.via: str | None = None
        self.local_ip = str(stream.socket.getsockname()[0])
        self.ip = str(name[0])
        self._remote = (self.ip, int(name[1]))

    def get_remote_address(self) -> tuple[str, int]:
        """The peer's host and port."""
        return self._remote

    def abort(self) -> None:
        """Close the socket now, with RST: no waiting, no lingering state. Pending reads and writes end with an error.

        This, never a cancellation, is how a connection in the middle of its upgrade is dropped: a cancelled upgrade in
        libp2p leaves its resource scopes behind.
        """
        with contextlib.suppress(OSError):  # already closed: nothing to reset
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._socket.close()


def wrap(connection: TcpConnection, *, dialled: bool) -> RawConnection:
    """The libp2p raw connection over it."""
    return RawConnection(connection, dialled)
