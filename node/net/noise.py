"""The Noise handshake with the gate inside: an unknown peer is turned away before a multiplexer or stream exists.

Must not know streams or protocols. Plaintext, TLS and secio are never offered: this is the only security transport.
"""

from collections.abc import Callable

from libp2p.abc import IRawConnection, ISecureConn
from libp2p.crypto.keys import KeyPair
from libp2p.crypto.x25519 import create_new_key_pair
from libp2p.peer.id import ID
from libp2p.security.noise.transport import PROTOCOL_ID, Transport

from node.net.errors import GateRefused

__all__ = ["NOISE_ID", "GatedNoise"]

NOISE_ID = str(PROTOCOL_ID)


class GatedNoise(Transport):  # type: ignore[misc]  # libp2p is untyped to mypy
    """libp2p's Noise XX, asking admit(peer_id) as soon as an inbound peer has proved its key."""

    def __init__(self, key_pair: KeyPair, admit: Callable[[str], bool]) -> None:
        super().__init__(key_pair, noise_privkey=create_new_key_pair().private_key)
        self._admit = admit

    async def secure_inbound(self, conn: IRawConnection) -> ISecureConn:
        """The encrypted connection to a proven, admitted peer. Raises GateRefused, or what the handshake raises."""
        secured = await super().secure_inbound(conn)
        peer_id = str(secured.get_remote_peer())
        if not self._admit(peer_id):
            raise GateRefused(peer_id)
        return secured

    async def secure_anyone(self, conn: IRawConnection) -> ISecureConn:
        """The encrypted connection to whoever answers a dial; the caller must look at get_remote_peer(). For pairing
        by address, where the peer's id is what one is about to learn."""
        return await self.get_pattern().handshake_outbound(conn, None)

    async def secure_outbound(self, conn: IRawConnection, peer_id: ID) -> ISecureConn:
        """The encrypted connection to exactly this peer; another key raises PeerIDMismatchesPubkey."""
        return await super().secure_outbound(conn, peer_id)
