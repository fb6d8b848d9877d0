"""The list of time expressions, one by one; and days that are counted from another day, on dates worked out by hand."""

from datetime import date

import pytest

from benchmarks.time_expressions import own_starts, right, time_expressions
from node.agent.readers.dates import days

NOT_READ = {
    "this time next week", "sat", "at 17h", "ten twenty am", "at ten minutes to eleven", "2026-04-02T09:30", "May",
    "the rest of the day", "the rest of the week",
}
"""Named, so that a change for better or worse is seen."""


def test_the_list_is_read_but_for_what_is_named() -> None:
    listed = time_expressions()
    starts = own_starts([one["text"] for one in listed])
    missed = {one["text"] for one, start in zip(listed, starts, strict=True) if not right(one, start)}
    assert missed == NOT_READ


@pytest.mark.parametrize(("text", "today", "first", "count"), [
    ("in a month", date(2026, 1, 31), date(2026, 2, 28), 1),        # a month's end stays in the month
    ("in a year", date(2024, 2, 29), date(2025, 2, 28), 1),
    ("in two months", date(2026, 12, 15), date(2027, 2, 15), 1),
    ("the last day of next month", date(2026, 1, 5), date(2026, 2, 28), 1),
    ("the last day of February", date(2028, 1, 5), date(2028, 2, 29), 1),
    ("the last Monday in March", date(2026, 3, 18), date(2026, 3, 30), 1),
    ("the first Sunday of next month", date(2026, 12, 24), date(2027, 1, 3), 1),
    ("a week from tomorrow", date(2026, 12, 30), date(2027, 1, 7), 1),
    ("two weeks after next Friday", date(2026, 3, 18), date(2026, 4, 10), 1),
    ("the second half of February", date(2027, 1, 10), date(2027, 2, 16), 13),
    ("the month of June", date(2026, 3, 18), date(2026, 6, 1), 30),
    ("December 30 to January 2", date(2026, 12, 1), date(2026, 12, 30), None),  # over the year's end: not read as one
])
def test_days_counted_from_another_day(text: str, today: date, first: date, count: int | None) -> None:
    found = days(text, today)
    assert found[0].first == first
    if count is not None:
        assert len(found) == 1
        assert (found[0].after - found[0].first).days == count


@pytest.mark.parametrize("text", ["the fifth Monday in April", "the 31st of next month"])
def test_a_day_that_does_not_exist_is_not_made_up(text: str) -> None:
    assert all(one.first != date(2026, 5, 1) for one in days(text, date(2026, 3, 18)))
