"""The reference pages say what the code says, and a stale one is noticed."""

import subprocess
import sys

from checkout import ROOT


def run(*arguments):
    return subprocess.run(
        [sys.executable, "scripts/reference.py", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120,
    )


def test_the_pages_are_fresh():
    done = run("--check")
    assert done.returncode == 0, done.stderr


def test_every_command_is_in_the_readme():
    from node.cli.main import COMMANDS

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"kith {name}" not in readme] == []
