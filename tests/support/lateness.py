"""How late this machine is: what a limit in seconds has to be wider by while something else takes its cores.

Two figures added up: by how much a sleeper overslept here, and how long the threads of a process were ready to run and
not let. Both are next to nothing on a machine that is free. Linux; elsewhere only the first. Must not know what is
timed.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Lateness", "lateness_of"]

_TICK_S = 0.02


class Lateness:
    """Read `seconds` at any time."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._waited_before_s = _waited_s(pid)
        self._overslept_s = 0.0
        self.over = threading.Event()

    @property
    def seconds(self) -> float:
        """So far."""
        return self._overslept_s + max(0.0, _waited_s(self._pid) - self._waited_before_s)

    def watch(self) -> None:
        """Until over is set."""
        while not self.over.is_set():
            began_s = time.monotonic()
            time.sleep(_TICK_S)
            self._overslept_s += time.monotonic() - began_s - _TICK_S


@contextmanager
def lateness_of(pid: int) -> Iterator[Lateness]:
    """From now on, of this process and of whoever measures it."""
    found = Lateness(pid)
    thread = threading.Thread(target=found.watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.over.set()
        thread.join()


def _waited_s(pid: int) -> float:
    total_ns = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):      # a thread that has just ended
            total_ns += int(task.read_text().split()[1])
    return total_ns / 1e9
