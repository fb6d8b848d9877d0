"""One node per data folder: a lock file held for the life of the process.

The port is no lock: libp2p's own listeners share a port with SO_REUSEPORT and nobody notices. Must not import libp2p.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from node.errors import NodeAlreadyRunning, StorageError

__all__ = ["NodeLock"]

_FILE = "node.lock"


class NodeLock:
    """An exclusive hold on a data folder, given back by release(), by leaving the with block, or by the kernel at exit.

    The file stays behind on purpose: removing it would let two nodes hold two files of the same name. Its content, the
    process id, is for people and is never trusted.
    """

    def __init__(self, folder: Path) -> None:
        """Takes the lock at once.

        Raises NodeAlreadyRunning when another process holds it, StorageError for a folder that cannot be written.
        """
        self._path = folder / _FILE
        self._fd: int | None = None
        try:
            self._take(folder)
        except OSError as error:
            self.release()
            text = f"The lock file {self._path} cannot be written: {error.strerror}."
            raise StorageError(text, hint=f"Check: ls -ld {folder}; df -h {folder}") from error

    def _take(self, folder: Path) -> None:
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            self.release()
            shown = f" (process {holder})" if holder.isdigit() else ""
            raise NodeAlreadyRunning(f"Another kith{shown} is already running on {folder}.") from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    @property
    def held(self) -> bool:
        """Whether this object still holds the folder."""
        return self._fd is not None

    def release(self) -> None:
        """Give the folder back. Doing it twice is fine."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
