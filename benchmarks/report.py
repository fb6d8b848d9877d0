"""Rows of a benchmark, printed as a table or as JSON, with the bound that each must meet.

A row is ok when it meets its bound or has none. Must not know what is measured.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

__all__ = ["Report", "Row", "options"]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ratio = value / baseline where there is a baseline. bound: what it is held to, in words."""

    name: str
    value: float | None
    unit: str
    baseline: float | None = None
    ratio: float | None = None
    bound: str = ""
    ok: bool = True


class Report:
    """Collects the rows of one area."""

    def __init__(self, area: str) -> None:
        self.area = area
        self.rows: list[Row] = []

    def add(
        self,
        name: str,
        value: float,
        unit: str,
        *,
        baseline: float | None = None,
        at_most: float | None = None,
        at_least: float | None = None,
        ratio_at_most: float | None = None,
        ratio_at_least: float | None = None,
    ) -> None:
        """Add one figure; bounds hold the value, or its ratio to the baseline."""
        ratio = None if not baseline else value / baseline
        checks = [
            ("<=", at_most, value),
            (">=", at_least, value),
            ("ratio <=", ratio_at_most, ratio),
            ("ratio >=", ratio_at_least, ratio),
        ]
        used = [(sign, bound, seen) for sign, bound, seen in checks if bound is not None]
        ok = all(seen is not None and (seen <= bound if "<" in sign else seen >= bound) for sign, bound, seen in used)
        words = ", ".join(f"{sign} {bound:g}" for sign, bound, _ in used)
        self.rows.append(
            Row(name, round(value, 4), unit, baseline, None if ratio is None else round(ratio, 4), words, ok)
        )

    def print(self, *, as_json: bool) -> None:
        """Print every row to stdout."""
        if as_json:
            print(json.dumps({"schema": 1, "area": self.area, "rows": [asdict(row) for row in self.rows]}))
            return
        cells = [["what", "value", "unit", "baseline", "ratio", "bound", ""]]
        cells += [
            [
                row.name,
                _number(row.value),
                row.unit,
                _number(row.baseline),
                _number(row.ratio),
                row.bound,
                "ok" if row.ok else "NOT MET",
            ]
            for row in self.rows
        ]
        widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
        for line in cells:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())

    @property
    def ok(self) -> bool:
        """True when every row meets its bound."""
        return all(row.ok for row in self.rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def options(area: str, arguments: Sequence[str] | None = None, *, parts: Sequence[str] = ()) -> argparse.Namespace:
    """--quick and --json of one area; parts: names of what --only may pick, all of them without it."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{area}")
    parser.add_argument("--quick", action="store_true", help="a fixed smaller load; ends within 45 s")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    if parts:
        parser.add_argument(
            "--only", nargs="+", choices=parts, default=list(parts), metavar="PART", help=f"of {', '.join(parts)}")
        parser.add_argument("--rounds", type=int, metavar="N", help="fewer or more rounds of what takes turns")
    return parser.parse_args(sys.argv[1:] if arguments is None else arguments)
