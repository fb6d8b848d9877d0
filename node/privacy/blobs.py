"""The check on opaque frames: a chunk passes only when it is what stands in the catalogue's file at that place.

Nobody can read words in a model's bytes, so they are compared instead: whatever else is put into such a frame does not
leave. Must not know grants, frames' encoding or where models lie.
"""

from typing import Protocol

from node.privacy.errors import NotCleared

__all__ = ["BlobCheck", "BlobFile", "BlobFiles"]


class BlobFile(Protocol):
    """One file of the catalogue, open."""

    async def holds(self, offset: int, data: bytes) -> bool:
        """Whether exactly these bytes stand at this place."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class BlobFiles(Protocol):
    """The catalogue's files."""

    async def open(self, digest: str) -> BlobFile | None:
        """The file with this digest; None when there is none that may be handed out."""
        ...


class BlobCheck:
    """What one channel's peer asked for, and the files open for it. The peer asks; this side can't add to it."""

    def __init__(self, files: BlobFiles | None) -> None:
        """files None: nothing opaque passes."""
        self._files = files
        self._asked: dict[bytes, str] = {}
        self._open: dict[bytes, BlobFile] = {}

    def asked(self, request_id: bytes, digest: str) -> None:
        """The peer asked for this file; once per request."""
        self._asked.setdefault(request_id, digest)

    async def check(self, request_id: bytes, offset: int, data: bytes) -> None:
        """Raises NotCleared unless the peer asked for a file of the catalogue and these bytes stand in it there."""
        digest = self._asked.get(request_id)
        if digest is None or self._files is None:
            raise NotCleared("bytes of a file that this peer did not ask for here")
        file = self._open.get(request_id)
        if file is None:
            file = await self._files.open(digest)
            if file is None:
                raise NotCleared("bytes of a file that is not in the catalogue")
            self._open[request_id] = file
        if not await file.holds(offset, data):
            raise NotCleared("bytes that do not stand in the file")

    def close(self) -> None:
        """Close every file."""
        while self._open:
            self._open.popitem()[1].close()
