"""One child process: started with next to nothing, spoken to in frames, ended for certain.

Its end of the pipe is the sign of life: end of file means death, whatever the cause. Must not know what the frames mean
or whether the child is started again.
"""

import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import trio

from offload.child.errors import ChildGone, FrameTooLarge
from offload.child.frames import FrameSplitter, join_frame

__all__ = ["Child", "Death", "start_child"]

_READ_BYTES = 256 * 1024
_WRITE_DEADLINE_S = 10.0
_REAP_DEADLINE_S = 5.0
_PARTING_S = 0.05
_LOOK_EVERY_S = 0.01
_PACKAGES_FOLDER = str(Path(__file__).resolve().parents[2])

# Nothing of the daemon's environment goes in. GOMP_SPINCOUNT: a thread that waits for others looks 500 times, 20 us,
# then sleeps: sleeping at once, two threads take 25 ms for a decode of 8 answers instead of 14 on an idle machine;
# looking for as long as the default does, up to a second on a shared one (measured). OPENBLAS: numpy starts no thread
# before the box is shut. GGML_NO_BACKTRACE: else an abort inside the engine starts a debugger. TOKENIZERS: no thread
# pool for short texts.
_ENVIRONMENT = {
    "GOMP_SPINCOUNT": "500",
    "OPENBLAS_NUM_THREADS": "1",
    "GGML_NO_BACKTRACE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "LC_ALL": "C.UTF-8",
    "PYTHONPATH": _PACKAGES_FOLDER,
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True, slots=True)
class Death:
    """How a child ended. return_code is negative for a signal; wanted when we ended it."""

    return_code: int
    wanted: bool

    @property
    def reason(self) -> str:
        """In words: the signal's name or the exit status."""
        if self.return_code >= 0:
            return f"exit status {self.return_code}"
        try:
            return signal.Signals(-self.return_code).name
        except ValueError:
            return f"signal {-self.return_code}"


class Child:
    """A running child. Build with start_child; always end it with `end`."""

    def __init__(self, process: subprocess.Popen[bytes], stream: trio.SocketStream) -> None:
        self._process = process
        self._stream = stream
        self._sending = trio.Lock()
        self._wanted = False
        self._splitter = FrameSplitter()
        self._payloads: deque[bytes] = deque()

    @property
    def pid(self) -> int:
        """Its process id, which stays reserved until `end` has reaped it."""
        return self._process.pid

    async def send(self, payload: bytes) -> None:
        """Send one frame. A child that does not take it within 10 seconds is killed. Raises ChildGone."""
        frame = join_frame(payload)
        with trio.move_on_after(_WRITE_DEADLINE_S) as scope:
            try:
                async with self._sending:
                    await self._stream.send_all(frame)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise ChildGone() from error
            except trio.Cancelled:
                # Half a frame may be out: this pipe can't be used again.
                self._process.kill()
                raise
        if scope.cancelled_caught:
            raise ChildGone("the child did not take its input")

    async def receive(self) -> bytes | None:
        """Its next frame; None once it is dead. A child that breaks the framing is killed."""
        while not self._payloads:
            try:
                data = await self._stream.receive_some(_READ_BYTES)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return None
            if not data:
                return None
            try:
                self._payloads.extend(self._splitter.feed(bytes(data)))
            except FrameTooLarge:
                self.kill()
                return None
        return self._payloads.popleft()

    def kill(self, *, wanted: bool = False) -> None:
        """SIGKILL, now. wanted: this is no crash."""
        self._wanted = self._wanted or wanted
        self._process.kill()

    async def end(self) -> Death:
        """Close the pipe, kill what is left and reap it. Not interrupted by cancellation; takes 5 seconds at most."""
        with trio.CancelScope(shield=True):
            await self._stream.aclose()
            # The kernel first frees what the process held (300 MB take 30 ms), so waiting must not block the loop.
            with trio.move_on_after(_PARTING_S):
                await self._exited()
            if self._process.poll() is None:
                self._process.kill()
                with trio.move_on_after(_REAP_DEADLINE_S):
                    await self._exited()
        code = self._process.poll()
        return Death(code if code is not None else -signal.SIGKILL, self._wanted)

    async def _exited(self) -> None:
        if self._process.poll() is not None:
            return
        try:
            fd = os.pidfd_open(self._process.pid)
        except OSError:
            while self._process.poll() is None:  # noqa: ASYNC110 - an old kernel announces nothing
                await trio.sleep(_LOOK_EVERY_S)
            return
        try:
            await trio.lowlevel.wait_readable(fd)
        finally:
            os.close(fd)


def start_child(
    module: str, *arguments: str, command: Sequence[str] = (), stderr: int | None = subprocess.DEVNULL,
) -> Child:
    """Start `python -P -m module --fd N --parent PID arguments...` with a pipe; returns at once.

    Its standard output and error lead nowhere, since a stack trace or an assertion could show a prompt. Raises OSError.
    `command` replaces the interpreter and module. The start happens in this very thread, a few milliseconds: the kernel
    ties a child to the thread that started it, and a helper thread that ends would take the child along.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = subprocess.Popen(
                [*(command or (sys.executable, "-P", "-s", "-m", module)),
                 "--fd", str(theirs.fileno()), "--parent", str(os.getpid()), *arguments],
                env=dict(_ENVIRONMENT), cwd="/", pass_fds=(theirs.fileno(),), start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
            )
        except OSError:
            ours.close()
            raise
    ours.setblocking(False)
    return Child(process, trio.SocketStream(trio.socket.from_stdlib_socket(ours)))
