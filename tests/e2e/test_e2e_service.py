"""A home node as a service: what the unit starts is a node, ready means a token, and stopping lets answers end.

The unit's own command is run as systemd would run it: with its variables, its umask and no new privileges, no terminal.
"""

import contextlib
import http.client
import json
import os
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from embedded_model import models_folder
from running_nodes import Household, cli, household, until

from node.cli.client import NodeClient
from node.cli.demo.nodes import DemoNode
from node.cli.demo.owner import Event
from node.cli.failure import CommandFailure
from node.cli.service_unit import find_kith, unit_text
from node.paths import Paths

pytestmark = [pytest.mark.e2e, pytest.mark.model]

LONG = "Explain how a sailing boat works in detail"
SHORT = "Explain in one sentence what salt is"


def look(path: Path, target: str) -> tuple[int, dict[str, Any]]:
    """HTTP status and reply of one GET on a node's socket."""
    connection = http.client.HTTPConnection("kith", timeout=120)
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.settimeout(120)
        connection.sock.connect(str(path))
        connection.request("GET", target)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


# ------------------------------------------------------------ the unit's command

@pytest.fixture
def home() -> Iterator[Path]:
    root = Path(tempfile.mkdtemp(prefix="kith-", dir="/tmp"))
    yield root
    shutil.rmtree(root, ignore_errors=True)


def test_what_the_unit_starts_is_a_node_that_becomes_ready_and_stops_in_order(home: Path) -> None:
    models = models_folder()
    lines = unit_text(find_kith(), {"KITH_HOME": str(home)}).splitlines()
    command = shlex.split(next(line for line in lines if line.startswith("ExecStart=")).removeprefix("ExecStart="))
    given = dict(
        shlex.split(line.removeprefix("Environment="))[0].split("=", 1)
        for line in lines if line.startswith("Environment=")
    )
    assert given == {"KITH_HOME": str(home)}
    given |= {"KITH_MODE": "lan", "KITH_MODELS_FOLDERS": str(models), "PATH": "/usr/bin:/bin", "HOME": str(home)}
    if shutil.which("setpriv"):
        command = ["setpriv", "--no-new-privs", *command]
    output = home / "output"
    with output.open("wb") as out:
        process = subprocess.Popen(
            command, env={**given, "LANG": "C.UTF-8"}, stdin=subprocess.DEVNULL, stdout=out, stderr=out, umask=0o077,
            start_new_session=True,
        )
    paths = Paths.from_env({"KITH_HOME": str(home)}, home)
    try:
        status, view = until(lambda: _settled(paths.socket, process), "the service's node is up")
        assert (status, view["state"], view["ready"]) == (503, "untried", False), view
        status, view = look(paths.socket, "/v1/health?probe=1")
        assert (status, view["state"], view["ready"]) == (200, "ready", True), view
        assert view["last_token_age_s"] >= 0
        assert look(paths.socket, "/v1/health")[0] == 200
        figures = NodeClient(paths.socket).text("/metrics").splitlines()
        assert {"kith_ready 1.0", 'kith_mode{mode="lan"} 1.0', "kith_engine_restarts_total 0.0"} <= set(figures)
        checks = NodeClient(paths.socket).get("/v1/doctor")["checks"]
        box = next(check for check in checks if check["name"] == "engine box")
        assert box["state"] == "ok", box  # under no_new_privs as well
        for path in (paths.data_dir, paths.database, paths.identity_file):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert not paths.socket.exists()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
        print(output.read_text())


def _settled(path: Path, process: subprocess.Popen[bytes]) -> tuple[int, dict[str, Any]] | None:
    assert process.poll() is None, "the service ended"
    status, view = look(path, "/v1/health")
    return None if view["state"] == "starting" else (status, view)


# ------------------------------------------------------------ stopping in the middle of answers

@pytest.fixture(scope="module")
def both() -> Iterator[Household]:
    models_folder()
    with household() as running:
        yield running


@pytest.fixture
def house(both: Household) -> Iterator[Household]:
    """Two paired nodes; tests leave the home PC stopped."""
    yield both
    cli(both.home_pc, "config", "set", "node.drain_s", "20")
    both.home_pc.stop()
    both.start(both.home_pc)
    both.wait_connected()


class Asking:
    """An answer that streams in a thread."""

    def __init__(self, house: Household) -> None:
        self.owner = house.owner
        self.flowing = threading.Event()
        self.answer: Event | None = None
        self.failure: CommandFailure | None = None
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()
        assert self.flowing.wait(60)

    def _follow(self) -> None:
        try:
            for event in self.owner.follow(LONG):
                if event["event"] == "delta":
                    self.flowing.set()
                if event["event"] == "answer":
                    self.answer = event
        except CommandFailure as failure:
            self.failure = failure
            self.flowing.set()

    def end(self) -> Event:
        self.thread.join(90)
        assert self.failure is None
        assert self.answer is not None
        text = "".join(event["text"] for event in self.owner.events if event["event"] == "delta")
        assert text == self.answer["text"]
        return self.answer


def log_of(node: DemoNode) -> str:
    return node.paths.log_file.read_text()


@contextlib.contextmanager
def stopping(node: DemoNode, how: signal.Signals) -> Iterator[list[int | None]]:
    """The node is told to stop; its exit code comes in the list."""
    ended: list[int | None] = []
    thread = threading.Thread(target=lambda: ended.append(node.stop(how)), daemon=True)
    thread.start()
    yield ended
    thread.join(60)
    assert ended == [0]


def test_sigterm_lets_a_peers_answer_end_and_refuses_new_ones(house: Household) -> None:
    asking = Asking(house)
    with stopping(house.home_pc, signal.SIGTERM):
        until(lambda: look(house.home_pc.paths.socket, "/v1/health")[1]["state"] == "stopping", "it is stopping")
        # a new request goes elsewhere, and says why
        other = house.owner.ask(SHORT)
        assert other["ran_on"] == "phone"
        assert "offers no model" in other["reason"] or "shutting down" in other["reason"]
    answer = asking.end()
    assert answer["ran_on"] == "home-pc"
    assert "mid-answer" not in answer["reason"]
    assert "broken off" not in log_of(house.home_pc)


def test_ctrl_c_is_in_a_hurry_and_the_reader_still_gets_the_whole(house: Household) -> None:
    """The control of the drain: an answer that is broken off goes on at the asker's, which is told why."""
    asking = Asking(house)
    with stopping(house.home_pc, signal.SIGINT):
        pass
    answer = asking.end()
    assert "home-pc stopped in mid-answer (it is shutting down)" in answer["reason"]


def test_the_drain_is_bounded_by_its_setting(house: Household) -> None:
    house.home_pc.stop()
    assert cli(house.home_pc, "config", "set", "node.drain_s", "0").returncode == 0
    house.start(house.home_pc)
    house.wait_connected()
    asking = Asking(house)
    begun_s = time.monotonic()
    with stopping(house.home_pc, signal.SIGTERM):
        pass
    assert time.monotonic() - begun_s < 30
    assert "home-pc stopped in mid-answer (it is shutting down)" in asking.end()["reason"]
    assert "broke off 1 answer for peers" in log_of(house.home_pc)


def test_a_second_signal_ends_the_wait(house: Household) -> None:
    asking = Asking(house)
    pid = house.home_pc.pid
    with stopping(house.home_pc, signal.SIGTERM):
        until(lambda: look(house.home_pc.paths.socket, "/v1/health")[1]["state"] == "stopping", "it is stopping")
        os.kill(pid, signal.SIGTERM)
    assert "(it is shutting down)" in asking.end()["reason"]
