"""kith logs: read the node's log file. Works without a running node."""

import json
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click

from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import Session
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


def _print(raw: str, at: Session) -> None:
    print(json_safe(raw) if at.as_json else cell(_line(raw)), flush=True)


def _open(path: Path) -> TextIO:
    try:
        return path.open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise CommandFailure("There is no log yet.", hint="Start the node with: kith up", code="no_log") from None
    except OSError as error:
        raise CommandFailure(
            f"{path} cannot be read: {error.strerror}", hint=f"Check: ls -l {path}", code="storage") from None


def _follow(path: Path, file: TextIO) -> Iterator[str]:
    """Lines behind what was read of file, as they are written; when the log is rotated, those of the new file too.
    Closes the file."""
    while True:
        with file:
            while (line := file.readline()) or _is_still(path, file):
                if line:
                    yield line.rstrip("\n")
                else:
                    time.sleep(POLL_S)
            yield from (line.rstrip("\n") for line in file)     # written between the last look and the move
        while not path.exists():
            time.sleep(POLL_S)
        file = _open(path)


def _is_still(path: Path, file: TextIO) -> bool:
    try:
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False


@click.command("logs")
@click.option("-n", "--lines", default=50, show_default=True, type=click.IntRange(min=0),
              help="How many lines from the end.")
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until Ctrl-C.")
@json_option
@click.pass_context
def command(ctx: click.Context, lines: int, follow: bool) -> None:
    """Read the node's log. It holds no personal text."""
    at = session(ctx)
    path = Paths.from_env(os.environ, Path.home()).log_file
    with _open(path) as file:
        for raw in deque(file, maxlen=lines):
            _print(raw.rstrip("\n"), at)
        if follow:
            for raw in _follow(path, file):
                _print(raw, at)
