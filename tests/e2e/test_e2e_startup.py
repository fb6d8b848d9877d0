"""Starting a node: status answers while the network library is still being imported, one node per folder, own packages.

The first is shown twice: with the import held back until the test says go (nothing depends on time), and on the node
as it is.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pytest
from tapped_daemon import tapped

from node.cli.client import NodeClient
from node.cli.demo.nodes import DAEMON, DemoNode
from node.cli.demo.world import make_world
from node.cli.failure import CommandFailure, NotRunning
from node.daemon.composition import DEMO_MARK
from node.paths import Paths

pytestmark = pytest.mark.e2e

KITH = Path(sys.executable).parent / "kith"
DEADLINE_S = 60.0


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ks-") as folder:
        world = make_world(Path(folder), datetime.now(UTC))
        (world.phone / "data").mkdir(mode=0o700)
        (world.phone / "data" / DEMO_MARK).touch()
        yield world.phone


class Process:
    """A node that is not waited for."""

    def __init__(self, home: Path, command: Sequence[str] = DAEMON) -> None:
        self.home = home
        self.client = NodeClient(Paths.from_env({"KITH_HOME": str(home)}, home).socket, 30)
        with (home / "output.log").open("ab") as output:
            self.process = subprocess.Popen(command, env=environment(home), stdout=output, stderr=output)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(DEADLINE_S)

    def statuses(self) -> Iterator[dict[str, Any]]:
        """What status says, asked again and again from the first answer on."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, (self.home / "output.log").read_text()
            try:
                yield self.client.get("/v1/status")
            except NotRunning:
                time.sleep(0.01)
        raise CommandFailure("the node did not come up")

    def until(self, stage: str) -> list[str]:
        """The stages seen until this one, each once, in order."""
        seen: list[str] = []
        for status in self.statuses():
            if status["stage"] not in seen[-1:]:
                seen.append(status["stage"])
            if status["stage"] == stage:
                break
        return seen


def environment(home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "KITH_HOME": str(home), **more}


def run(home: Path, *command: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, env=environment(home, **more), capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        cwd=home,
    )


def test_status_answers_while_the_network_library_is_being_imported(home: Path) -> None:
    go = home.parent / f"{home.name}.go"
    with Process(home, tapped("--hold-network")) as node:
        try:
            assert node.until("starting network")[-1] == "starting network"
            for _ in range(20):     # nothing moves until the import may go on, and every call is answered
                assert node.client.get("/v1/status")["stage"] == "starting network"
            shown = run(home, str(KITH), "status")
            assert (shown.returncode, shown.stderr) == (0, "")
            assert "starting network" in shown.stdout
            assert node.client.get("/v1/ledger") == []     # what needs no network is served as well
        finally:
            go.touch()
        assert node.until("ready")[-1] == "ready"


def test_offline_said_during_the_import_is_offline_after_it(home: Path) -> None:
    """The switch waits for the import to end; then there is no listener, also for the one who asked to come back."""
    go = home.parent / f"{home.name}.go"
    with Process(home, tapped("--hold-network")) as node, ThreadPoolExecutor(2) as threads:
        node.until("starting network")
        off = threads.submit(node.client.put, "/v1/mode", {"mode": "offline"})
        while node.client.get("/v1/status")["mode"] != "offline":
            time.sleep(0.01)
        go.touch()
        assert off.result(DEADLINE_S)["to"] == "offline"
        status = node.client.get("/v1/status")
        assert (status["mode"], status["stage"], status["addresses"]) == ("offline", "ready", [])
        switches = [threads.submit(node.client.put, "/v1/mode", {"mode": mode}) for mode in ("lan", "offline", "lan")]
        assert all(switch.result(DEADLINE_S) for switch in switches)     # none of them hangs
        assert node.client.put("/v1/mode", {"mode": "lan"})["to"] == "lan"
        assert len(node.client.get("/v1/status")["addresses"]) == 1


def test_the_node_as_it_is_answers_before_it_is_ready_and_keeps_others_off_its_folder(home: Path) -> None:
    with Process(home) as node:
        seen = node.until("ready")
        assert "starting network" in seen
        before = node.client.get("/v1/status")
        second = run(home, *DAEMON)
        assert second.returncode == 1
        assert second.stderr.startswith(f"kith: Another kith (process {node.process.pid}) is already running on {home}")
        assert len(second.stderr.splitlines()) == 2     # what happened, and the next command
        assert "Traceback" not in second.stderr
        after = node.client.get("/v1/status")
        assert (after["peer_id"], after["stage"]) == (before["peer_id"], "ready")
    third = DemoNode("phone", home)     # the lock ended with its holder
    with third:
        third.start()


@pytest.mark.parametrize("name", ["protocol", "offload", "search"])
def test_a_foreign_package_of_our_name_is_told_apart(home: Path, name: str) -> None:
    foreign = home.parent / "foreign"
    (foreign / name).mkdir(parents=True)
    (foreign / name / "__init__.py").touch()
    found = run(home, *DAEMON, PYTHONPATH=str(foreign))
    assert found.returncode == 70
    assert f"Another package named '{name}' shadows kith's own: {foreign}" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_file_of_our_name_in_the_working_folder_shadows_nothing(home: Path) -> None:
    (home / "protocol.py").write_text("raise SystemExit('shadowed')")
    found = run(home, *DAEMON, "--help")
    assert (found.returncode, found.stderr) == (0, "")
    without_p = run(home, *(word for word in DAEMON if word != "-P"), "--help")     # the negative control
    assert without_p.returncode != 0
    assert "shadow" in without_p.stderr
