"""Two real nodes in processes of their own, for tests: started, paired, killed, looked at. Loopback only.

Built from the parts of the demonstration, so that tests and demonstration start, pair and ask nodes in the same way.
Folders are short and below /tmp: a Unix socket's path may have 107 bytes. Must not know what is tested.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import psutil

from node.cli.demo.nodes import DAEMON, DemoNode
from node.cli.demo.owner import Event, Owner, pair_two
from node.cli.demo.world import World, make_world
from node.cli.failure import CommandFailure
from node.daemon.composition import DEMO_MARK

__all__ = [
    "FULL", "Household", "cli", "composed", "failing", "household", "kill", "peer_of", "rounds", "until", "workers_of",
]

FULL = os.environ.get("KITH_SOAK") == "full"
"""The long runs in full; a seeded part of them otherwise."""
WAIT_S = 120.0         # only a hang takes so long; a busy machine may take half of it
POLL_S = 0.05
LOG_TAIL_BYTES = 4000
_SUPPORT = Path(__file__).parent

T = TypeVar("T")


def rounds(full: int, part: int) -> int:
    """How many rounds to run: all with KITH_SOAK=full, `part` of them otherwise."""
    return full if FULL else part


def composed(script: str, *arguments: str) -> tuple[str, ...]:
    """The command of a daemon that a script beside this file composes."""
    return (sys.executable, "-P", str(_SUPPORT / script), *arguments)


def until(look: Callable[[], T | None], what: str, timeout_s: float = WAIT_S) -> T:
    """The first thing that look() finds; a node that does not answer counts as nothing found yet."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        with contextlib.suppress(CommandFailure, OSError):
            found = look()
            if found is not None and found is not False:
                return found
        time.sleep(POLL_S)
    raise AssertionError(f"gave up waiting until {what}")


@dataclass
class Household:
    """The two nodes of one test, and the owner of the phone."""

    world: World
    phone: DemoNode
    home_pc: DemoNode

    @property
    def nodes(self) -> tuple[DemoNode, DemoNode]:
        """Phone and home PC."""
        return self.phone, self.home_pc

    @property
    def owner(self) -> Owner:
        """A fresh owner of the phone, who says yes to what shows no planted value."""
        return Owner(self.phone.client())

    def start(self, *nodes: DemoNode) -> None:
        """Start the given nodes, both when none is given, at the same time."""
        failures: list[Exception] = []

        def start(node: DemoNode) -> None:
            try:
                node.start()
            except CommandFailure as failure:
                failures.append(failure)

        threads = [threading.Thread(target=start, args=(node,), daemon=True) for node in nodes or self.nodes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * WAIT_S)
        if failures:
            self.print_logs()
        assert not failures, [(str(failure), getattr(failure, "hint", "")) for failure in failures]

    def print_logs(self) -> None:
        """The ends of both nodes' logs, for a test that failed."""
        for node in self.nodes:
            for log in (node.home / "output.log", node.home / "state" / "kith.log"):
                if log.is_file():
                    print(f"--- end of {log}\n{log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors='replace')}")

    def pair(self) -> tuple[Event, Event, list[str]]:
        """Pair by spoken code and wait until both see each other."""
        result = pair_two(self.home_pc.client(), self.phone.client())
        self.wait_connected()
        return result

    def wait_connected(self) -> None:
        """Wait until each sees the other."""
        for node in self.nodes:
            node.wait_for(_sees_a_peer, f"{node.name} sees its peer", WAIT_S)

    def wait_apart(self, node: DemoNode) -> None:
        """Wait until node sees no peer."""
        node.wait_for(lambda status: not _sees_a_peer(status), f"{node.name} sees nobody", WAIT_S)

    def kill(self, *nodes: DemoNode) -> None:
        """kill -9."""
        for node in nodes:
            kill(node)

    def stop(self) -> None:
        """Stop both in order."""
        for node in self.nodes:
            node.stop()

    def check_data(self) -> None:
        """Both databases are sound, page by page, and both ledgers verify."""
        for node in self.nodes:
            report = node.client().post("/v1/ledger/verify")
            assert report["ok"], (node.name, report)
            states = {check["name"]: check["state"] for check in node.client().get("/v1/doctor")["checks"]}
            assert (states["database"], states["ledger"]) == ("ok", "ok"), (node.name, states)


def _sees_a_peer(status: dict[str, Any]) -> bool:
    return any(peer["connected"] for peer in status["peers"])


def peer_of(node: DemoNode) -> dict[str, Any]:
    """The node's only peer as its status shows it."""
    (peer,) = node.status()["peers"]
    assert isinstance(peer, dict)
    return peer


def workers_of(node: DemoNode) -> list[psutil.Process]:
    """The node's child processes that serve a model."""
    found = []
    for child in psutil.Process(node.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "offload.worker" in child.cmdline():
                found.append(child)
    return found


def kill(node: DemoNode) -> None:
    """kill -9 of the node's process; back when it and its children are gone."""
    process = psutil.Process(node.pid)
    children = process.children(recursive=True)
    assert node.stop(signal.SIGKILL) == -signal.SIGKILL
    _, alive = psutil.wait_procs(children, timeout=WAIT_S)
    assert not alive, f"children outlive their node: {alive}"


def cli(node: DemoNode, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A finished `kith` command against this node; it has no terminal and no standard input."""
    return subprocess.run(
        [sys.executable, "-P", "-c", "from node.cli.main import main; main()", *arguments],
        env={**os.environ, "KITH_HOME": str(node.home)}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=2 * WAIT_S, check=False,
    )


def failing(call: Callable[[], Any]) -> CommandFailure:
    """The failure that call() must end in."""
    try:
        result = call()
    except CommandFailure as failure:
        return failure
    raise AssertionError(f"this should have failed and gave {result!r}")


@contextlib.contextmanager
def household(
    *, phone: Sequence[str] = DAEMON, home_pc: Sequence[str] = DAEMON, started: bool = True, paired: bool = True
) -> Iterator[Household]:
    """A fresh household; phone and home_pc are the commands that start the nodes. Folders are removed afterwards.

    When the test fails the ends of the nodes' logs are printed.
    """
    root = Path(tempfile.mkdtemp(prefix="kith-", dir="/tmp"))
    world = make_world(root, datetime.now(ZoneInfo("Europe/London")))
    for home in (world.phone, world.home_pc):
        (home / "data").mkdir(mode=0o700)
        (home / "data" / DEMO_MARK).touch()
    try:
        with DemoNode("phone", world.phone, phone) as one, DemoNode("home-pc", world.home_pc, home_pc) as other:
            house = Household(world, one, other)
            try:
                if started:
                    house.start()
                    if paired:
                        house.pair()
                yield house
            except BaseException:
                house.print_logs()
                raise
    finally:
        shutil.rmtree(root, ignore_errors=True)

