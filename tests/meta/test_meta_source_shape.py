"""Sizes, opening lines and import shape of every module of the four packages."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from checkout import PACKAGES, ROOT, imports_of, internal_imports, modules

MAX_LINES = 400
MAX_MEAN_IMPORTS = 4.5
CATCH_ALL_NAMES = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "tools_common", "base"}
PROTOCOL_MAY_IMPORT = {"msgpack", "msgspec", "nacl", "protocol", "spake2"}
NOT_DETERMINISTIC = {"nacl.utils", "nacl.public.SealedBox", "spake2.six"}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_is_longer_than_the_limit(package: str) -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for name, path in modules().items()
        if name.split(".")[0] == package
    }
    assert lengths
    assert {path: lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


def test_every_module_says_what_it_is_for() -> None:
    silent = [name for name, path in modules().items() if not ast.get_docstring(parsed(path))]
    assert silent == []


def test_package_files_hold_no_code() -> None:
    busy = []
    for name, path in modules().items():
        if path.name == "__init__.py" and len(parsed(path).body) > 1:
            busy.append(name)
    assert busy == []


def test_no_catch_all_names() -> None:
    assert [name for name in modules() if name.rpartition(".")[2] in CATCH_ALL_NAMES] == []


def test_nobody_imports_its_own_package_root() -> None:
    guilty = [name for name in modules() if name.partition(".")[0] in internal_imports(name) and "." in name]
    assert guilty == []


def test_no_import_cycle() -> None:
    sorter = TopologicalSorter({name: internal_imports(name) for name in modules()})
    try:
        sorter.prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def test_modules_import_few_of_ours() -> None:
    counts = Counter(
        {name: len(internal_imports(name)) for name, path in modules().items() if path.name != "__init__.py"}
    )
    mean = counts.total() / len(counts)
    assert mean <= MAX_MEAN_IMPORTS, counts.most_common(10)


def test_protocol_imports_only_what_it_may() -> None:
    # the import contract lists what is forbidden; this is the closed list of what is allowed
    foreign = {}
    for name, path in modules().items():
        if name.split(".")[0] == "protocol":
            roots = {imported.split(".")[0] for imported in imports_of(parsed(path))}
            extra = roots - PROTOCOL_MAY_IMPORT - set(sys.stdlib_module_names)
            chance = imports_of(parsed(path)) & NOT_DETERMINISTIC
            if extra or chance:
                foreign[name] = extra | chance
    assert foreign == {}


def hidden_imports(tree: ast.AST) -> set[str]:
    """Returns the names used that can import or run code which no rule sees."""
    return {item.id for item in ast.walk(tree) if isinstance(item, ast.Name)} & {"__import__", "eval", "exec"}


def test_nothing_imports_or_runs_code_from_text() -> None:
    hidden = {name: found for name, path in modules().items() if (found := hidden_imports(parsed(path)))}
    assert hidden == {}


def test_control_such_code_would_be_noticed() -> None:
    assert hidden_imports(ast.parse("net = __import__('node.net')")) == {"__import__"}
    assert hidden_imports(ast.parse("engine.exec()")) == set()
