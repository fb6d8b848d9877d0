"""The command line as a user meets it: help loads nothing heavy, failures have exit codes and next steps, no
prompt without a terminal."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from node.cli import main as cli
from node.cli.output import table
from node.cli.prompts import draw_question

HEAVY = ("trio", "libp2p", "llama_cpp", "rich", "asyncio", "nacl", "node.daemon", "sqlcipher3", "numpy")


def run(*arguments, env=None, stdin=None):
    return subprocess.run(
        [sys.executable, "-P", "-c", "from node.cli.main import main; main()", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        input=stdin,
        timeout=60,
    )


def test_help_loads_none_of_the_heavy_packages():
    code = (
        "import sys\nfrom node.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
        f"print('LOADED', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "LOADED []"
    assert "kith ask" in done.stdout


def test_the_same_check_sees_a_heavy_import():
    """Negative control: with trio imported, the check above would fail."""
    code = f"import sys, trio\nprint('LOADED', [name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60)
    assert "'trio'" in done.stdout


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_every_command_has_help_and_a_line_in_the_list(name):
    runner = CliRunner()
    result = runner.invoke(cli.kith, [name, "--help"], obj=None)
    assert result.exit_code == 0, result.output
    assert "Usage: kith" in result.output and cli.COMMANDS[name]


def test_not_running_is_exit_3_with_the_next_step(tmp_path):
    done = run("status", env={"KITH_HOME": str(tmp_path)})
    assert done.returncode == 3
    assert done.stdout == "" and "kith is not running" in done.stderr and "kith up" in done.stderr


def test_not_running_as_json_is_one_object(tmp_path):
    done = run("status", "--json", env={"KITH_HOME": str(tmp_path)})
    assert done.returncode == 3
    assert json.loads(done.stdout) == {
        "schema": 1,
        "error": {
            "code": "not_running",
            "message": "kith is not running.",
            "hint": "Start it with: kith up",
            "exit_code": 3,
        },
    }


def test_a_typing_mistake_gets_a_suggestion_and_exit_2():
    done = run("stauts")
    assert done.returncode == 2 and "status" in done.stderr


def test_usage_errors_are_exit_2(tmp_path):
    assert run("ask", "--on", "x", "--local", "hello", env={"KITH_HOME": str(tmp_path)}, stdin="").returncode == 2
    assert run("mode", "everywhere").returncode == 2


def test_columns_are_aligned():
    assert table([["a", "bb"], ["ccc", "d"]], ["X", "Y"]) == "X    Y\na    bb\nccc  d"


def test_a_consent_question_shows_the_exact_text():
    shown = draw_question(
        {
            "kind": "consent",
            "peer": "home-pc",
            "why": "heavy work",
            "texts": ["Dear [PERSON_1],\nthanks"],
            "substitutions": 1,
            "nets": "Checked by: vault.",
        }
    )
    assert "  | Dear [PERSON_1],\n  | thanks" in shown and "home-pc" in shown and "Checked by: vault." in shown


def test_an_approval_shows_every_value_and_where_it_came_from():
    shown = draw_question(
        {
            "kind": "approval",
            "text": "Add an event",
            "values": [
                {"name": "start", "shown": "Tue 10:00", "source": 'your words: "tuesday at 10"', "alternatives": []},
                {"name": "title", "shown": "roof", "source": "your words", "alternatives": ["the roof"]},
            ],
        }
    )
    assert 'your words: "tuesday at 10"' in shown and "(or: the roof)" in shown


def test_completion_is_printed_for_bash():
    done = run("completion", "bash")
    assert done.returncode == 0 and "_kith_completion" in done.stdout
