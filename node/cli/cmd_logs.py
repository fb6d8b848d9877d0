"""kith logs: read the node's log file. Works without a running node."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import click

from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.printable import cell, json_safe
from node.paths import Paths

POLL_S = 0.3


def _line(raw: str) -> str:
    try:
        entry = json.loads(raw)
    except ValueError:
        return raw
    error = f"  ({entry['error']})" if "error" in entry else ""
    return f"{entry['at']}  {entry['level']:<7} {entry['logger']}: {entry['text']}{error}"


def _follow(path: Path) -> Iterator[str]:
    """New lines as they are written; goes on in the new file when the log is rotated."""
    with path.open(encoding="utf-8") as file:
        file.seek(0, os.SEEK_END)
        while True:
            if line := file.readline():
                yield line.rstrip("\n")
            elif not path.exists() or path.stat().st_ino != os.fstat(file.fileno()).st_ino:
                break
            else:
                time.sleep(POLL_S)
    yield from _follow(path)


@click.command("logs")
@click.option("-n", "--lines", default=50, show_default=True, help="How many lines from the end.")
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until Ctrl-C.")
@json_option
@click.pass_context
def command(ctx: click.Context, lines: int, follow: bool) -> None:
    """Read the node's log. It holds no personal text."""
    at = session(ctx)
    path = Paths.from_env(os.environ, Path.home()).log_file
    if not path.exists():
        raise CommandFailure("There is no log yet.", hint="Start the node with: kith up", code="no_log")
    with path.open(encoding="utf-8") as file:
        last = file.read().splitlines()[-lines:]
    for raw in last:
        print(json_safe(raw) if at.as_json else cell(_line(raw)))
    if follow:
        for raw in _follow(path):
            print(json_safe(raw) if at.as_json else cell(_line(raw)), flush=True)
