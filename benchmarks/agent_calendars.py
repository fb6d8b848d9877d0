"""Rows of the households that are drawn by seed: a clash, a wrong person, a wrong time; free time that was not found.

Truth is minute by minute in UTC (tests/support/calendar_oracle.py); tests/node/agent/test_agent_calendars.py puts each
fault in to see that it is found.
"""

import trio
from calendar_runs import ERRORS, count, judge_all

from benchmarks.report import Report

__all__ = ["add_calendar_rows"]

HOUSEHOLDS = 1_000
QUICK_HOUSEHOLDS = 50


def add_calendar_rows(report: Report, *, quick: bool) -> None:
    """One row for each kind of error, and what came of all."""
    seeds = range(0, HOUSEHOLDS, HOUSEHOLDS // QUICK_HOUSEHOLDS if quick else 1)
    judged = trio.run(judge_all, seeds)
    found = count(judged)
    size = f"calendars ({len(judged)} households, {found['booked']} booked, {found['none']} without a free time, " \
           f"{found['asked']} asked who)"
    for kind in ERRORS:
        title = size if kind == ERRORS[0] else "calendars"
        report.add(f"{title}: {kind}", found[kind], "households", at_most=0)
    report.add("calendars: a free time not found, or asked without need", found["missed"] + found["needless question"],
               "households", at_most=len(judged) // 100)
