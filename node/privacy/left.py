"""The exact bytes of one entry as they left, cut into the pieces that the peer signs for. Must not know rows."""

import hashlib

from node.privacy.ledger_records import Stretch

__all__ = ["Left"]

_STRETCH_LIMIT = 64
_KEPT_LIMIT_BYTES = 4 * 1024 * 1024


class Left:
    """Grows while an entry is open; in memory until it is closed.

    A request, a question or a message is one piece, and the same one again is no new piece. An answer is one piece of
    many writes. Beyond 4 MiB the pieces are counted and no longer kept; beyond 64 they are not told apart.
    """

    def __init__(self, *, whole: bool, keep: bool = True) -> None:
        """whole: all writes are one piece. keep: whether the bytes themselves are wanted."""
        self._whole = whole
        self._keep = keep
        self._hash = hashlib.blake2b(digest_size=32)
        self.size_bytes = 0
        """All writes together, repeated ones too."""
        self._pieces: dict[Stretch, bytes] = {}
        self._joined = bytearray()

    def add(self, data: bytes) -> None:
        """One write."""
        self._hash.update(data)
        self.size_bytes += len(data)
        if self._whole:
            if self._keep and self.size_bytes <= _KEPT_LIMIT_BYTES:
                self._joined += data
        elif len(self._pieces) < _STRETCH_LIMIT:
            piece = (len(data), hashlib.blake2b(data, digest_size=32).digest())
            kept = sum(map(len, self._pieces.values()))
            self._pieces.setdefault(piece, data if self._keep and kept + len(data) <= _KEPT_LIMIT_BYTES else b"")

    @property
    def digest(self) -> bytes:
        """blake2b-32 over every write, in order."""
        return self._hash.digest()

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The pieces, in the order they first left."""
        if self._whole:
            return ((self.size_bytes, self.digest),) if self.size_bytes else ()
        return tuple(self._pieces)

    @property
    def bodies(self) -> tuple[bytes, ...]:
        """The bytes of the first pieces, as far as they are kept without a gap."""
        if self._whole:
            return (bytes(self._joined),) if self.size_bytes and len(self._joined) == self.size_bytes else ()
        found: list[bytes] = []
        for body in self._pieces.values():
            if not body:
                break
            found.append(body)
        return tuple(found)
