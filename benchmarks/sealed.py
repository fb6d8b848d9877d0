"""Open the sealed part of the bank: once for a release, each opening logged in bank/openings.jsonl with its figures.

Prints figures only, never a request. --without leaves out lines that somebody saw before the opening; the figures of
all lines are printed and logged beside them.

    PYTHONPATH=.:tests/support python -m benchmarks.sealed --sealed --why TEXT [--without ID ...]
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import trio

from benchmarks.agent_second_reader import add_reading_rows, free_text
from benchmarks.bank import FOLDER, Figures, Judged, add_bank_rows, judge, measure, part, print_shares
from benchmarks.report import Report

__all__: list[str] = []

LOGGED = ("size", "right_tool", "top_two", "exact", "arguments", "abstain", "asked_right", "wrong_runs")


def main() -> None:
    """Measure, print and log."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sealed")
    parser.add_argument("--sealed", action="store_true", required=True, help="open it; logged")
    parser.add_argument("--why", required=True, help="why it is opened")
    parser.add_argument("--without", nargs="*", default=[], metavar="ID", help="lines that somebody saw before")
    given = parser.parse_args()
    content = (FOLDER / "sealed.jsonl").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != (FOLDER / "sealed.sha256").read_text(encoding="ascii").split()[0]:
        sys.exit("benchmarks/bank/sealed.jsonl is not the file whose digest sealed.sha256 holds")
    ids = [json.loads(line)["id"] for line in content.decode().splitlines()]
    judged = trio.run(judge, part("sealed"))
    unseen = [one for one, line in zip(judged, ids, strict=True) if line not in given.without]
    report = Report("agent")
    logged = {"all": _rows(report, "sealed", judged)}
    if len(unseen) < len(judged):
        logged["unseen"] = _rows(report, "sealed, lines nobody saw", unseen)
    cases = [one.case for one in judged if one.case.tool is not None and free_text(one.case)]
    add_reading_rows(report, cases, of=len(judged))
    report.print(as_json=False)
    print_shares(measure(judged))
    line = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"), "why": given.why, "digest": digest,
        "figures": logged["all"], **({"figures_of_unseen": logged["unseen"]} if "unseen" in logged else {}),
        "read_twice": {row.name: row.value for row in report.rows if row.name.startswith("free text")},
    }
    with (FOLDER / "openings.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")


def _rows(report: Report, name: str, judged: Sequence[Judged]) -> dict[str, float]:
    figures: Figures = measure(judged)
    add_bank_rows(report, name, figures)
    return {name: round(getattr(figures, name), 4) for name in LOGGED}


if __name__ == "__main__":
    main()
