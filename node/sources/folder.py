"""One folder of the owner's files, opened so that no name can lead out of it; reads and replaces whole plain files.

Names are relative with "/" between parts. Every part is opened from its parent's descriptor with O_NOFOLLOW, so a
symlink or a rename during the walk cannot redirect it. The folder itself may be a link: that is the owner's choice.
Must not know what the files mean. Blocking: callers run it in a thread.
"""

import errno
import hashlib
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from node.sources.errors import FolderUnreadable, NotThere, PathRefused, SourceChanged, TooBig, WriteFailed

__all__ = ["FILES_LIMIT", "FILE_SIZE_LIMIT_BYTES", "FileInfo", "Folder", "Listing", "Unread", "digest_of"]

FILE_SIZE_LIMIT_BYTES = 4 * 1024 * 1024
FILES_LIMIT = 5_000
DEPTH_LIMIT = 8
NAME_LIMIT_BYTES = 200

_TEMP_SUFFIX = ".kith-tmp"
_WALK = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""O_NONBLOCK: opening a named pipe must not wait for a writer."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One plain file: enough to see that it changed."""

    name: str
    size_bytes: int
    mtime_ns: int
    inode: int
    """Another one after every replacement by rename, also within one tick of the clock."""
    ctime_ns: int = 0
    """Another one after permissions were given or taken, too: what could not be opened is tried again."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A folder or file below that the system does not let be looked at, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The files that are there, and what could not be looked at: files may be in it that nobody knows of."""

    files: tuple[FileInfo, ...]
    unread: tuple[Unread, ...]

    def hides(self, name: str) -> bool:
        """Whether a file of this name may be there unseen."""
        return any(name == one.name or name.startswith(f"{one.name}/") for one in self.unread)


def digest_of(data: bytes) -> str:
    """The hex digest that says "these very bytes"."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Folder:
    """The plain files below one folder."""

    def __init__(
        self, root: Path, *, size_limit_bytes: int = FILE_SIZE_LIMIT_BYTES, never: Sequence[Path] = (),
    ) -> None:
        """never: folders that files() does not look into where they lie below root."""
        self.root = root
        self._never = tuple(never)
        self.size_limit_bytes = size_limit_bytes
        self._writing = threading.Lock()

    def files(self, *, suffixes: frozenset[str] | None = None) -> tuple[FileInfo, ...]:
        """The files of listing()."""
        return self.listing(suffixes=suffixes).files

    def listing(self, *, suffixes: frozenset[str] | None = None) -> Listing:
        """The plain files by name, at most FILES_LIMIT; no hidden ones, no links, none deeper than DEPTH_LIMIT folders.
        suffixes are lower case with the dot. A missing folder is an empty one. One below that cannot be read is named
        and the others count; raises FolderUnreadable when the folder itself cannot be listed."""
        walk = _Walk(suffixes, {(one.st_dev, one.st_ino) for one in map(_stat_or_none, self._never) if one})
        try:
            if self.root.is_dir():
                root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    walk.look(root, ())
                finally:
                    os.close(root)
        except OSError as error:
            raise FolderUnreadable(f"The folder {self.root} cannot be read: {error.strerror}.") from error
        return Listing(tuple(sorted(walk.found, key=lambda info: info.name)), tuple(walk.unread))

    def read(self, name: str) -> bytes:
        """The whole file. Raises NotThere, PathRefused, TooBig."""
        with self._parent(name) as (parent, leaf):
            return self._read_at(parent, leaf, name)

    def read_or_none(self, name: str) -> bytes | None:
        """The whole file, or None when there is none. Raises PathRefused, TooBig."""
        try:
            return self.read(name)
        except NotThere:
            return None

    def replace(self, name: str, data: bytes, *, expected: str | None) -> None:
        """Put data in place of the file whose digest is expected (None: no file yet), all or nothing, also when
        power or process goes at any instant: temporary file, fsync, rename, fsync of the folder. Missing folders are
        made. The file keeps its permissions; a new one is 0600. Raises SourceChanged when the file is not the
        expected one, PathRefused, TooBig, WriteFailed."""
        if len(data) > self.size_limit_bytes:
            raise TooBig(f"{name} would have {len(data)} bytes; the limit is {self.size_limit_bytes}.")
        with self._writing, _disk_errors(name), self._parent(name, make=True) as (parent, leaf):
            mode = self._check(parent, leaf, name, expected)
            temp = f".{leaf}{_TEMP_SUFFIX}"
            with suppress(FileNotFoundError):
                os.unlink(temp, dir_fd=parent)      # a crash in an earlier write left it
            descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fchmod(file.fileno(), mode)
                    os.fsync(file.fileno())
                # Looked at again at the last moment: a calendar program may have saved since. What remains is the
                # instant between this look and the rename, which POSIX gives no way to close.
                self._check(parent, leaf, name, expected)
                os.rename(temp, leaf, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temp, dir_fd=parent)
                raise
            os.fsync(parent)

    def remove(self, name: str, *, expected: str) -> None:
        """Delete the file whose digest is expected. Raises NotThere, SourceChanged, PathRefused, TooBig,
        WriteFailed."""
        with self._writing, _disk_errors(name), self._parent(name) as (parent, leaf):
            if digest_of(self._read_at(parent, leaf, name)) != expected:
                raise SourceChanged(f"{name} was changed since; it stays as it is.")
            os.unlink(leaf, dir_fd=parent)
            os.fsync(parent)

    def _check(self, parent: int, leaf: str, name: str, expected: str | None) -> int:
        """The permissions of the expected file, or 0600 for none."""
        try:
            current = digest_of(self._read_at(parent, leaf, name))
        except NotThere:
            if expected is None:
                return 0o600
            raise SourceChanged(f"{name} is gone; nothing was written.") from None
        if current != expected:
            raise SourceChanged(f"{name} was changed since; nothing was written.")
        return stat.S_IMODE(os.stat(leaf, dir_fd=parent, follow_symlinks=False).st_mode)

    def _read_at(self, parent: int, leaf: str, name: str) -> bytes:
        try:
            descriptor = os.open(leaf, _READ, dir_fd=parent)
        except FileNotFoundError:
            raise NotThere(f"There is no {name}.") from None
        except OSError as error:
            raise PathRefused(f"{name} cannot be opened: {error.strerror}.") from None
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise PathRefused(f"{name} is no plain file.")
            data = file.read(self.size_limit_bytes + 1)
        if len(data) > self.size_limit_bytes:
            raise TooBig(f"{name} has more than {self.size_limit_bytes} bytes.")
        return data

    @contextmanager
    def _parent(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The open folder that holds name, and the last part of name."""
        *folders, leaf = _parts(name)
        if make:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            current = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            raise NotThere(f"There is no {name}: its folder {self.root} cannot be opened.") from None
        try:
            for part in folders:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=current)
                inner = self._step(current, part, name)
                os.close(current)
                current = inner
            yield current, leaf
        finally:
            os.close(current)

    @staticmethod
    def _step(current: int, part: str, name: str) -> int:
        try:
            return os.open(part, _WALK, dir_fd=current)
        except FileNotFoundError:
            raise NotThere(f"There is no {name}.") from None
        except OSError:
            raise PathRefused(f"{name} passes something that is no plain folder.") from None


def _stat_or_none(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


class _Walk:
    """One look through a folder and those below it, by descriptors: a link put in a folder's place leads nowhere."""

    def __init__(self, suffixes: frozenset[str] | None, never: set[tuple[int, int]]) -> None:
        self.found: list[FileInfo] = []
        self.unread: list[Unread] = []
        self._suffixes = suffixes
        self._never = never

    def look(self, descriptor: int, inside: tuple[str, ...]) -> None:
        """Take in this folder and those below. Raises OSError when this one cannot be read."""
        folders: list[str] = []
        with os.scandir(descriptor) as entries:
            for name, is_folder in sorted((entry.name, _may_be_folder(entry)) for entry in entries):
                if name.startswith(".") or not _is_text(name):
                    continue    # a name that is no text cannot be asked for either
                if is_folder:
                    folders.append(name)
                elif self._suffixes is None or Path(name).suffix.lower() in self._suffixes:
                    self._take(descriptor, (*inside, name))
                if len(self.found) >= FILES_LIMIT:
                    return
        for name in folders if len(inside) < DEPTH_LIMIT else ():
            if len(self.found) < FILES_LIMIT:
                self._enter(descriptor, (*inside, name))

    def _take(self, descriptor: int, path: tuple[str, ...]) -> None:
        try:
            state = os.stat(path[-1], dir_fd=descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return      # gone since the listing
        except PermissionError:
            raise       # names without what stands behind them: the folder is as good as unreadable
        except OSError as error:
            self._note(path, error)
            return
        if stat.S_ISREG(state.st_mode):
            self.found.append(FileInfo(
                "/".join(path), state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns))

    def _enter(self, descriptor: int, path: tuple[str, ...]) -> None:
        try:
            inner = os.open(path[-1], _WALK, dir_fd=descriptor)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):   # gone since, or a link
                self._note(path, error)
            return
        try:
            place = os.fstat(inner)
            if (place.st_dev, place.st_ino) not in self._never:
                self.look(inner, path)
        except OSError as error:
            self._note(path, error)
        finally:
            os.close(inner)

    def _note(self, path: tuple[str, ...], error: OSError) -> None:
        self.unread.append(Unread("/".join(path), error.strerror or type(error).__name__))


def _may_be_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return True     # opening it will tell


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _disk_errors(name: str) -> Iterator[None]:
    """A full disk, a read-only one, missing permissions: as WriteFailed."""
    try:
        yield
    except OSError as error:
        raise WriteFailed(f"{name} could not be written ({error.strerror}); it is as it was.") from error


def _parts(name: str) -> list[str]:
    """The parts of a relative name. Raises PathRefused for one that is absolute, climbs, hides or holds control
    characters."""
    parts = name.split("/")
    for part in parts:
        if not part or part.startswith(".") or not part.isprintable():
            raise PathRefused(f"{name!r} is no name of a file in this folder.")
        try:
            size = len(part.encode())
        except UnicodeEncodeError:
            raise PathRefused(f"{name!r} is no text.") from None
        if size > NAME_LIMIT_BYTES:
            raise PathRefused("A part of the name is too long.")
    if len(parts) > DEPTH_LIMIT + 1:
        raise PathRefused("The name goes too deep.")
    return parts
