"""Becomes a command that cannot outlive the process it was started by, however that one ends.

Run as a program: PARENT_PID COMMAND... Must not know what the command is.
"""

import ctypes
import os
import signal
import sys

__all__ = ["tied"]

_PR_SET_PDEATHSIG = 1  # prctl(2); holds across execve(2)


def tied(command: list[str]) -> list[str]:
    """The command line that runs command tied to this process."""
    return [sys.executable, "-P", "-m", "node.cli.demo.tied", str(os.getpid()), *command]


def _become(parent: int, command: list[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:  # it ended before the line above
        sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 - this process becomes the command; no shell is involved


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
