"""One encrypted SQLite connection, set up the one way this project uses: the only import of the database driver.

Must not know any table, thread or transaction of the node.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from sqlcipher3 import dbapi2

from node.errors import StorageError, StoreConflict, WrongKey

__all__ = ["KEY_BYTES", "Connection", "Cursor", "DriverError", "Durability", "open_connection", "storage_error"]

KEY_BYTES = 32
_BUSY_TIMEOUT_MS = 5_000

Durability = Literal["FULL", "NORMAL"]
"""FULL survives a power cut with every commit; NORMAL may lose the last ones and is for what can be rebuilt."""

DriverError: type[Exception] = dbapi2.Error


class Cursor(Protocol):
    """What the store reads from a statement."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> tuple[Any, ...] | None: ...
    def fetchall(self) -> list[tuple[Any, ...]]: ...
    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...


class Connection(Protocol):
    """What the store's modules may do with a connection: run statements; transactions are Database's business."""

    @property
    def in_transaction(self) -> bool: ...
    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...
    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Cursor: ...
    def close(self) -> None: ...


def open_connection(path: Path, key: bytes, durability: Durability, *, read_only: bool = False) -> Connection:
    """An open connection whose key has been proved on the file. Raises WrongKey or StorageError; blocks on the disk.

    The file is made with mode 0600 (SQLite gives -wal and -shm the same). The raw key goes in as hex, which skips
    the cipher's own slow derivation: the key already comes from HKDF.
    """
    if len(key) != KEY_BYTES:
        raise ValueError(f"a database key has {KEY_BYTES} bytes, not {len(key)}")
    try:
        # Only when it is not there: closing any descriptor of a file gives up all its locks of this process, those of
        # other connections too (fcntl(2), POSIX).
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        raw = dbapi2.connect(str(path), isolation_level=None, check_same_thread=False, cached_statements=256)
    except (OSError, dbapi2.Error) as error:
        raise StorageError(f"The database {path} cannot be opened: {error}.", hint=f"Check: ls -l {path}") from error
    try:
        _set_up(raw, key, durability, read_only=read_only)
    except dbapi2.Error as error:
        raw.close()
        raise storage_error(error, path) from error
    except StorageError:
        raw.close()
        raise
    return cast("Connection", raw)


def storage_error(error: Exception, path: Path) -> StorageError:
    """The driver's error as one of ours. The driver's texts name tables and columns, never values."""
    text = str(error)
    if isinstance(error, dbapi2.IntegrityError):
        return StoreConflict(f"A record contradicts what is already stored ({text}); nothing was changed.")
    if "file is not a database" in text:
        return WrongKey(f"The database {path} does not open with this device's key, or the file is damaged.")
    if "disk is full" in text:
        return StorageError(f"The disk that holds {path} is full; nothing was changed.", hint="Free some space: df -h")
    return StorageError(f"The database {path} failed: {text}.")


def _set_up(raw: Any, key: bytes, durability: Durability, *, read_only: bool) -> None:
    if not raw.execute("PRAGMA cipher_version").fetchone():
        raise StorageError("This build of the database library cannot encrypt; nothing is stored in clear instead.")
    raw.execute("PRAGMA cipher_log_level=NONE")  # else a wrong key prints its own lines to stderr
    raw.execute(f"PRAGMA key=\"x'{key.hex()}'\"")
    raw.execute("SELECT count(*) FROM sqlite_master").fetchone()  # the first read proves the key
    raw.execute(f"PRAGMA busy_timeout={_BUSY_TIMEOUT_MS}")
    raw.execute("PRAGMA temp_store=MEMORY")  # no spill of decrypted rows to a temporary file
    raw.execute("PRAGMA trusted_schema=OFF")
    raw.execute("PRAGMA foreign_keys=ON")
    if read_only:
        raw.execute("PRAGMA query_only=ON")
        return
    if raw.execute("PRAGMA journal_mode=WAL").fetchone() != ("wal",):
        raise StorageError("The data folder's file system does not support the database's write-ahead log.")
    raw.execute(f"PRAGMA synchronous={durability}")
    raw.execute("PRAGMA secure_delete=ON")
