"""Every next step that a failure names is a command, with options, that exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from node.cli.main import COMMANDS, kith

ROOT = Path(__file__).parents[2]
PACKAGES = ("node", "offload", "search", "protocol")
COMMAND = re.compile(r"(?<!nstall )(?<!pgrade )\bkith ([a-z]+)((?: (?:--?[a-z][a-z-]*|[a-z]+))*)")


def hints() -> Iterator[tuple[str, str]]:
    """(place, text) of every text given as a hint: hint=..., a class's hint, and the field of a view or check."""
    for path in sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            value: ast.expr | None = None
            if isinstance(node, ast.keyword) and node.arg == "hint":
                value = node.value
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any("hint" in ast.unparse(target).lower() for target in targets):
                    value = node.value
            for part in ast.walk(value) if value is not None else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield f"{path.relative_to(ROOT)}:{part.lineno}", part.value


def wrong(text: str) -> list[str]:
    """What of the commands in a text is none."""
    found = []
    for match in COMMAND.finditer(text):
        if match[1] not in COMMANDS:
            found.append(match[0])
            continue
        command = kith.get_command(click.Context(kith), match[1])
        for word in match[2].split():
            if word.startswith("-"):
                assert command is not None
                known = {option for param in command.params for option in param.opts} | {"--help", "-h"}
                if word not in known:
                    found.append(match[0])
            elif isinstance(command, click.Group):
                inner = command.get_command(click.Context(command), word)
                if inner is None:
                    found.append(match[0])
                    break
                command = inner
            else:
                break       # what follows are words of the owner
    return found


def test_hints_name_commands_that_exist() -> None:
    listed = list(hints())
    assert sum("kith " in text for _, text in listed) > 100
    assert [(place, text) for place, text in listed if wrong(text)] == []


@pytest.mark.parametrize("text", ["See: kith ask --history", "Run: kith config edit", "Run: kith fix"])
def test_a_command_that_does_not_exist_is_noticed(text: str) -> None:
    """Negative control."""
    assert wrong(text)
