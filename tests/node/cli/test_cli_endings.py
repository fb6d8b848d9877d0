"""How commands end: a node that dies in mid-answer, writes that failed, usage errors as JSON, questions before harm."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from node.cli import cmd_pair
from node.cli import main as cli
from node.cli.client import NodeClient
from node.cli.output import Session

HEAD = b"HTTP/1.1 200 OK\r\n"
DELTA = b'{"event": "delta", "text": "hello"}\n'
CHUNK = b"%x\r\n%s\r\n" % (len(DELTA), DELTA)
DYING = {
    "before the head": b"",
    "in the head": b"HTTP/1.1 2",
    "in the body": HEAD + b'Content-Length: 500\r\n\r\n{"name": "x',
    "in a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNK + b"40\r\n{\"ev",
    "between chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNK,
    "in a line": HEAD + b"\r\n" + DELTA + b'{"event": "de',
    "not json": HEAD + b"Content-Length: 4\r\n\r\noops",
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home whose socket answers one request with what was put into the list, then closes."""
    monkeypatch.setenv("KITH_HOME", str(tmp_path))
    (tmp_path / "run").mkdir()
    replies: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "run" / "node.sock"))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(replies[0])

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        yield replies
        server.join(10)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as leaving:
        cli.main(list(arguments))
    out = capsys.readouterr()
    return leaving.value.code, out.out, out.err


@pytest.mark.parametrize("command", [["ask", "hello"], ["status"]], ids=["stream", "call"])
@pytest.mark.parametrize("where", DYING)
def test_a_node_that_dies_is_a_failure_with_a_hint(home, capsys, monkeypatch, command, where):
    home.append(DYING[where])
    monkeypatch.setattr("node.cli.cmd_ask._read_stdin", list)
    code, _, err = run(capsys, *command)
    assert code in (1, 70) and "kith: the node" in err and len(err.strip().splitlines()) == 2
    assert "Traceback" not in err


def answer(**changes):
    return {"event": "answer", "kind": "done", "text": "x", "ran_on": "phone", "reason": "r", **changes}


@pytest.mark.parametrize(("events", "code"), [
    ([answer()], 0),
    ([answer(kind="stopped", text="The folder is full. Check free space.")], 1),
    ([{"event": "delta", "text": "half an ans"}, answer(kind="stopped", text="half an ans")], 0),
    ([answer(kind="denied")], 4),
], ids=["done", "a tool failed", "a model was cut", "denied"])
@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["text", "json"])
def test_exit_codes_of_ask(capsys, monkeypatch, events, code, as_json):
    monkeypatch.setattr(NodeClient, "stream", lambda *_: iter(events))
    monkeypatch.setattr("node.cli.cmd_ask._read_stdin", list)
    found, out, err = run(capsys, "ask", "hello", *as_json)
    assert found == code and (out + err).count("Check free space.") <= 1
    if as_json:
        assert json.loads(out)["kind"] == events[-1]["kind"]


@pytest.mark.parametrize(("terminal", "said"), [(False, "there was no terminal to ask you at"), (True, "you said no")])
def test_a_no_that_nobody_gave_is_not_put_into_the_owners_mouth(capsys, monkeypatch, terminal, said):
    monkeypatch.setattr(NodeClient, "stream", lambda *_: iter([answer(kind="denied")]))
    monkeypatch.setattr("node.cli.cmd_ask._read_stdin", list)
    monkeypatch.setattr(Session, "interactive", staticmethod(lambda: terminal))
    code, _, err = run(capsys, "ask", "hello")
    assert code == 4 and f"kith: not done: {said}" in err
    assert ("kith ask --dry-run" in err) is not terminal


@pytest.mark.parametrize("arguments", [
    ["ask", "caf\udce9"], ["send", "home\udcff", "hi"], ["share", "add", "/x\udc80"],
])
@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["text", "json"])
def test_an_argument_that_is_no_text_is_a_usage_error(capsys, arguments, as_json):
    code, out, err = run(capsys, *arguments, *as_json)
    assert code == 2 and "Traceback" not in err
    message = json.loads(out)["error"]["message"] if as_json else err
    assert "this argument is not valid UTF-8: " in message and "\\x" in message


@pytest.mark.parametrize("encoding", ["utf-8", "ascii:surrogateescape"])
def test_standard_input_that_is_no_text_is_a_usage_error(tmp_path, encoding):
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from node.cli.main import main; main()", "ask", "what is this"],
        input=b"caf\xe9", capture_output=True, timeout=60,
        env={**os.environ, "KITH_HOME": str(tmp_path), "PYTHONIOENCODING": encoding},
    )
    assert done.returncode == 2 and b"standard input is not UTF-8" in done.stderr and b"Traceback" not in done.stderr


def test_a_shared_folder_that_is_gone_is_named_with_the_next_command(capsys, monkeypatch):
    share = {"folder": "/home/ann/club notes", "peers": ["bea"], "documents": 0, "withheld": 0, "missing": True}
    monkeypatch.setattr(NodeClient, "get", lambda *_: [share])
    _, out, err = run(capsys, "share", "list")
    assert "no folder" in out and "kith share remove '/home/ann/club notes'" in err


@pytest.mark.parametrize("arguments", [["stauts", "--json"], ["mode", "everywhere", "--json"], ["--json", "ping"]])
def test_usage_errors_as_json(capsys, arguments):
    code, out, _ = run(capsys, *arguments)
    assert code == 2
    error = json.loads(out)["error"]
    assert error["code"] == "usage" and error["exit_code"] == 2 and "--help" in error["hint"]


def test_a_missing_file_gets_a_hint(capsys):
    code, _, err = run(capsys, "ask", "--file", "/nope", "hello")
    assert code == 2 and "No such file" in err and "Give the path" in err


def test_forget_without_a_terminal_needs_yes(monkeypatch):
    told = []
    monkeypatch.setattr(NodeClient, "delete", lambda _, path: told.append(path) or {"forgotten": "bea"})
    assert CliRunner().invoke(cli.kith, ["forget", "bea"]).exit_code != 0 and told == []
    assert CliRunner().invoke(cli.kith, ["forget", "bea", "--yes"]).exit_code == 0 and told == ["/v1/peers/bea"]


def test_export_replaces_nothing_unasked(tmp_path, monkeypatch):
    whole = {"conversation_id": "c", "created": "t", "label": "l", "turns": []}
    monkeypatch.setattr(NodeClient, "get", lambda *_: whole)
    file = tmp_path / "out.txt"
    file.write_text("mine")
    arguments = ["history", "last", "--export", str(file)]
    assert CliRunner().invoke(cli.kith, arguments).exit_code != 0 and file.read_text() == "mine"
    assert CliRunner().invoke(cli.kith, [*arguments, "--force"]).exit_code == 0
    assert file.read_text().startswith("conversation c") and file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(("left_s", "words"), [(599.98, "10 minutes"), (600, "10 minutes"), (30, "1 minute.")])
def test_the_time_that_a_code_lives_is_rounded_up(capsys, left_s, words):
    cmd_pair._draw_waiting({"code": "1-a", "link": "kith:x", "expires_s": left_s}, Session())
    assert words in capsys.readouterr().err


def test_an_empty_ledger_says_so(monkeypatch):
    monkeypatch.setattr(NodeClient, "post", lambda *_: {"ok": True, "entries": 0, "head": "", "problems": []})
    assert CliRunner().invoke(cli.kith, ["ledger", "verify"]).stdout == "no entries\n"


def test_doctor_looks_without_a_running_node(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("KITH_HOME", str(tmp_path))
    code, out, _ = run(capsys, "doctor", "--json")
    view = json.loads(out)
    states = {check["name"]: check["state"] for check in view["checks"]}
    assert code == 0 and set(view) == {"schema", "checks", "problems", "warnings"}
    assert {"node", "packages", "files", "clock", "settings", "lock"} <= set(states) and states["node"] == "warning"
    (tmp_path / "config").mkdir(mode=0o700)
    (tmp_path / "config" / "config.toml").write_text("what = [")
    code, out, _ = run(capsys, "doctor")
    assert code == 1 and "x  settings" in out and "x  files" in out and "kith is not running" in out


FAKE = """
import os, pathlib, signal, sys, time
from node.daemon import leash
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
if "--until-stdin-ends" in sys.argv:
    leash.hold()
folder = pathlib.Path(os.environ["KITH_HOME"])
(pathlib.Path(os.environ["PIDS"]) / str(os.getpid())).write_text(str(folder))
time.sleep(600)
"""
DEMO = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and what nohup starts with this one
from node.cli import cmd_demo, main
from node.cli.demo import nodes
play = cmd_demo.run_demo
cmd_demo.run_demo = lambda root, at: play(root, at, (sys.executable, "-c", os.environ["FAKE"]))
nodes.DemoNode.wait_for = lambda *_, **__: {"stage": "ready"}
cmd_demo.run_steps = lambda stage, report: __import__("time").sleep(600)
main.main(["demo"])
"""


@pytest.fixture
def short_folder():
    """A temporary folder whose path leaves room for a socket's."""
    with tempfile.TemporaryDirectory(prefix="k") as folder:
        yield Path(folder)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.parametrize(
    "how", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL], ids=lambda one: one.name)
def test_the_demo_takes_its_nodes_along(tmp_path, short_folder, how):
    pids, scratch = tmp_path / "pids", short_folder
    pids.mkdir()
    env = {**os.environ, "PIDS": str(pids), "TMPDIR": str(scratch), "FAKE": FAKE}
    with subprocess.Popen([sys.executable, "-P", "-c", DEMO], env=env, stderr=subprocess.PIPE, text=True) as demo:
        deadline = time.monotonic() + 120
        while len(list(pids.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        if demo.poll() is not None:
            raise AssertionError(demo.communicate()[1])
        children = [int(path.name) for path in pids.iterdir()]
        assert len(children) == 2 and all(map(alive, children))
        demo.send_signal(how)
        _, err = demo.communicate(timeout=120)
    while any(map(alive, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, children)) and demo.returncode != 0 and "Traceback" not in err
    assert bool(list(scratch.iterdir())) == (how is signal.SIGKILL)     # nobody was left to clear up


@pytest.mark.parametrize("command", [["status"], ["nosuch"], ["ask", "--nosuch"]])
def test_a_failure_that_nobody_reads_is_an_exit_code_and_no_stack_trace(tmp_path, command):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-c", "from node.cli.main import main; main()", *command, "--json"],
            stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False,
            env={**os.environ, "KITH_HOME": str(tmp_path)})
    finally:
        os.close(writing)
    assert ended.returncode == (3 if command == ["status"] else 2)
    assert ended.stderr == b""
