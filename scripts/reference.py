"""Writes the reference pages that come from the code itself: commands, settings, errors and the local API's routes.

    .venv/bin/python scripts/reference.py          write docs/reference/{cli,config,errors,api}.md
    .venv/bin/python scripts/reference.py --check  fail when a page differs from what the code says

A test runs --check, so nothing in these pages can go stale. Must not start anything.
"""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import node
import offload
import protocol
import search
from node.api.app import build_app
from node.api.questions import Questions
from node.api.services import Services
from node.cli.main import COMMANDS, kith
from node.config import Config, load
from node.errors import KithError

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
MADE = "This page is made by `scripts/reference.py` from the code."


def commands() -> str:
    """Every command with its --help."""
    parts = [
        "# Commands",
        "",
        MADE,
        "",
        "Exit codes: 0 ok, 1 failed, 2 usage, 3 node not running, 4 refused by policy, "
        "5 peer unreachable, 6 not paired or not trusted, 7 no model, 70 a bug or a foreign package.",
        "",
        "```",
        _help(kith, ["kith"]),
        "```",
    ]
    context = click.Context(kith, info_name="kith")
    for name in COMMANDS:
        command = kith.get_command(context, name)
        assert command is not None
        parts += ["", f"## kith {name}", "", "```", _help(command, ["kith", name]), "```"]
        if isinstance(command, click.Group):
            for child, sub in command.commands.items():
                parts += ["", f"### kith {name} {child}", "", "```", _help(sub, ["kith", name, child]), "```"]
    return "\n".join(parts) + "\n"


def _help(command: click.Command, names: list[str]) -> str:
    parent: click.Context | None = None
    for name in names[:-1]:
        parent = click.Context(kith, info_name=name, parent=parent)  # a parent's arguments would stand in the usage
    context = click.Context(command, info_name=names[-1], parent=parent, terminal_width=100, max_content_width=100)
    return command.get_help(context).rstrip()


def settings() -> str:
    """Every setting with its default and meaning."""
    config: Config = load(Path("/nonexistent/config.toml"), {})
    rows = [f"| `{line.key}` | `{_toml(line.value)}` | {line.words} |" for line in config.explain()]
    return "\n".join(
        [
            "# Settings",
            "",
            MADE,
            "",
            "A value comes from the built-in default, then `config.toml`, then a variable (`node.mode` is "
            "`KITH_NODE_MODE`), then a flag; the last one wins. `kith config explain` shows each value in force and "
            "where it came from.",
            "",
            "| setting | default | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{one}"' for one in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def errors() -> str:
    """Every error that a user can meet: code, text, next step."""
    found: dict[str, tuple[str, str]] = {}
    for error in _error_classes():
        text = " ".join((error.__doc__ or "").split()).replace("|", "\\|")
        found.setdefault(error.code, (text, error.hint.replace("|", "\\|")))
    rows = [f"| `{code}` | {text} | {hint} |" for code, (text, hint) in sorted(found.items())]
    return "\n".join(["# Errors", "", MADE, "", "| code | what it says | next step |", "|---|---|---|", *rows, ""])


def _error_classes() -> Iterator[Any]:
    for package in (node, protocol, offload, search):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.endswith(("errors", "failures")):
                loaded = importlib.import_module(module.name)  # noqa: TID251 - every error module, whatever it is called
                for value in vars(loaded).values():
                    if isinstance(value, type) and issubclass(value, Exception) and hasattr(value, "code"):
                        yield value
    yield KithError


def routes() -> str:
    """Every route of the local API."""
    app = build_app(Services(node=None), Questions(lambda: ""))  # type: ignore[arg-type]
    rows = [f"| `{next(iter(route.methods - {'HEAD'}))}` | `{route.path}` |" for route in app.routes]  # type: ignore[attr-defined]
    return "\n".join(
        [
            "# Local API",
            "",
            MADE,
            "",
            "HTTP over the node's Unix socket (mode 0600); the host name is `kith`. JSON in and out; every reply has "
            '`"schema": 1`. `/v1/ask` and `/v1/pair/*` answer with one JSON event a line; an event `question` is '
            'answered by `POST /v1/questions/{id}` with `{"allow": true}` or false before its deadline, and counts as '
            "no after it.",
            "",
            "| method | path |",
            "|---|---|",
            *rows,
            "",
        ]
    )


PAGES = {"cli.md": commands, "config.md": settings, "errors.md": errors, "api.md": routes}


def main() -> int:
    """Write the pages, or compare them."""
    checking = "--check" in sys.argv[1:]
    stale = []
    for name, make in PAGES.items():
        page, text = REFERENCE / name, make()
        if not checking:
            page.write_text(text, encoding="utf-8")
        elif not page.exists() or page.read_text(encoding="utf-8") != text:
            stale.append(name)
    if stale:
        print(f"stale: {', '.join(stale)}. Run: .venv/bin/python scripts/reference.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
