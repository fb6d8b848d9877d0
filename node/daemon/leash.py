"""Ends the node when whoever started it is gone, however that ended: standard input is a pipe that only it holds open.

For the demonstration and tests. A signal at the parent's death would not do: the kernel sends it when the thread that
started the node ends. Must not know how a node ends; SIGTERM begins that.
"""

import os
import signal
import threading

__all__ = ["hold"]

_CHUNK_BYTES = 4096


def hold(descriptor: int = 0) -> None:
    """Send this process SIGTERM once the descriptor reads to its end; what comes before that is thrown away. Returns at
    once."""
    threading.Thread(target=_wait, args=(descriptor,), name="leash", daemon=True).start()


def _wait(descriptor: int) -> None:
    try:
        while os.read(descriptor, _CHUNK_BYTES):
            pass
    except OSError:
        pass    # closed: nobody holds the other end either
    os.kill(os.getpid(), signal.SIGTERM)
