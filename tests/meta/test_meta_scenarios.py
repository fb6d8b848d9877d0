"""The table of scenarios names tests that exist, each scenario once."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs" / "reference" / "scenarios.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (S\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
HIGHEST = 31


def missing(table: str) -> list[str]:
    """Tests that the table names and that are not there."""
    found = []
    for path, name in TEST.findall(table):
        file = ROOT / path
        if not file.is_file() or not re.search(rf"^(?:async )?def {name}\(", file.read_text("utf-8"), re.MULTILINE):
            found.append(f"{path}::{name}")
    return found


def test_every_named_test_exists() -> None:
    assert missing(TABLE) == []


def test_each_scenario_has_one_row_in_order_and_at_least_one_test() -> None:
    rows = ROW.findall(TABLE)
    numbers = [int(scenario[1:]) for scenario, _, _ in rows]
    assert numbers == sorted(set(numbers))
    assert numbers and all(1 <= number <= HIGHEST for number in numbers)
    assert all(TEST.search(tests) for _, _, tests in rows)
    assert len(rows) == len(re.findall(r"^\| S", TABLE, re.MULTILINE)), "a row that can't be read"


def test_negative_control_a_test_that_is_not_there_is_found() -> None:
    assert missing("`tests/meta/test_meta_scenarios.py::test_nothing`, `tests/none.py::test_x`") == [
        "tests/meta/test_meta_scenarios.py::test_nothing", "tests/none.py::test_x"]
