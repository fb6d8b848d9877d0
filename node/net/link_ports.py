"""What links need of the network, and who waits for them. Declarations only; must not import libp2p."""

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Connector", "Route", "Started"]


class Route(Protocol):
    """A live connection."""

    @property
    def address(self) -> str:
        """Where the peer really is."""
        ...

    @property
    def dialled(self) -> bool:
        """Whether this side made it."""
        ...

    @property
    def via(self) -> str | None:
        """The relay that carries it; None when it is direct."""
        ...


class Connector(Protocol):
    """What links need of the network."""

    @property
    def peer_id(self) -> str:
        """This node's own id."""
        ...

    async def connect(self, peer_id: str, addresses: Sequence[str], *, timeout_s: float) -> Route:
        """The live connection, dialled when there is none."""
        ...

    def connection(self, peer_id: str) -> Route | None:
        """The live connection, or None."""
        ...

    async def disconnect(self, peer_id: str) -> None:
        """Close every connection to the peer."""
        ...


class Started(Protocol):
    """Who waits for run() to be ready; trio's task_status fits."""

    def started(self) -> None:
        """Links are being called."""
        ...
