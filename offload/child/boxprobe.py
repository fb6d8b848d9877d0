"""What a boxed child can really do: five attempts, tried by the child itself, reported as facts.

A wall that is claimed and not tried is a hope. Must not know which walls were raised.
"""

import os
import socket
from collections.abc import Callable

__all__ = ["ATTEMPTS", "probe_box"]

ATTEMPTS = ("open_socket", "read_outside", "write_outside", "run_program", "signal_parent")
_READABLE_BY_ALL = "/etc/passwd"
_PROGRAM = "/bin/true"


def probe_box() -> dict[str, str]:
    """{attempt: "possible" or the refusal}. Each attempt is harmless where it succeeds."""
    attempts: dict[str, Callable[[], None]] = dict(
        zip(ATTEMPTS, (_open_socket, _read_outside, _write_outside, _run_program, _signal_parent), strict=True))
    found: dict[str, str] = {}
    for name, attempt in attempts.items():
        try:
            attempt()
        except OSError as error:
            found[name] = error.strerror or type(error).__name__
        else:
            found[name] = "possible"
    return found


def _open_socket() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()


def _read_outside() -> None:
    os.close(os.open(_READABLE_BY_ALL, os.O_RDONLY))


def _write_outside() -> None:
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f".kith-box-probe-{os.getpid()}")  # noqa: S108 - it must lie outside
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    os.unlink(path)


def _run_program() -> None:
    pid = os.posix_spawn(_PROGRAM, [_PROGRAM], {})
    os.waitpid(pid, 0)


def _signal_parent() -> None:
    os.kill(os.getppid(), 0)
