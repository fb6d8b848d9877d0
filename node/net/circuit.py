"""A stream through a relay in the place of a TCP connection: the two ends run Noise in it, the relay sees ciphertext.

Must not know how the stream came about, nor who the peer is: the handshake inside proves that.
"""

from libp2p.abc import ConnectionType
from libp2p.io.abc import ReadWriteCloser
from libp2p.io.exceptions import ConnectionClosedError
from libp2p.network.connection.raw_connection import RawConnection

from node.net.streams import PeerStream
from protocol.errors import ChannelClosed, ProtocolError

__all__ = ["Circuit", "circuit_address", "wrap_circuit"]

_CHUNK_BYTES = 1 << 16
_NEVER_S = 10.0 * 365 * 86400  # the layers above have their own deadlines


def circuit_address(relay_id: str) -> str:
    """How a way through this relay is written."""
    return f"/p2p/{relay_id}/p2p-circuit"


class Circuit(ReadWriteCloser):  # type: ignore[misc]  # libp2p is untyped to mypy
    """One end of a circuit."""

    def __init__(self, stream: PeerStream) -> None:
        self._through = stream
        self.via: str | None = stream.peer_id
        self.address = circuit_address(stream.peer_id)
        self.local_ip = ""

    async def read(self, n: int | None = None) -> bytes:
        """1 to n bytes; b"" at the end. Raises ConnectionClosedError when the way broke."""
        try:
            return await self._through.read(n or _CHUNK_BYTES, deadline_s=_NEVER_S)
        except ChannelClosed:
            return b""
        except ProtocolError as error:
            raise ConnectionClosedError(str(error)) from error

    async def write(self, data: bytes) -> None:
        """Send all of data. Raises ConnectionClosedError."""
        try:
            await self._through.write(data)
        except ProtocolError as error:
            raise ConnectionClosedError(str(error)) from error

    async def close(self) -> None:
        """End our side and take nothing more; what was written still arrives."""
        await self._through.close_write()
        self._through.abort("the circuit was closed")

    def abort(self) -> None:
        """Drop it at once."""
        self._through.abort("the circuit was dropped")

    def get_remote_address(self) -> tuple[str, int] | None:
        """Nobody's: where the peer is, only the relay knows."""
        return None


def wrap_circuit(circuit: Circuit, *, dialled: bool) -> RawConnection:
    """The libp2p raw connection over it."""
    return RawConnection(circuit, dialled, ConnectionType.RELAYED, [])
