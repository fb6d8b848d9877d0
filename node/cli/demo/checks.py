"""Looks for the planted values: in texts that left, and in the raw bytes of the files that the nodes wrote.

A quick look with the plain forms of each value; the test-suite's scanner knows many more encodings. Must not know the
nodes.
"""

import base64
from collections.abc import Iterable
from pathlib import Path

from node.cli.demo.world import CANARIES

__all__ = ["find_canaries", "find_in_files", "written_by_kith"]

PARTS = (
    "whitfield",
    "oduya",
    "sarkisian",
    "meadowmail",
    "willow lane",
    "quarry steps",
    "496 0121",
    "496 0177",
    "4960121",
    "4960177",
)


def find_canaries(text: str) -> list[str]:
    """The planted values, or telling parts of them, that stand in text."""
    folded = text.casefold()
    return sorted({value for value in (*CANARIES, *PARTS) if value.casefold() in folded})


def _forms(value: str) -> Iterable[bytes]:
    raw = value.encode()
    yield raw
    yield value.lower().encode()
    yield value.encode("utf-16-le")
    yield raw.hex().encode()
    yield base64.b64encode(raw)[: len(raw) // 3 * 4]


def find_in_files(files: Iterable[Path]) -> list[str]:
    """One line per planted value found in the raw bytes of a file."""
    found = []
    for path in files:
        data = path.read_bytes()
        found += [f"{value} in {path.name}" for value in CANARIES if any(form in data for form in _forms(value))]
    return sorted(set(found))


def written_by_kith(home: Path) -> list[Path]:
    """Every file below a node's home that Kith itself writes: all but the owner's own calendar, contacts, notes and
    library."""
    own = {home / name for name in ("calendar", "contacts", "notes", "library")}
    return sorted(
        path for path in home.rglob("*") if path.is_file() and not any(folder in path.parents for folder in own)
    )
