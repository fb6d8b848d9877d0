"""The commands that the documents print exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkout import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
WIRE_LABELS = ROOT / "docs" / "reference" / "protocols.md"  # its code spans hold labels such as "kith grant 1"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(?:sh|console)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


def commands(document: Path) -> list[str]:
    """Returns each line of a fenced shell block, and each code span, of a document."""
    text = document.read_text(encoding="utf-8")
    fenced = [line.strip().removeprefix("$ ") for block in FENCE.findall(text) for line in block.splitlines()]
    return [*fenced, *([] if document == WIRE_LABELS else SPAN.findall(FENCE.sub("", text)))]


def named(document: Path, pattern: str) -> set[str]:
    return {match[1] for command in commands(document) if (match := re.match(pattern, command))}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_in_documents_exist(document: Path) -> None:
    assert named(document, r"make ([a-z]+)\b") <= TARGETS


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_in_documents_exist(document: Path) -> None:
    named_scripts = named(document, r"(?:sh |bash |\./)?(scripts/[\w./-]+|\.ci/run)")
    assert [name for name in named_scripts if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_kith_commands_in_documents_exist(document: Path) -> None:
    from node.cli.main import COMMANDS

    assert named(document, r"(?:\.venv/bin/)?kith ([a-z]+)\b") <= set(COMMANDS)


def test_every_kith_command_is_documented() -> None:
    from node.cli.main import COMMANDS

    documented = set().union(*(named(document, r"(?:\.venv/bin/)?kith ([a-z]+)\b") for document in DOCUMENTS))
    assert set(COMMANDS) - documented == set()


def test_the_quick_start_is_two_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {"make demo", "make test"} <= set(commands(ROOT / "README.md"))
    assert readme.index("make demo") < readme.index("make test")


@pytest.mark.parametrize("target", ["demo", "test", "check", "soak", "install", "help"])
def test_promised_targets_are_there(target: str) -> None:
    assert target in TARGETS


@pytest.mark.parametrize("target", ["demo", "install"])
def test_running_needs_no_test_tools(target: str) -> None:
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert recipe is not None
    assert "scripts/install" in recipe[1]
    assert "--dev" not in recipe[1]
