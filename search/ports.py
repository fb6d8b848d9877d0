"""What search needs from its surroundings: the index, files to index, channels, grants and the guard.

All ports are Protocols, all data is frozen. The node passes the real ones, tests pass memory ones. Must not know the
node, a database, the transport or how texts are masked.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from protocol.channel import Clearance, FrameChannel
from protocol.frames.query import Passage
from protocol.grants import Grant

__all__ = [
    "ChannelOpener", "Document", "DocumentSource", "Entropy", "FileState", "GrantBook", "IndexedPassage",
    "PassageCheck", "PassageClearing", "QueryClearance", "QueryGuard", "ShareBook", "Statistics", "TermIndex",
]


# ------------------------------------------------------------ the index

@dataclass(frozen=True, slots=True)
class FileState:
    """One file as it was when it was indexed, or as it is now. folder is the key of its folder, name the path in it."""

    folder: str
    name: str
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Document:
    """A text to index, split. label names its folder to people; lengths are the passages' counts of terms, titles
    in."""

    state: FileState
    digest: bytes
    label: str
    title: str
    passages: tuple[str, ...]
    lengths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """One passage out of the index."""

    passage_id: int
    doc_id: bytes
    """16 bytes, the same for the same document."""
    title: str
    text: str
    label: str
    folder: str
    name: str


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 must know of a collection."""

    passages: int
    terms: int
    """The sum of all passages' lengths."""
    frequencies: Mapping[str, int]
    """In how many passages a stem stands; only stems asked for, 0 where it stands in none."""


class TermIndex(Protocol):
    """The full-text index of this device. folders None means all of it."""

    async def statistics(self, stems: Collection[str], *, folders: Collection[str] | None = None) -> Statistics:
        """Counts over the passages of these folders."""
        ...

    async def candidates(
        self, words: Sequence[str], *, limit: int, folders: Collection[str] | None = None,
    ) -> Sequence[IndexedPassage]:
        """Passages of these folders that hold any of the words, roughly best first."""
        ...

    async def states(self) -> Sequence[tuple[FileState, bytes]]:
        """Every indexed file with the digest of its content."""
        ...

    async def put(self, documents: Sequence[Document]) -> None:
        """Index these, each in place of what is there for its folder and name; all or nothing."""
        ...

    async def touch(self, states: Sequence[FileState]) -> None:
        """Note new sizes and times of files whose content is as indexed."""
        ...

    async def drop(self, files: Sequence[tuple[str, str]]) -> None:
        """Forget these (folder, name)."""
        ...


class DocumentSource(Protocol):
    """The files that shall be in the index. Blocking: called in a thread."""

    def files(self) -> Sequence[FileState]:
        """Every file now."""
        ...

    def label(self, folder: str) -> str:
        """What people call this folder; never a path."""
        ...

    def read(self, folder: str, name: str) -> tuple[str, str] | None:
        """(title, text), or None for a file that is gone, too big or no text."""
        ...


# ------------------------------------------------------------ peers

class ChannelOpener(Protocol):
    """Channels of /kith/query/1."""

    async def open(self, peer_id: str, *, timeout_s: float) -> FrameChannel:
        """A new channel to this peer. Raises PeerSilent or a protocol error when there is none in time."""
        ...


class GrantBook(Protocol):
    """The grants this node has given, as they are now."""

    def grant_for(self, peer_id: str) -> Grant | None:
        """The live grant of this peer, verified; None when there is none, it is revoked, or it ran out."""
        ...


class ShareBook(Protocol):
    """What is shared with whom."""

    async def folders_for(self, peer_id: str) -> frozenset[str]:
        """The keys of the folders whose passages this peer may get."""
        ...


class Entropy(Protocol):
    """Unpredictable bytes."""

    def bytes(self, n: int) -> bytes:
        """n bytes."""
        ...


# ------------------------------------------------------------ the guard

class QueryClearance(Clearance, Protocol):
    """A clearance with an account to close."""

    async def close(self, outcome: str) -> None:
        """Say how it ended: complete, late, lost, refused, failed. Twice is once."""
        ...


class QueryGuard(Protocol):
    """Decides whether a query may go to a peer, and enters it in the ledger."""

    async def private_reason(self, text: str) -> str:
        """Why this text must stay here, in words for the owner; empty when nothing labelled or known is in it."""
        ...

    async def clear(self, peer_id: str, query_id: bytes, text: str) -> QueryClearance:
        """The clearance whose only text is the query as it may be sent. Raises PeerSilent when it may not."""
        ...


class PassageCheck(Protocol):
    """Finds what must never be sent."""

    def holds_secret(self, text: str) -> bool:
        """True when a credential, key or the like stands in the text. Blocking, fast."""
        ...


class PassageClearing(Protocol):
    """Clears passages of shared folders for a peer, and enters them in the ledger."""

    async def clear(self, peer_id: str, query_id: bytes, passages: Sequence[Passage]) -> QueryClearance:
        """A clearance that covers every text of these passages as they stand. Raises when it refuses; nothing is sent
        then."""
        ...
