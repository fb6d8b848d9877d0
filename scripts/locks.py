"""Reads hash-locked requirement files: one package's block, or everything but some packages; lists what an extra asks.

Knows the text form of these files only. Must not know what the packages are for, and imports nothing but the
standard library: it runs before anything is installed.

    python scripts/locks.py without NAME... < requirements.lock
    python scripts/locks.py extra NAME < pyproject.toml
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Locked", "extra", "find", "read", "without"]

_NAME = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Locked:
    """One pinned requirement with the digests that its files may have."""

    name: str
    version: str
    digests: frozenset[str]
    text: str  # the block as it stands in the file, a valid requirement file by itself


def _blocks(text: str) -> Iterator[str]:
    """Yields a requirement with its continuation lines and trailing remarks, in order."""
    block: list[str] = []
    for line in text.splitlines(keepends=True):
        if _NAME.match(line):
            if block:
                yield "".join(block)
            block = [line]
        elif block:
            block.append(line)
    if block:
        yield "".join(block)


def read(text: str) -> list[Locked]:
    """Returns every requirement of a lock.

    Raises ValueError when one carries no digest: such a line would be fetched unchecked.
    """
    found = []
    for block in _blocks(text):
        match = _NAME.match(block)
        assert match is not None
        digests = frozenset(_HASH.findall(block))
        if not digests:
            raise ValueError(f"{match[1]} has no sha256 digest in the lock")
        found.append(Locked(match[1], match[2], digests, block))
    return found


def find(text: str, name: str) -> Locked:
    """Returns the requirement called `name`. Raises LookupError unless the lock has exactly one."""
    matches = [locked for locked in read(text) if locked.name == name]
    if len(matches) != 1:
        raise LookupError(f"{len(matches)} requirements named {name} in the lock, expected one")
    return matches[0]


def without(text: str, names: frozenset[str]) -> str:
    """Returns the lock less the named packages. Raises LookupError when one of them is not in it."""
    locked = read(text)
    absent = names - {entry.name for entry in locked}
    if absent:
        raise LookupError(f"not in the lock: {', '.join(sorted(absent))}")
    return "".join(entry.text for entry in locked if entry.name not in names)


def extra(text: str, name: str) -> str:
    """Returns the requirements of an optional extra of a pyproject.toml, one a line. Raises LookupError for none."""
    return "".join(f"{line}\n" for line in tomllib.loads(text)["project"]["optional-dependencies"][name])


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("without", "extra"):
        sys.exit("usage: locks.py without NAME... < LOCK, or: locks.py extra NAME < pyproject.toml")
    if sys.argv[1] == "extra":
        sys.stdout.write(extra(sys.stdin.read(), sys.argv[2]))
    else:
        sys.stdout.write(without(sys.stdin.read(), frozenset(sys.argv[2:])))
