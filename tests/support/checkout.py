"""The checkout as tests see it: its root, its tracked files, its modules and what each one imports.

Reads files only. Must not import the packages it looks at.
"""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

import pytest

__all__ = ["PACKAGES", "ROOT", "imports_of", "internal_imports", "modules", "tracked_files"]

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("node", "offload", "protocol", "search")


def tracked_files() -> list[Path]:
    """Returns the files under version control; skips the test where there is no git checkout."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    names = listing.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


@cache
def modules() -> dict[str, Path]:
    """Returns dotted name -> file for every module of the four packages."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(tree: ast.AST) -> set[str]:
    """Returns every dotted name that a module may be importing, names inside `from` imports included."""
    names = set()
    for item in ast.walk(tree):
        if isinstance(item, ast.Import):
            names |= {alias.name for alias in item.names}
        elif isinstance(item, ast.ImportFrom) and item.module is not None and item.level == 0:
            names |= {item.module, *(f"{item.module}.{alias.name}" for alias in item.names)}
    return names


def internal_imports(name: str) -> set[str]:
    """Returns the modules of ours that a module imports, at any depth of its code; the most specific name wins."""
    known = modules()
    tree = ast.parse(known[name].read_text(encoding="utf-8"))
    found = set()
    for item in ast.walk(tree):
        if isinstance(item, ast.Import):
            found |= {alias.name for alias in item.names if alias.name in known}
        elif isinstance(item, ast.ImportFrom) and item.module is not None and item.level == 0:
            for alias in item.names:
                submodule = f"{item.module}.{alias.name}"
                found |= {submodule} if submodule in known else {item.module} & known.keys()
    return found - {name}
