"""Names that lead nowhere else, logs to their last line, exports that leave no half, counts that mean what they say."""

import contextlib
import itertools
import json
import os

import pytest
from click.testing import CliRunner

from node.cli import cmd_logs
from node.cli import main as cli
from node.cli.client import NodeClient, named
from node.cli.demo.nodes import DemoNode
from node.cli.failure import CommandFailure


def run(*arguments):
    return CliRunner().invoke(cli.kith, list(arguments))


def test_a_name_is_one_part_of_a_path(monkeypatch):
    told = []
    monkeypatch.setattr(NodeClient, "delete", lambda _, path: told.append(path) or {"forgotten": "bea"})
    for name in ("", " ", "bea/grant", "../queue"):      # a script's empty variable; another thing's place
        done = run("forget", name, "--yes")
        assert (type(done.exception), told) == (CommandFailure, [])
        assert done.exception.exit_code == 2
    assert run("forget", "bea?x=1%2f", "--yes").exit_code == 0
    assert told == ["/v1/peers/bea%3Fx%3D1%252f"]
    assert named("hf:owner/model", may_hold="/") == "hf%3Aowner/model"


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setenv("KITH_HOME", str(tmp_path))
    path = cmd_logs.Paths.from_env(os.environ, tmp_path).log_file
    path.parent.mkdir(parents=True)
    return path


def line(text):
    return json.dumps({"at": "t", "level": "info", "logger": "node", "text": text}) + "\n"


def test_no_lines_are_no_lines_and_damage_is_shown(log):
    log.write_bytes(line("one").encode() + b'{"text": "caf\xc3\n' + line("two").encode())
    assert run("logs", "-n", "0").output == ""
    assert run("logs", "-n", "1").output.split() == ["t", "info", "node:", "two"]
    shown = run("logs")
    assert shown.exit_code == 0
    assert len(shown.output.splitlines()) == 3
    assert run("logs", "-n", "-1").exit_code == 2


def test_a_log_that_cannot_be_read_says_so(log):
    assert isinstance(run("logs").exception, CommandFailure)
    log.mkdir()
    done = run("logs")
    assert isinstance(done.exception, CommandFailure)
    assert "cannot be read" in str(done.exception)


def test_following_misses_no_line_when_the_log_is_rotated(log, monkeypatch):
    log.write_text(line("before"))
    file = log.open(encoding="utf-8")
    file.read()

    def append(text):
        with log.open("a") as end:
            end.write(line(text))

    steps = iter([
        lambda: append("at the end of the old one"),
        lambda: log.rename(log.with_suffix(".1")),
        lambda: log.write_text(line("at the beginning of the new one")),
    ])
    monkeypatch.setattr(cmd_logs.time, "sleep", lambda _: next(steps)())
    with contextlib.closing(cmd_logs._follow(log, file)) as lines:
        seen = [json.loads(raw)["text"] for raw in itertools.islice(lines, 2)]
    assert seen == ["at the end of the old one", "at the beginning of the new one"]


def test_an_export_that_breaks_off_leaves_no_file(tmp_path, monkeypatch):
    pages = iter([{"peer_id": "12D3", "entries": [{"entry_id": 1}], "next": 1}])
    file = tmp_path / "ledger.jsonl"

    def get(*_, **__):
        page = next(pages, None)
        if page is None:
            raise CommandFailure("the node hung up")
        return page

    monkeypatch.setattr(NodeClient, "get", get)
    assert isinstance(run("ledger", "export", str(file)).exception, CommandFailure)
    assert not file.exists()
    assert isinstance(run("ledger", "export", str(file)).exception, CommandFailure)     # none from the beginning on
    assert not file.exists()
    whole = iter([{"peer_id": "12D3", "entries": [{"entry_id": 1}], "next": 1},
                  {"peer_id": "12D3", "entries": [{"entry_id": 2}], "next": None}])
    monkeypatch.setattr(NodeClient, "get", lambda *_, **__: next(whole))
    assert run("ledger", "export", str(file)).exit_code == 0
    assert [json.loads(one)["entry_id"] for one in file.read_text().splitlines()] == [1, 2]
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("arguments", [
    ["history", "--delete"], ["history", "--export", "x"], ["history", "last", "--delete", "--export", "x"],
    ["--timeout", "-1", "status"], ["--timeout", "0", "status"], ["search", "-n", "0", "boiler"],
    ["search", "-n", "101", "boiler"],
])
def test_what_makes_no_sense_is_a_usage_error(arguments, monkeypatch):
    monkeypatch.setattr(NodeClient, "_send", lambda *_: pytest.fail("the node was asked"))
    assert run(*arguments).exit_code == 2


def test_the_owners_own_settings_are_not_the_demonstrations(tmp_path, monkeypatch):
    monkeypatch.setenv("KITH_NET_PORT", "4242")
    monkeypatch.setenv("KITH_PASSPHRASE_FILE", "/nowhere")
    node = DemoNode("phone", tmp_path, env={"KITH_NODE_MODE": "lan"})
    given = {key for key in node._env if key.startswith("KITH_")}
    assert given == {"KITH_HOME", "KITH_PRIVACY_ASK_FIRST", "KITH_NET_PAIR_DISCOVERY", "KITH_NODE_MODE"}
