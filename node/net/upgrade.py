"""From a raw connection to a proven peer with our multiplexer: the one upgrade for everything that comes in or goes
out.

It is libp2p's TransportUpgrader, so that whatever hands the swarm a raw connection (a relay, say) passes the same gate
and gets the same muxer: libp2p's own upgrader builds its own Yamux class whatever muxer it was given. Must not know
sockets.
"""

from collections.abc import Callable

from libp2p.abc import IMuxedConn, IRawConnection, ISecureConn
from libp2p.peer.id import ID
from libp2p.transport.exceptions import MuxerUpgradeFailure, SecurityUpgradeFailure
from libp2p.transport.upgrader import TransportUpgrader

from node.net import negotiate, yamux
from node.net.errors import NegotiationFailed, TooManyCalls
from node.net.limits import MuxLimits
from node.net.muxer import Muxer
from node.net.noise import NOISE_ID, GatedNoise

__all__ = ["Upgrader"]


class Upgrader(TransportUpgrader):  # type: ignore[misc]  # libp2p is untyped to mypy
    """Noise only, then our Yamux only. Deadlines are the caller's."""

    def __init__(
        self, noise: GatedNoise, limits: MuxLimits, may_prove: Callable[[IRawConnection], bool] = lambda conn: True
    ) -> None:
        """may_prove: whether a caller may begin the handshake now; what it costs is not paid otherwise."""
        super().__init__({}, {})
        self._may_prove = may_prove
        self._noise = noise
        self._limits = limits

    async def upgrade_security(
        self, raw_conn: IRawConnection, is_initiator: bool, peer_id: ID | None = None
    ) -> ISecureConn:
        """The encrypted connection. Dialling without a peer_id takes whoever answers. Raises SecurityUpgradeFailure
        with the cause, which is GateRefused for an unknown inbound peer."""
        try:
            if not is_initiator:
                await negotiate.answer(raw_conn, NOISE_ID.__eq__)
                if not self._may_prove(raw_conn):
                    raise TooManyCalls
                return await self._noise.secure_inbound(raw_conn)
            await negotiate.ask(raw_conn, NOISE_ID)
            if peer_id is None:
                return await self._noise.secure_anyone(raw_conn)
            return await self._noise.secure_outbound(raw_conn, peer_id)
        except Exception as error:  # the handshake parses a stranger's bytes: it may raise anything
            raise SecurityUpgradeFailure("the secure handshake failed") from error

    async def upgrade_connection(self, conn: ISecureConn, peer_id: ID) -> IMuxedConn:
        """The multiplexer, not started yet. Raises MuxerUpgradeFailure with the cause."""
        try:
            if conn.is_initiator:
                await negotiate.ask(conn, yamux.PROTOCOL_ID)
            else:
                await negotiate.answer(conn, yamux.PROTOCOL_ID.__eq__)
        except NegotiationFailed as error:
            raise MuxerUpgradeFailure("no multiplexer was agreed on") from error
        except Exception as error:  # a connection that ends here may raise anything
            raise MuxerUpgradeFailure("the peer hung up after the secure handshake") from error
        return Muxer(conn, peer_id, is_initiator=bool(conn.is_initiator), limits=self._limits)
