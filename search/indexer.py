"""Keeps the index like the files: reads what is new or changed, forgets what is gone, passes over the rest.

Size and time of change say whether a file is looked at, the digest of its content whether it is indexed again. Must not
know what folders mean, who may search them or how the index is stored.
"""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import trio

from search.analyzer import ANALYZER, terms
from search.local import scored_text
from search.passages import split_passages
from search.ports import Document, DocumentSource, FileState, TermIndex

__all__ = ["IndexReport", "Indexer"]

log = logging.getLogger(__name__)

BATCH = 20
"""Files per transaction: a crash costs at most these, and searches wait no longer than for these."""


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What one round did."""

    indexed: int
    """New or changed files."""
    unchanged: int
    dropped: int
    unreadable: int


class Indexer:
    """Brings one index up to date with one source."""

    def __init__(self, source: DocumentSource, index: TermIndex) -> None:
        self._source = source
        self._index = index
        self._threads = trio.CapacityLimiter(1)
        self._turn = trio.Lock()

    async def refresh(self) -> IndexReport:
        """One round, alone. Cancelled midway it leaves whole files behind and the next round goes on."""
        async with self._turn:
            files = await trio.to_thread.run_sync(self._source.files, limiter=self._threads)
            known = {(state.folder, state.name): (state, digest) for state, digest in await self._index.states()}
            present = {(state.folder, state.name) for state in files}
            gone = [key for key in known if key not in present]
            fresh = [state for state in files if known.get((state.folder, state.name), (None, b""))[0] != state]
            indexed = unreadable = 0
            for start in range(0, len(fresh), BATCH):
                done, lost = await self._take(fresh[start:start + BATCH], known)
                indexed, unreadable = indexed + done, unreadable + lost
            if gone:
                await self._index.drop(gone)
        report = IndexReport(indexed, len(files) - indexed - unreadable, len(gone), unreadable)
        if indexed or gone:
            log.info("index: %d read, %d forgotten, %d unreadable", indexed, len(gone), unreadable)
        return report

    async def _take(
        self, batch: Sequence[FileState], known: dict[tuple[str, str], tuple[FileState, bytes]],
    ) -> tuple[int, int]:
        documents: list[Document] = []
        same: list[FileState] = []
        lost: list[tuple[str, str]] = []
        for state in batch:
            key = (state.folder, state.name)
            document = await trio.to_thread.run_sync(self._document, state, limiter=self._threads)
            if document is None:
                lost.append(key)
            elif key in known and known[key][1] == document.digest:
                same.append(state)
            else:
                documents.append(document)
        if documents:
            await self._index.put(documents)
        if same:
            await self._index.touch(same)
        stale = [key for key in lost if key in known]
        if stale:
            await self._index.drop(stale)
        return len(documents), len(lost)

    def _document(self, state: FileState) -> Document | None:
        read = self._source.read(state.folder, state.name)
        if read is None:
            return None
        title, text = read
        passages = split_passages(text) or (title,)
        label = self._source.label(state.folder)
        content = "\x00".join((ANALYZER, label, title, text))
        return Document(
            state, hashlib.blake2b(content.encode(), digest_size=16).digest(), label, title, passages,
            tuple(len(terms(scored_text(title, passage))) for passage in passages),
        )
