"""python -m benchmarks.agent: what the small agent understands and does, beside other people's code and its own parts.

    python -m benchmarks.agent [--quick] [--json]

--quick takes fixed samples and leaves learning and languages out; sizes stand in the rows.
"""

import sys
from pathlib import Path

import trio

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from benchmarks.agent_bookings import add_booking_rows
from benchmarks.agent_calendars import add_calendar_rows
from benchmarks.agent_described import add_described_rows
from benchmarks.agent_own_tools import add_own_tool_rows, add_unconfirmed_rows
from benchmarks.agent_second_reader import add_second_reader_rows
from benchmarks.agent_times import add_time_of_code_row
from benchmarks.bank import add_bank_rows, judge, measure, open_parts, part
from benchmarks.languages import add_language_rows
from benchmarks.learning import add_learning_rows
from benchmarks.report import Report, options
from benchmarks.time_expressions import add_time_rows


def main() -> None:
    """Measure and print; the exit code says whether every bound was met."""
    given = options("agent")
    quick: bool = given.quick
    report = Report("agent")
    if not quick:
        add_time_rows(report)
    for name in open_parts():
        add_bank_rows(report, name, measure(trio.run(judge, part(name))))
    add_second_reader_rows(report, quick=quick)
    add_booking_rows(report)
    add_own_tool_rows(report)
    add_unconfirmed_rows(report, quick=quick)
    add_calendar_rows(report, quick=quick)
    add_described_rows(report, quick=quick)
    add_time_of_code_row(report, quick=quick)
    if not quick:
        add_learning_rows(report)
        add_language_rows(report)
    report.print(as_json=given.json)
    sys.exit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
