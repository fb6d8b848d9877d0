"""python -m benchmarks.agent: what the small agent understands and does, beside other people's code and its own parts.

    python -m benchmarks.agent [--quick] [--json]
"""

import sys
from pathlib import Path

import trio

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from benchmarks.bank import add_bank_rows, judge, measure, open_parts, part
from benchmarks.languages import add_language_rows
from benchmarks.learning import add_learning_rows
from benchmarks.report import Report, options
from benchmarks.time_expressions import add_time_rows


def main() -> None:
    """Measure and print; the exit code says whether every bound was met."""
    given = options("agent")
    report = Report("agent")
    add_time_rows(report)
    for name in open_parts():
        add_bank_rows(report, name, measure(trio.run(judge, part(name))))
    add_learning_rows(report)
    add_language_rows(report)
    report.print(as_json=given.json)
    sys.exit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
