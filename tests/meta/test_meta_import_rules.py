"""The import rules hold, and each kind of rule fails when it is broken."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import PACKAGES, ROOT

# planted module -> (what it imports, the contract that must break)
PLANTED = {
    "protocol/planted_clock.py": ("import time", "protocol does no input or output and reads no clock"),
    "protocol/planted_layer.py": ("import offload.ports", "node above offload and search, protocol at the bottom"),
    "node/store/planted_layer.py": ("import node.agent.ports", "inside node, outer layers import inner ones"),
    "node/agent/planted_wire.py": ("import node.net", "only the privacy guard may send"),
    "node/identity/planted_libp2p.py": ("from libp2p import new_host", "only node.net imports libp2p"),
    "offload/planted_engine.py": ("import offload.engine", "only the engine's worker process imports the engine"),
    "offload/planted_llama.py": ("import llama_cpp", "only offload.engine imports llama_cpp"),
    "node/sources/planted_vectors.py": ("import search.vectors", "only the scan worker imports the static vectors"),
    "search/planted_words.py": ("import wordllama", "only search.vectors imports wordllama"),
    "node/agent/planted_rows.py": ("import sqlcipher3", "only node.store imports a database driver"),
    "search/planted_rows.py": ("import sqlite3", "nothing is stored in a database that is not encrypted"),
    "node/sources/planted_socket.py": ("import socket", "sockets and HTTP are opened by named connectors only"),
    "node/mail/planted_server.py": ("from starlette.applications import Starlette", "only node.api serves HTTP"),
    "node/agent/planted_program.py": (
        "import subprocess",
        "programs are started by the supervisor and the command line only",
    ),
    "node/scan/planted_c.py": ("import ctypes", "C is called from boxed processes and their box only"),
    "node/agent/planted_http.py": ("import httpx", "no HTTP library, no second event loop"),
    "node/cli/planted_heavy.py": ("import node.planted_middle", "the command line never loads the node"),
    "offload/child/planted_owner.py": ("import offload.ports", "the box knows nothing of what runs in it"),
}
# an innocent module between the command line and trio: the rule must see through it
MIDDLE = "node/planted_middle.py"
VERDICT = re.compile(r"^(.+?) (KEPT|BROKEN)(?: \(.*\))?$", re.MULTILINE)


def copy_of_the_tree(target: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, target / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".importlinter", target)


def verdicts(tree: Path) -> tuple[dict[str, str], str]:
    script = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-P", "-c", script, "--no-cache", "--no-logo"]
    environment = {**os.environ, "PYTHONPATH": str(tree), "NO_COLOR": "1", "COLUMNS": "400"}
    result = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    found = dict(VERDICT.findall(result.stdout))
    assert found, result.stdout + result.stderr
    assert (result.returncode == 0) == ("BROKEN" not in found.values())
    return found, result.stdout


def test_the_rules_hold(tmp_path: Path) -> None:
    copy_of_the_tree(tmp_path)
    found, report = verdicts(tmp_path)
    assert [name for name, verdict in found.items() if verdict != "KEPT"] == [], report


@pytest.fixture(scope="module")
def broken_report(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], str]:
    tree = tmp_path_factory.mktemp("tree")
    copy_of_the_tree(tree)
    rules = tree / ".importlinter"
    rules.write_text(rules.read_text().replace("    errors\nexhaustive", "    errors : planted_middle\nexhaustive"))
    (tree / MIDDLE).write_text('"""Planted."""\nimport trio\n')
    for path, (line, _) in PLANTED.items():
        assert (tree / path).parent.is_dir(), f"{path}: no such folder"
        (tree / path).write_text(f'"""Planted."""\n{line}\n')
    return verdicts(tree)


@pytest.mark.parametrize(("path", "contract"), [(path, contract) for path, (_, contract) in PLANTED.items()])
def test_a_forbidden_import_breaks_its_rule(
    broken_report: tuple[dict[str, str], str], path: str, contract: str
) -> None:
    found, report = broken_report
    assert found[contract] == "BROKEN"
    assert path.removesuffix(".py").replace("/", ".") in report


def test_no_other_rule_breaks(broken_report: tuple[dict[str, str], str]) -> None:
    # a rule that fails for any reason at all would prove nothing above
    found, _ = broken_report
    cycle = "no import cycles among siblings"  # the import against the layers closes one as well
    expected = {name for _, name in PLANTED.values()} | {cycle}
    assert {name for name, verdict in found.items() if verdict == "BROKEN"} == expected


def test_a_module_outside_the_layers_is_noticed(tmp_path: Path) -> None:
    copy_of_the_tree(tmp_path)
    (tmp_path / "node" / "planted_anywhere.py").write_text('"""Planted."""\n')
    found, report = verdicts(tmp_path)
    assert found["inside node, outer layers import inner ones"] == "BROKEN"
    assert "planted_anywhere" in report


# ---- what packages' names cannot tell: single modules and functions, banned by ruff


def findings(source: str, path: str) -> str:
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "concise"]
    result = subprocess.run(
        [*command, "--stdin-filename", path, "-"],
        input=f'"""Planted."""\n\n{source}\n',
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return "\n".join(line for line in result.stdout.splitlines() if "TID251" in line)


BANNED = [
    "import urllib.request",
    "from http.client import HTTPConnection",
    "import http.server",
    "import trio\n\ntrio.socket.socket()",
    "import trio\n\nserve = trio.serve_tcp",
    "from trio import open_tcp_stream",
    "import trio\n\nrun = trio.run_process",
    "import importlib\n\nnet = importlib.import_module('node.net')",
]


@pytest.mark.parametrize("source", BANNED)
def test_ways_round_the_import_rules_are_banned(source: str) -> None:
    assert findings(source, "node/agent/planted.py") != ""


def test_named_connectors_may_and_innocent_code_may() -> None:
    assert findings("import trio\n\nserve = trio.serve_tcp", "node/net/planted.py") == ""
    assert findings("from urllib.parse import quote\n\nquote('a b')", "node/agent/planted.py") == ""
