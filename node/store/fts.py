"""The full-text index in index.db: search.ports.TermIndex over SQLite's FTS5.

Every text stands once, in `passages`; the FTS5 table only holds terms and points there, and takes part in the same
transactions. `ORDER BY bm25(terms)` is three times as fast as `ORDER BY rank`. The index can be built again from the
files at any time. Must not know what a score is: scoring is search.rank's.
"""

import json
from collections.abc import Collection, Sequence

from node.store.connection import Connection
from node.store.database import Database
from search.ports import Document, FileState, IndexedPassage, Statistics

__all__ = [
    "FtsIndex", "drop_documents", "put_documents", "read_candidates", "read_states", "read_statistics",
    "touch_documents",
]


_FREQUENCIES = "SELECT term, doc FROM vocabulary WHERE term IN (SELECT value FROM json_each(?))"
_COUNTS_INSIDE = """
    SELECT count(*), coalesce(sum(length), 0) FROM passages JOIN documents USING (doc)
    WHERE folder IN (SELECT value FROM json_each(?))"""
_FREQUENCIES_INSIDE = """
    SELECT term, count(DISTINCT passage)
    FROM occurrences JOIN passages ON passage = occurrences.doc JOIN documents ON documents.doc = passages.doc
    WHERE term IN (SELECT value FROM json_each(?)) AND folder IN (SELECT value FROM json_each(?)) GROUP BY term"""
_CANDIDATES = """
    SELECT passage, digest, documents.title, body, label, folder, name
    FROM (SELECT rowid AS hit, bm25(terms) AS rough FROM terms WHERE terms MATCH ? ORDER BY bm25(terms) LIMIT ?)
    JOIN passages ON passage = hit JOIN documents ON documents.doc = passages.doc ORDER BY rough, hit"""
_CANDIDATES_INSIDE = """
    SELECT passage, digest, documents.title, body, label, folder, name
    FROM (
        SELECT rowid AS hit, bm25(terms) AS rough FROM terms
        WHERE terms MATCH ? AND rowid IN (
            SELECT passage FROM passages JOIN documents USING (doc) WHERE folder IN (SELECT value FROM json_each(?)))
        ORDER BY bm25(terms) LIMIT ?)
    JOIN passages ON passage = hit JOIN documents ON documents.doc = passages.doc ORDER BY rough, hit"""


class FtsIndex:
    """Implements search.ports.TermIndex."""

    def __init__(self, database: Database) -> None:
        """database: index.db, opened with node.store.schema.INDEX."""
        self._database = database

    async def statistics(self, stems: Collection[str], *, folders: Collection[str] | None = None) -> Statistics:
        return await self._database.read(read_statistics, tuple(stems), _keys(folders))

    async def candidates(
        self, words: Sequence[str], *, limit: int, folders: Collection[str] | None = None,
    ) -> Sequence[IndexedPassage]:
        return await self._database.read(read_candidates, tuple(words), limit, _keys(folders))

    async def states(self) -> Sequence[tuple[FileState, bytes]]:
        return await self._database.read(read_states)

    async def put(self, documents: Sequence[Document]) -> None:
        await self._database.write(put_documents, tuple(documents))

    async def touch(self, states: Sequence[FileState]) -> None:
        await self._database.write(touch_documents, tuple(states))

    async def drop(self, files: Sequence[tuple[str, str]]) -> None:
        await self._database.write(drop_documents, tuple(files))


def read_statistics(tx: Connection, stems: tuple[str, ...], folders: tuple[str, ...] | None) -> Statistics:
    """Passages, terms, and per stem the number of passages that hold it, in these folders."""
    if folders is None:
        counts = tx.execute("SELECT count(*), coalesce(sum(length), 0) FROM passages").fetchone()
        rows = tx.execute(_FREQUENCIES, (_json(stems),))
    else:
        counts = tx.execute(_COUNTS_INSIDE, (_json(folders),)).fetchone()
        rows = tx.execute(_FREQUENCIES_INSIDE, (_json(stems), _json(folders)))
    found = {str(term): int(count) for term, count in rows}
    assert counts is not None
    return Statistics(int(counts[0]), int(counts[1]), {stem: found.get(stem, 0) for stem in stems})


def read_candidates(
    tx: Connection, words: tuple[str, ...], limit: int, folders: tuple[str, ...] | None,
) -> list[IndexedPassage]:
    """Passages of these folders that hold any of the words, by FTS5's own bm25."""
    if not words:
        return []
    if folders is None:
        rows = tx.execute(_CANDIDATES, (_match(words), limit))
    else:
        rows = tx.execute(_CANDIDATES_INSIDE, (_match(words), _json(folders), limit))
    return [
        IndexedPassage(int(passage), bytes(digest), str(title), str(body), str(label), str(folder), str(name))
        for passage, digest, title, body, label, folder, name in rows
    ]


def read_states(tx: Connection) -> list[tuple[FileState, bytes]]:
    """Every indexed file."""
    rows = tx.execute("SELECT folder, name, size_bytes, mtime_ns, digest FROM documents ORDER BY folder, name")
    return [
        (FileState(str(folder), str(name), int(size_bytes), int(mtime_ns)), bytes(digest))
        for folder, name, size_bytes, mtime_ns, digest in rows
    ]


def put_documents(tx: Connection, documents: tuple[Document, ...]) -> None:
    """Each document in place of what stands under its folder and name."""
    for document in documents:
        state = document.state
        drop_documents(tx, ((state.folder, state.name),))
        row = tx.execute(
            "INSERT INTO documents (folder, name, label, title, size_bytes, mtime_ns, digest)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING doc",
            (
                state.folder, state.name, document.label, document.title, state.size_bytes, state.mtime_ns,
                document.digest,
            ),
        ).fetchone()
        assert row is not None
        for body, length in zip(document.passages, document.lengths, strict=True):
            passage = tx.execute(
                "INSERT INTO passages (doc, title, body, length) VALUES (?, ?, ?, ?) RETURNING passage",
                (row[0], document.title, body, length),
            ).fetchone()
            assert passage is not None
            tx.execute(
                "INSERT INTO terms (rowid, title, body) VALUES (?, ?, ?)", (passage[0], document.title, body),
            )


def touch_documents(tx: Connection, states: tuple[FileState, ...]) -> None:
    """New sizes and times."""
    for state in states:
        tx.execute(
            "UPDATE documents SET size_bytes = ?, mtime_ns = ? WHERE folder = ? AND name = ?",
            (state.size_bytes, state.mtime_ns, state.folder, state.name),
        )


def drop_documents(tx: Connection, files: tuple[tuple[str, str], ...]) -> None:
    """Documents, passages and terms of these files. FTS5 must be given the old text to take its terms out."""
    for folder, name in files:
        row = tx.execute("SELECT doc FROM documents WHERE folder = ? AND name = ?", (folder, name)).fetchone()
        if row is None:
            continue
        tx.execute(
            "INSERT INTO terms (terms, rowid, title, body)"
            " SELECT 'delete', passage, title, body FROM passages WHERE doc = ?", row,
        )
        tx.execute("DELETE FROM passages WHERE doc = ?", row)
        tx.execute("DELETE FROM documents WHERE doc = ?", row)


def _keys(folders: Collection[str] | None) -> tuple[str, ...] | None:
    return None if folders is None else tuple(sorted(folders))


def _json(values: Collection[str]) -> str:
    """A list for json_each, so that no statement is put together from parts."""
    return json.dumps(list(values))


def _match(words: Collection[str]) -> str:
    """Any of the words. Quoted, so that nothing in them is taken for syntax."""
    return " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
