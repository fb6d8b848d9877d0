"""kith service: the unit is sound, shown first, and written only after a yes; systemd is asked in its own words.

A stand-in for systemctl on PATH notes what it is told. Whether the unit runs a node is tested with real processes
elsewhere.
"""

import contextlib
import json
import os
import pty
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typing_owner import type_answers

from node.cli.failure import CommandFailure
from node.cli.service_unit import find_kith, systemctl, unit_path, unit_text
from node.paths import Paths

COMMAND = [sys.executable, "-P", "-c", "from node.cli.main import main; main()", "service"]
FAKE = """#!/bin/sh
echo "$(basename "$0") $*" >> "$FAKE_LOG"
case "$*" in *is-active*) echo active; exit ${ACTIVE_CODE:-0} ;; *is-enabled*) echo enabled ;; esac
exit ${FAKE_CODE:-0}
"""


class Machine:
    """A home with systemd's commands played."""

    def __init__(self, root: Path) -> None:
        self.root, self.log = root, root / "log"
        self.unit = root / "config" / "systemd" / "user" / "kith.service"
        tools = root / "bin"
        tools.mkdir()
        for name in ("systemctl", "loginctl"):
            (tools / name).write_text(FAKE)
            (tools / name).chmod(0o755)
        self.env = {
            **os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "FAKE_LOG": str(self.log),
            "XDG_CONFIG_HOME": str(root / "config"), "KITH_HOME": str(root / "kith home"),
        }

    def run(self, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments], env={**self.env, **extra}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60, check=False,
        )

    def typed(self, answers: str, *arguments: str) -> tuple[int, str]:
        """The exit code and output of a command on a terminal on which `answers` are typed."""
        controller, terminal = pty.openpty()
        with subprocess.Popen(
            [*COMMAND, *arguments], env=self.env, stdin=terminal, stderr=terminal, stdout=subprocess.PIPE, text=True
        ) as process:
            os.close(terminal)
            type_answers(controller, answers)
            out, _ = process.communicate(timeout=60)
        os.close(controller)
        return process.returncode, out

    def told(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


ENABLED = [
    "systemctl --user daemon-reload", "systemctl --user enable kith.service", "systemctl --user restart kith.service",
]


def test_without_a_terminal_it_is_shown_and_nothing_is_done(machine: Machine) -> None:
    done = machine.run("install")
    assert done.returncode == 4
    assert "ExecStart=" in done.stdout
    assert "nothing was written" in done.stderr
    assert not machine.unit.exists()
    assert machine.told() == []


def test_print_only_prints(machine: Machine) -> None:
    done = machine.run("install", "--print", "--yes")
    assert (done.returncode, machine.unit.exists(), machine.told()) == (0, False, [])
    assert done.stdout.rstrip() == unit_text(find_kith(), machine.env).rstrip()


def test_yes_writes_enables_and_starts(machine: Machine) -> None:
    done = machine.run("install", "--yes", "--json")
    view = json.loads(done.stdout)
    assert (view["written"], view["enabled"], view["linger"]) == (True, True, False)
    assert machine.unit.read_text() == view["unit"]
    assert machine.told() == ENABLED
    again = machine.run("install", "--yes", "--linger")
    assert again.returncode == 0
    assert machine.told() == [*ENABLED, *ENABLED, "loginctl enable-linger"]


@contextlib.contextmanager
def answering(path: Path) -> Iterator[None]:
    """Something that answers like a node on its socket, once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    body = b'{"state": "ready", "ready": true, "detail": ""}'
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            with listener.accept()[0] as one:
                one.recv(4096)
                one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        thread.join(10)


@pytest.mark.parametrize(("active", "code"), [("3", 1), ("0", 0)])
def test_a_node_that_runs_by_hand_is_not_fought_with(active: str, code: int) -> None:
    root = Path(tempfile.mkdtemp(prefix="kith-", dir="/tmp"))  # a socket's path is short
    try:
        machine = Machine(root)
        with answering(Paths.from_env(machine.env, root).socket):
            done = machine.run("install", "--yes", ACTIVE_CODE=active)
        assert done.returncode == code, done.stderr
        assert ("kith down" in done.stderr) is (code == 1)
        assert machine.told()[1:] == ([] if code else ENABLED)
    finally:
        shutil.rmtree(root, ignore_errors=True)


@pytest.mark.parametrize(("answers", "code", "written", "told"), [
    ("n\n", 4, False, []),
    ("\n", 4, False, []),
    ("y\nn\n", 0, True, []),
    ("y\ny\nn\n", 0, True, ENABLED),
    ("y\ny\nyes\n", 0, True, [*ENABLED, "loginctl enable-linger"]),
])
def test_each_step_is_asked_for(
    machine: Machine, answers: str, code: int, written: bool, told: list[str]
) -> None:
    returned, out = machine.typed(answers, "install")
    assert (returned, machine.unit.exists(), machine.told()) == (code, written, told)
    assert out.startswith("[Unit]")  # shown before anything is asked


def test_a_systemd_that_refuses_is_told_with_what_to_do(machine: Machine) -> None:
    done = machine.run("install", "--yes", FAKE_CODE="1")
    assert done.returncode == 1
    assert "systemctl --user enable --now kith" in done.stderr
    assert machine.unit.exists()


def test_status_says_what_is_missing(machine: Machine) -> None:
    absent = machine.run("status", "--json")
    assert (absent.returncode, json.loads(absent.stdout)["unit"]) == (1, "absent")
    machine.run("install", "--yes", "--no-start")
    view = json.loads(machine.run("status", "--json").stdout)
    assert (view["unit"], view["active"], view["enabled"]) == ("current", "active", "enabled")
    assert view["node"] == {"state": "not running", "ready": False, "detail": ""}
    machine.unit.write_text("[Service]\nExecStart=/bin/true\n")
    assert "differs" in machine.run("status").stdout


def test_remove_stops_it_and_deletes_the_unit(machine: Machine) -> None:
    machine.run("install", "--yes", "--no-start")
    refused = machine.run("remove")
    assert (refused.returncode, machine.unit.exists(), machine.told()) == (4, True, [])
    done = machine.run("remove", "--yes")
    assert (done.returncode, machine.unit.exists()) == (0, False)
    assert machine.told() == ["systemctl --user disable --now kith.service", "systemctl --user daemon-reload"]
    assert machine.run("remove", "--yes").returncode == 0  # nothing there: nothing to do


def test_the_unit_runs_this_environments_kith_and_passes_the_home_on() -> None:
    text = unit_text(Path("/opt/a b/100%/kith"), {"KITH_HOME": "/srv/it's \"here\" $x", "OTHER": "no"})
    lines = text.splitlines()
    assert 'ExecStart="/opt/a b/100%%/kith" up' in lines
    assert 'Environment="KITH_HOME=/srv/it\'s \\"here\\" $x"' in lines
    assert "OTHER" not in text
    for wrong in (Path("/opt/$x/kith"), Path("/opt/a\nb/kith")):
        with pytest.raises(CommandFailure):
            unit_text(wrong, {})
    assert unit_path("kith", {}, Path("/home/x")) == Path("/home/x/.config/systemd/user/kith.service")


def test_a_memory_limit_stands_in_the_unit_only_when_one_is_set(machine: Machine) -> None:
    assert "MemoryMax" not in machine.run("install", "--print").stdout
    limited = machine.run("install", "--print", KITH_NODE_MEMORY_MAX_MB="6000").stdout
    assert "MemoryMax=6000M" in limited.splitlines()


def test_a_machine_without_systemd_is_no_crash() -> None:
    outcome = systemctl("x", program="no-such-program-here")
    assert (outcome.done, outcome.code) == (False, None)
    assert "not on this machine" in outcome.text


# ------------------------------------------------------------ systemd's own word

def verify(text: str, root: Path) -> tuple[int, str]:
    """What systemd-analyze says of a unit. It needs a runtime folder, and no bus."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not on this machine")
    unit, runtime = root / "kith.service", root / "runtime"
    unit.write_text(text)
    runtime.mkdir(mode=stat.S_IRWXU, exist_ok=True)
    done = subprocess.run(
        ["systemd-analyze", "--user", "--man=no", "verify", str(unit)], capture_output=True, text=True, timeout=60,
        check=False, env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), "LC_ALL": "C"},
    )
    if "Failed to initialize manager" in done.stderr:
        pytest.skip(f"systemd-analyze does not work here: {done.stderr.strip()}")
    return done.returncode, done.stderr


@pytest.mark.parametrize("home", ["/tmp/kith", "/tmp/with space/100% $x \"quoted\""])
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path, home: str) -> None:
    assert verify(unit_text(find_kith(), {"KITH_HOME": home}), tmp_path) == (0, "")


@pytest.mark.parametrize(("was", "becomes"), [
    ("Type=exec", "Type=exec2"), ("KillMode=mixed", "KillMod=mixed"), ("ExecStart=\"", "ExecStart=\"/nowhere"),
])
def test_systemd_finds_a_fault_when_there_is_one(tmp_path: Path, was: str, becomes: str) -> None:
    """Negative control of the check above."""
    text = unit_text(find_kith(), {})
    assert was in text
    assert verify(text.replace(was, becomes), tmp_path) != (0, "")


def test_the_hardening_is_what_the_boxed_workers_can_live_with() -> None:
    settings = dict(line.split("=", 1) for line in unit_text(find_kith(), {}).splitlines() if "=" in line)
    assert (settings["NoNewPrivileges"], settings["SystemCallArchitectures"], settings["UMask"]) == (
        "true", "native", "0077"
    )
    assert (settings["Restart"], settings["OOMPolicy"], settings["LimitCORE"]) == ("on-failure", "continue", "0")
    # these would keep the node from boxing its workers
    assert not {"RestrictNamespaces", "SystemCallFilter", "MemoryDenyWriteExecute", "PrivateUsers"} & set(settings)
    assert shlex.split(settings["ExecStart"])[1:] == ["up"]
