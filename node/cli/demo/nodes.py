"""Starts, stops and asks one real node of the demonstration: its own process, its own folder, the normal API.

The command that starts a node is passed in: tests put a composed daemon in its place. A node ends with the process that
started it, even where that is killed. Must not know what is demonstrated.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from node.cli.client import NodeClient
from node.cli.failure import CommandFailure
from node.paths import Paths

__all__ = ["DAEMON", "DemoNode"]

DAEMON: tuple[str, ...] = (sys.executable, "-P", "-m", "node.daemon")
START_TIMEOUT_S = 120.0     # a busy machine starts a node slowly
STOP_TIMEOUT_S = 60.0
TAIL_CHARS = 600
POLL_S = 0.1


class DemoNode:
    """One node of the demonstration. Use as a context manager: it never outlives the block."""

    def __init__(
        self, name: str, home: Path, command: Sequence[str] = DAEMON, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.home = home
        self._command = [*command, "--until-stdin-ends"]
        # the owner's own settings are not the demonstration's, which shows every question
        outside = {key: value for key, value in os.environ.items() if not key.startswith("KITH_")}
        self._env = {**outside, "KITH_PRIVACY_ASK_FIRST": "true", "KITH_HOME": str(home),
                     "KITH_NET_PAIR_DISCOVERY": "false", **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self.paths = Paths.from_env({"KITH_HOME": str(home)}, home)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process id of the running node."""
        assert self._process is not None
        return self._process.pid

    def client(self, timeout_s: float = 120.0) -> NodeClient:
        """A client of this node's private socket."""
        return NodeClient(self.paths.socket, timeout_s)

    def start(self) -> None:
        """Start the process and wait until the node says it is ready. Raises CommandFailure."""
        _let_go(self._process)
        with (self.home / "output.log").open("ab") as output:
            self._process = subprocess.Popen(
                self._command, env=self._env, stdout=output, stderr=output, stdin=subprocess.PIPE
            )
        self.wait_for(lambda status: status["stage"] in ("ready", "locked"), f"{self.name} is ready", START_TIMEOUT_S)

    def status(self) -> dict[str, Any]:
        """The node's status view."""
        view: dict[str, Any] = self.client().get("/v1/status")
        return view

    def wait_for(self, condition: Any, what: str, timeout_s: float = 60.0) -> dict[str, Any]:
        """The first status for which condition(status) holds. Raises CommandFailure when it does not come in time."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self._process is not None and self._process.poll() is not None:
                raise CommandFailure(
                    f"{self.name} ended with exit code {self._process.returncode}",
                    hint=self._last_words(),
                )
            with contextlib.suppress(CommandFailure):
                status = self.status()
                if condition(status):
                    return status
            time.sleep(POLL_S)
        raise CommandFailure(f"gave up waiting until {what}", hint=self._last_words())

    def _last_words(self) -> str:
        """What it printed last: its folder may be gone when somebody reads this."""
        log = self.home / "output.log"
        said = log.read_text(errors="replace").strip()[-TAIL_CHARS:] if log.is_file() else ""
        return f"It said last: {said}" if said else f"See: {log}"

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int | None:
        """End the node by a signal, by force after STOP_TIMEOUT_S; its exit code, None when it does not run.

        Safe to call twice.
        """
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            _let_go(process)
            return None if process is None else process.returncode
        process.send_signal(how)
        try:
            return process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise CommandFailure(f"{self.name} did not stop within {STOP_TIMEOUT_S:.0f} seconds") from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(STOP_TIMEOUT_S)
            _let_go(process)


def _let_go(process: subprocess.Popen[bytes] | None) -> None:
    """Close our end of its standard input."""
    if process is not None and process.stdin is not None:
        process.stdin.close()
