"""More example sentences of the tools that come with a node, from examples.txt beside this file.

They are many, so they stand in a file of their own; a tool that somebody adds may write all of its own into its spec.
Must not know how they are compared with a request.
"""

from collections.abc import Iterable
from functools import cache
from importlib import resources

__all__ = ["examples_of", "sections"]


def examples_of(tool: str) -> tuple[str, ...]:
    """The sentences of one tool; none for a tool without a section."""
    return _shipped().get(tool, ())


@cache
def _shipped() -> dict[str, tuple[str, ...]]:
    text = resources.files("node.agent.tools").joinpath("examples.txt").read_text(encoding="utf-8")
    return sections(text.splitlines())


def sections(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The sentences under each [tool]; lines that begin with # and empty ones are left out."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in map(str.strip, lines):
        if line.startswith("[") and line.endswith("]"):
            current = found.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            current.append(line)
    return {tool: tuple(sentences) for tool, sentences in found.items()}
