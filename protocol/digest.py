"""The running digest of a streamed answer: blake2b-16 over the UTF-8 of all text so far. Must not know frames or
streams.
"""

import hashlib

from protocol import limits

__all__ = ["RunningDigest"]


class RunningDigest:
    """Counts and digests text as it grows; both ends keep one and compare."""

    def __init__(self, text_so_far: str = "") -> None:
        self._hash = hashlib.blake2b(digest_size=limits.TEXT_DIGEST_BYTES)
        self.size_bytes = 0
        self.add(text_so_far)

    def add(self, text: str) -> None:
        """Append text."""
        data = text.encode()
        self._hash.update(data)
        self.size_bytes += len(data)

    def value(self) -> bytes:
        """The digest of everything added so far: 16 bytes."""
        return self._hash.digest()
