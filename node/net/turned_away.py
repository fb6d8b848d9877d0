"""What the network did not let in, as plain counts since the start of the node.

Declared apart, so that the daemon can name it without loading libp2p. Must not know who was turned away.
"""

from dataclasses import dataclass

__all__ = ["LATELY_S", "TurnedAway"]

LATELY_S = 60.0


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """calls: connections closed because too many came, from one place or together. strangers: those that proved a key
    nobody knows. streams: those a paired peer opened too fast. lately: whether calls came too fast in the last minute.
    """

    calls: int = 0
    strangers: int = 0
    streams: int = 0
    lately: bool = False
