"""One running node per data folder: a kernel lock that a crash releases by itself.

Two nodes on one folder would use one message key twice. Must not know what the folder holds.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from node.errors import NodeAlreadyRunning

__all__ = ["FolderLock", "holder_pid"]


class FolderLock:
    """The lock on one data folder, from acquire() or entering until release() or the end of the process."""

    def __init__(self, lock_file: Path) -> None:
        self._path = lock_file
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock and note our process id in the file. Raises NodeAlreadyRunning if another holds it."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            pid = holder_pid(self._path)
            who = f" (process {pid})" if pid else ""
            raise NodeAlreadyRunning(f"Another kith{who} is already running on {self._path.parent}.") from error
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        self._fd = fd

    def release(self) -> None:
        """Give the lock back. The file stays: removing it would let two nodes lock two different files."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None,
    ) -> None:
        self.release()


def holder_pid(lock_file: Path) -> int | None:
    """The process id last written to the lock file, for messages only; None when there is none."""
    try:
        return int(lock_file.read_text(encoding="ascii").strip() or 0) or None
    except (OSError, ValueError):
        return None
