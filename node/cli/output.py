"""What a command prints: data to stdout, talk to stderr, one JSON object with "schema": 1 when asked for.

Whatever is printed goes through node.cli.printable. Colour only on a terminal and never with NO_COLOR or --no-color.
Must not know any command.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from node.cli.printable import cell, json_safe, printable
from node.cli.terminal import can_ask
from node.paths import Paths

if TYPE_CHECKING:
    from node.cli.client import NodeClient

__all__ = ["Session", "print_json", "table"]


@dataclass(slots=True)
class Session:
    """The options that every command shares, and its voice."""

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    colour: bool = True
    timeout_s: float = 300.0

    def client(self) -> "NodeClient":
        """A client of the node that belongs to this home."""
        from node.cli.client import NodeClient  # an HTTP library, which --help does without

        return NodeClient(Paths.from_env(os.environ, Path.home()).socket, self.timeout_s)

    def data(self, text: str, value: Any = None) -> None:
        """Print the command's result: text, or value as JSON."""
        if self.as_json:
            value = {"schema": 1, "items": value} if isinstance(value, list) else {"schema": 1, **(value or {})}
            print_json(value)
        elif text:
            print(printable(text))

    def say(self, text: str) -> None:
        """Print talk: progress, hints, where something ran."""
        if not self.quiet and not self.as_json:
            print(self.dim(printable(text)), file=sys.stderr, flush=True)

    def piece(self, text: str) -> None:
        """Print a piece of a streamed answer without a line end."""
        if not self.as_json:
            sys.stdout.write(printable(text))
            sys.stdout.flush()

    def dim(self, text: str) -> str:
        """Text set back, on a terminal that can."""
        plain = not self.colour or os.environ.get("NO_COLOR") or not sys.stderr.isatty()
        return text if plain else f"\x1b[2m{text}\x1b[0m"

    @staticmethod
    def interactive() -> bool:
        """True when someone can be asked."""
        return can_ask()


def print_json(value: Any) -> None:
    """Print value as one JSON object on one line."""
    print(json_safe(json.dumps(value, ensure_ascii=False)))


def table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    """Aligned columns with a header; two spaces between them. One line per row, whatever its cells hold."""
    lines = [list(header), *[[cell(text) for text in row] for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
