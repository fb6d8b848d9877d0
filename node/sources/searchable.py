"""The folders whose texts are searched: the notes and what the owner shares. Implements search.ports.DocumentSource.

A folder's key is its absolute path and never leaves this device; its label is its last part. Must not know who may
search what. Blocking: called in a thread.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from node.sources.errors import SourceError
from node.sources.notes import NoteFolder
from search.ports import FileState

__all__ = ["SearchableFolders", "folder_key"]


def folder_key(folder: Path) -> str:
    """The one key of a folder, however it is written."""
    return str(folder.expanduser().resolve())


class SearchableFolders:
    """The text files (.md, .txt) of some folders."""

    def __init__(self, folders: Iterable[Path] = (), *, never: Sequence[Path] = ()) -> None:
        """never: folders inside them that are not looked into."""
        self._never = tuple(never)
        self._folders: dict[str, NoteFolder] = {}
        self.watch(folders)

    def watch(self, folders: Iterable[Path]) -> None:
        """Look at exactly these from now on."""
        keys = {folder_key(folder): None for folder in folders}
        self._folders = {key: self._folders.get(key) or NoteFolder(Path(key), never=self._never) for key in keys}

    def files(self) -> Sequence[FileState]:
        """Every text file of every folder."""
        return [
            FileState(key, info.name, info.size_bytes, info.mtime_ns)
            for key, notes in self._folders.items() for info in notes.all()
        ]

    def label(self, folder: str) -> str:
        """The folder's own name."""
        return Path(folder).name

    def read(self, folder: str, name: str) -> tuple[str, str] | None:
        """(title, text), or None for what is gone, too big, a link or no text."""
        notes = self._folders.get(folder)
        if notes is None:
            return None
        try:
            note = notes.read(name)
        except SourceError:
            return None     # counted as unreadable by the indexer
        return note.info.title, note.text
