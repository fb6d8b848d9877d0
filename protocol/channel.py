"""The shape of a framed channel to one peer: what every driver of a protocol machine needs and nothing more.

The real one is made by the node's egress guard over a libp2p stream; tests pass an in-memory pair. A driver never
learns which it holds. This module must not know trio, libp2p or the guard.
"""

from typing import Protocol, runtime_checkable

import msgspec

__all__ = ["Clearance", "FrameChannel"]


@runtime_checkable
class Clearance(Protocol):
    """Proof that exactly these texts were decided, masked, consented to and entered in the ledger for one peer and
    request.
    """

    @property
    def texts(self) -> tuple[str, ...]:
        """The outgoing texts, already masked, in the order of the parts that were cleared."""
        ...


class FrameChannel(Protocol):
    """One framed, bidirectional stream to one peer for one protocol id.

    Frames are the protocol's own msgspec Structs. Errors (all from protocol.errors): ChannelClosed when the peer ended
    its side cleanly, ChannelLost on reset, crash or a dead link, DeadlinePassed when nothing came in time, and any
    RemoteProtocolError for bytes that break the rules. A closed channel is never an END: only an END frame is.
    """

    @property
    def peer_id(self) -> str:
        """The authenticated peer at the other end."""
        ...

    @property
    def protocol(self) -> str:
        """The protocol id, such as /kith/infer/1."""
        ...

    async def send(self, frame: msgspec.Struct) -> None:
        """Send a control frame or an accounted answer frame. A content frame without clearance is refused."""
        ...

    async def send_cleared(self, frame: msgspec.Struct, clearance: Clearance) -> None:
        """Send a content frame whose every free text stands in the clearance; anything else is refused, nothing is
        sent.
        """
        ...

    async def receive(self, *, deadline_s: float) -> msgspec.Struct:
        """The next frame, decoded and validated, within deadline_s seconds."""
        ...

    async def finish(self) -> None:
        """End our sending side cleanly; receiving goes on."""
        ...

    async def reset(self) -> None:
        """Drop the channel at once in both directions. Never raises."""
        ...
