"""kith config: show, explain or change settings. Works without a running node."""

import os
from pathlib import Path
from typing import Any

import click

from node.cli.options import json_option, session
from node.cli.output import table
from node.config import load, set_value
from node.paths import Paths


def _file() -> Path:
    return Paths.from_env(os.environ, Path.home()).config_file


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@click.group("config")
def command() -> None:
    """Show, explain or change settings. Defaults < file < KITH_* < flags."""


@command.command("get")
@click.argument("key")
@json_option
@click.pass_context
def get(ctx: click.Context, key: str) -> None:
    """Print the value of KEY, such as node.mode."""
    at = session(ctx)
    value = load(_file(), os.environ).get(key)
    at.data(_text(value), {"key": key, "value": value})


@command.command("set")
@click.argument("key")
@click.argument("value")
@json_option
@click.pass_context
def set_(ctx: click.Context, key: str, value: str) -> None:
    """Write KEY = VALUE into the settings file. A running node reads it at its next start."""
    at = session(ctx)
    path = _file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = set_value(path, key, value)
    at.data(f"{key} = {_text(kept)}   ({path}); takes effect at the next: kith up", {"key": key, "value": kept})


@command.command("explain")
@click.argument("key", required=False)
@json_option
@click.pass_context
def explain(ctx: click.Context, key: str | None) -> None:
    """Every setting, or KEY: its value, where it came from, what it means."""
    at = session(ctx)
    config = load(_file(), os.environ)
    if key is not None:
        config.get(key)
    lines = [line for line in config.explain() if key in (None, line.key)]
    rows = [
        [line.key, _text(line.value) or '""', f"{line.origin.kind}: {line.origin.place}", line.words] for line in lines
    ]
    items = [
        {
            "key": line.key,
            "value": line.value,
            "origin": line.origin.kind,
            "place": line.origin.place,
            "words": line.words,
        }
        for line in lines
    ]
    at.data(table(rows, ["SETTING", "VALUE", "FROM", "MEANING"]), items)
