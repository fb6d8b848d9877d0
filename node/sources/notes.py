"""A folder of the owner's plain text: notes, which may be written, and files, which are only read.

Every change is planned first: the plan names the file and the digests before and after, so that carrying it out twice
changes nothing and carrying it out on a file that somebody edited since is refused. Must not know tools, labels or the
index. Blocking: callers run it in a thread.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from node.sources.errors import BadValue, NotText, NotThere, SourceChanged, SourceError
from node.sources.event import Problem
from node.sources.folder import FileInfo, Folder, digest_of

__all__ = ["Hit", "Note", "NoteFolder", "NoteInfo", "WritePlan"]

NOTE_SUFFIXES = frozenset({".md", ".txt"})
NOTE_LIMIT_BYTES = 1024 * 1024
WRITE_LIMIT_CHARS = 20_000
TITLE_LIMIT_CHARS = 80
SNIPPET_CHARS = 160


@dataclass(frozen=True, slots=True)
class NoteInfo:
    """One note or file."""

    title: str
    """The file's name without folders and without the suffix of a note."""
    name: str
    """Its path inside the folder."""
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Note:
    """A whole note."""

    info: NoteInfo
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A note that holds words of a search, and the line where most of them stand."""

    info: NoteInfo
    snippet: str
    words_found: int


@dataclass(frozen=True, slots=True)
class WritePlan:
    """One planned change of one note: a new file, or text added at its end."""

    name: str
    added: str
    """The exact characters that will be at the end."""
    before: str | None
    """Digest of the file now; None for a new one."""
    size_before: int
    after: str


class NoteFolder:
    """Text files below one folder."""

    def __init__(
        self, root: Path, *, suffixes: frozenset[str] | None = NOTE_SUFFIXES, never: Sequence[Path] = (),
    ) -> None:
        """suffixes None takes every plain file; those that are no text are refused when read. never: folders inside
        that are not listed."""
        self._folder = Folder(root, size_limit_bytes=NOTE_LIMIT_BYTES, never=never)
        self._suffixes = suffixes

    @property
    def root(self) -> Path:
        """The folder."""
        return self._folder.root

    def all(self) -> tuple[NoteInfo, ...]:
        """All notes by name."""
        return tuple(self._info(info) for info in self._folder.files(suffixes=self._suffixes))

    def problems(self) -> list[Problem]:
        """The folders below that cannot be read. Raises FolderUnreadable."""
        listing = self._folder.listing(suffixes=self._suffixes)
        return [Problem(one.name, f"it cannot be read: {one.reason}") for one in listing.unread]

    def find(self, title: str) -> tuple[NoteInfo, ...]:
        """Notes of this title or path; case, accents and the suffix don't count."""
        wanted = _fold(title)
        return tuple(
            info for info in self.all()
            if wanted in {_fold(info.title), _fold(info.name), _fold(PurePosixPath(info.name).name)}
        )

    def read(self, name: str) -> Note:
        """The note at this path. Raises NotThere, PathRefused, TooBig, NotText."""
        if self._suffixes is not None and PurePosixPath(name).suffix.lower() not in self._suffixes:
            raise NotText(f"{name} is no note: notes end in {', '.join(sorted(self._suffixes))}.")
        data = self._folder.read(name)
        info = NoteInfo(self._title(name), name, len(data), 0)
        return Note(info, _text(name, data))

    def search(self, query: str, *, limit: int = 10) -> list[Hit]:
        """Notes that hold words of the query in title or text, those with most distinct words first. Plain reading
        of all files, for a folder of hundreds; the index serves more. Files that cannot be read are passed over."""
        words = list(dict.fromkeys(_words(query)))
        hits: list[Hit] = []
        for info in self.all():
            try:
                text = self.read(info.name).text
            except SourceError:
                continue
            present = set(_words(info.title)) | set(_words(text))
            found = sum(word in present for word in words)
            if found:
                hits.append(Hit(info, _snippet(text, words), found))
        return sorted(hits, key=lambda hit: (-hit.words_found, hit.info.name))[:limit]

    # ------------------------------------------------------------ writing

    def plan_write(self, text: str, *, title: str = "") -> WritePlan:
        """What adding text to the note of this title would do; a title that no note has, or none, makes a new one.
        Raises BadValue, and NotThere when two notes have the title."""
        body = text.strip("\n")
        if not body.strip() or len(body) > WRITE_LIMIT_CHARS or "\x00" in body:
            raise BadValue(f"A note takes 1 to {WRITE_LIMIT_CHARS} characters of text.")
        found = self.find(title) if title else ()
        if len(found) > 1:
            raise NotThere(f"More than one note is called {title}: {', '.join(info.name for info in found)}.")
        name = found[0].name if found else self._new_name(title or _title_of(body), exact=bool(title))
        data = self._folder.read_or_none(name)
        if data is None:
            added = f"{body}\n"
            return WritePlan(name, added, None, 0, digest_of(added.encode()))
        _text(name, data)
        gap = "" if not data or data.endswith(b"\n") else "\n"
        added = f"{gap}{body}\n"
        return WritePlan(name, added, digest_of(data), len(data), digest_of(data + added.encode()))

    def write(self, plan: WritePlan) -> bool:
        """Carry out the plan, all or nothing; False when it was carried out before. Raises SourceChanged when the
        note is neither as before nor as after."""
        data = self._folder.read_or_none(plan.name)
        if data is not None and digest_of(data) == plan.after:
            return False
        if (None if data is None else digest_of(data)) != plan.before:
            raise SourceChanged(f"{plan.name} was changed since; nothing was written.")
        self._folder.replace(plan.name, (data or b"") + plan.added.encode(), expected=plan.before)
        return True

    def unwrite(self, plan: WritePlan) -> bool:
        """Take a carried-out plan back; False when that was done before. Raises SourceChanged when the note was edited
        since."""
        data = self._folder.read_or_none(plan.name)
        current = None if data is None else digest_of(data)
        if current == plan.before:
            return False
        if data is None or current != plan.after:
            raise SourceChanged(f"{plan.name} was changed since; it stays as it is.")
        if plan.before is None:
            self._folder.remove(plan.name, expected=plan.after)
            return True
        old = data[: plan.size_before]
        if digest_of(old) != plan.before:
            raise SourceChanged(f"{plan.name} does not hold what it held before; it stays as it is.")
        self._folder.replace(plan.name, old, expected=plan.after)
        return True

    # ------------------------------------------------------------ names

    def _info(self, info: FileInfo) -> NoteInfo:
        return NoteInfo(self._title(info.name), info.name, info.size_bytes, info.mtime_ns)

    def _title(self, name: str) -> str:
        path = PurePosixPath(name)
        return path.stem if path.suffix.lower() in NOTE_SUFFIXES else path.name

    def _new_name(self, title: str, *, exact: bool) -> str:
        stem = _file_stem(title)
        taken = {_fold(info.name) for info in self.all()}
        if exact or _fold(f"{stem}.md") not in taken:
            return f"{stem}.md"
        return next(name for number in range(2, 10_000) if _fold(name := f"{stem} {number}.md") not in taken)


def _file_stem(title: str) -> str:
    """A file name made of the title. Raises BadValue when nothing is left of it."""
    whole = unicodedata.normalize("NFC", title)
    kept = "".join(part if part.isalnum() or part in " -_,'()&+" else " " for part in whole)
    stem = " ".join(kept.split())[:TITLE_LIMIT_CHARS].strip()
    if not stem:
        raise BadValue("A note's title needs a letter or digit.")
    return stem


def _title_of(text: str) -> str:
    """A title for a note that was given none: its first words."""
    words = re.findall(r"[\w'-]+", text)
    return " ".join(words[:6]) or "Note"


def _text(name: str, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotText(f"{name} is no UTF-8 text.") from None
    if "\x00" in text:
        raise NotText(f"{name} is no plain text.")
    return text


def _snippet(text: str, words: list[str]) -> str:
    """The line with most distinct words, cut to a window around the first of them."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    best = max(lines, key=lambda line: sum(word in _words(line) for word in words))
    if len(best) <= SNIPPET_CHARS:
        return best
    places = [best.casefold().find(word) for word in words]
    first = max(0, min((place for place in places if place >= 0), default=0) - SNIPPET_CHARS // 4)
    return f"{'...' if first else ''}{best[first:first + SNIPPET_CHARS]}..."


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _fold(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(part for part in plain if not unicodedata.combining(part)).strip()
