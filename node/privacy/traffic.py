"""Counts of what was handed to the transport, per peer and kind. Must not know frames' content."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CONTROL_KIND", "Count", "Traffic"]

CONTROL_KIND = "control"


@dataclass(frozen=True, slots=True)
class Count:
    """Frames and their bytes on the stream, length prefixes included."""

    frames: int = 0
    bytes: int = 0


class Traffic:
    """Counters since the node started. Kinds: "control" and the purposes."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], Count] = {}

    def add(self, peer_id: str, kind: str, size_bytes: int) -> None:
        """Count one frame."""
        old = self._counts.get((peer_id, kind), Count())
        self._counts[peer_id, kind] = Count(old.frames + 1, old.bytes + size_bytes)

    def of(self, peer_id: str) -> Mapping[str, Count]:
        """Kind -> count for one peer."""
        return {kind: count for (peer, kind), count in self._counts.items() if peer == peer_id}

    def by_kind(self) -> Mapping[str, Count]:
        """Kind -> count over all peers."""
        found: dict[str, Count] = {}
        for (_, kind), count in self._counts.items():
            old = found.get(kind, Count())
            found[kind] = Count(old.frames + count.frames, old.bytes + count.bytes)
        return found

    def total_bytes(self) -> int:
        """Everything to everyone."""
        return sum(count.bytes for count in self._counts.values())
