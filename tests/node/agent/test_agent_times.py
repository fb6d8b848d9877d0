"""Readers of time against hand-worked cases; clock changes; spans always slice the request."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.agent.readers.clocktimes import day_times
from node.agent.readers.dates import days
from node.agent.readers.durations import lengths
from node.agent.readers.windows import Locale, read_when, wall_time

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 18, 9, 30, tzinfo=BERLIN)          # a Wednesday
HERE = Locale(BERLIN)


def local(moment: datetime | None) -> str | None:
    return moment.astimezone(BERLIN).strftime("%m-%d %H:%M") if moment else None


@pytest.mark.parametrize(("text", "minutes", "from_now"), [
    ("put in an hour with Dr. Patel", 60, False), ("in an hour", 60, True), ("in 20 minutes remind me", 20, True),
    ("fit in half an hour", 30, False), ("two and a half hours", 150, False), ("an hour and a half", 90, False),
    ("a quarter of an hour", 15, False), ("three quarters of an hour", 45, False), ("1h30", 90, False),
    ("for 2 hours and 15 minutes", 135, False), ("a 30 minute call", 30, False), ("a free hour", 60, False),
    ("45 min", 45, False), ("90-minute session", 90, False), ("twenty five minutes from now", 25, True),
    ("1.5 hours", 90, False), ("a couple of hours", 120, False), ("within 10 minutes", 10, True),
])
def test_lengths(text: str, minutes: int, from_now: bool) -> None:
    found = lengths(text)
    assert [(one.minutes, one.from_now) for one in found] == [(minutes, from_now)]


@pytest.mark.parametrize(("text", "first", "after"), [
    ("today", (3, 18), (3, 19)), ("tomorrow", (3, 19), (3, 20)), ("the day after tomorrow", (3, 20), (3, 21)),
    ("Friday", (3, 20), (3, 21)), ("next Friday", (3, 27), (3, 28)), ("on Monday", (3, 23), (3, 24)),
    ("next Monday", (3, 23), (3, 24)), ("Wednesday", (3, 18), (3, 19)), ("next week", (3, 23), (3, 30)),
    ("this week", (3, 18), (3, 23)), ("this weekend", (3, 21), (3, 23)), ("next weekend", (3, 28), (3, 30)),
    ("the week after next", (3, 30), (4, 6)), ("in the week of April 6", (4, 6), (4, 13)),
    ("25 March", (3, 25), (3, 26)), ("the 2nd of April", (4, 2), (4, 3)), ("April 1st", (4, 1), (4, 2)),
    ("on the 1st", (4, 1), (4, 2)), ("2026-05-03", (5, 3), (5, 4)), ("3.5.", (5, 3), (5, 4)),
    ("between Monday and Wednesday", (3, 23), (3, 26)), ("Monday to Thursday", (3, 23), (3, 27)),
    ("Friday week", (3, 27), (3, 28)), ("the twenty-first of April", (4, 21), (4, 22)), ("next month", (4, 1), (5, 1)),
    ("3 to 5 May", (5, 3), (5, 6)), ("the rest of the week", (3, 18), (3, 23)),
    ("in the first week of April", (4, 1), (4, 8)), ("the last week in April", (4, 24), (5, 1)),
])
def test_days(text: str, first: tuple[int, int], after: tuple[int, int]) -> None:
    found = days(text, NOW.date())
    assert [(one.first, one.after) for one in found] == [(date(2026, *first), date(2026, *after))]


@pytest.mark.parametrize("text", [
    "the spare key is with the neighbour", "I sat in the sun", "may I ask", "march on", "the second time", "12 people",
    "1.5", "Midweekend",
])
def test_no_day_where_none_is_said(text: str) -> None:
    assert days(text, NOW.date()) == []


def test_a_name_that_ends_in_the_is_no_part_of_a_day() -> None:
    text = "call Xanthe next week"
    assert [one.span.of(text) for one in days(text, NOW.date())] == ["next week"]


def test_day_and_month_follow_the_locale() -> None:
    assert days("on 3/5", NOW.date(), day_first=True)[0].first == date(2026, 5, 3)
    assert days("on 3/5", NOW.date(), day_first=False)[0].first == date(2027, 3, 5) or \
        days("on 3/5", NOW.date(), day_first=False)[0].first == date(2026, 3, 5)


@pytest.mark.parametrize(("text", "relation"), [
    ("before Friday", "before"), ("by Friday", "by"), ("after Friday", "after"), ("from Friday", "from"),
    ("not Friday", "not"), ("any day but Friday", "not"), ("except on Friday", "not"), ("not before Friday", "from"),
    ("until Friday", "by"), ("on Friday", "on"), ("for Friday", "on"),
])
def test_prepositions(text: str, relation: str) -> None:
    assert [one.relation for one in days(text, NOW.date())] == [relation]


def test_exclusions_run_on_through_a_list() -> None:
    when = read_when("next week but not Monday or Friday", NOW, HERE)
    assert when.excluded_weekdays == {0, 4}
    assert when.windows == ((date(2026, 3, 23), date(2026, 3, 30)),)


@pytest.mark.parametrize(("text", "bounds"), [
    ("after 3pm", (900, 1320)), ("before 10am", (360, 600)), ("not before 2pm", (840, 1320)),
    ("not after 5pm", (360, 1020)),
    ("in the morning", (360, 720)), ("after lunch", (780, 1080)), ("around noon", (690, 840)), ("mornings", (360, 720)),
    ("between 2 and 5pm", (840, 1020)), ("from 9 to 10:30", (540, 630)), ("2-4pm", (840, 960)),
    ("10am to noon", (600, 720)),
    ("tonight", (1080, 1440)), ("afternoon but not before 3", (900, 1080)), ("not in the morning", (720, 1440)),
])
def test_bounds_of_the_day(text: str, bounds: tuple[int, int]) -> None:
    when = read_when(text, NOW, HERE)
    assert (when.day_from_min, when.day_to_min) == bounds


@pytest.mark.parametrize(("text", "minute"), [
    ("at 6pm", 1080), ("at 6", 1080), ("at 8", 480), ("at 12", 720), ("at noon", 720), ("14:00", 840),
    ("at half past eight", 510),
    ("at quarter to nine", 525), ("at 10 o'clock", 600), ("at 6 in the morning", 360), ("at 8 tonight", 1200),
    ("06:30", 390), ("at 6:30", 1110), ("at 9.15", 555), ("at 12am", 0), ("at seven thirty", 450),
])
def test_clock_times(text: str, minute: int) -> None:
    assert read_when(text, NOW, HERE).fixed_min == minute


def test_twenty_four_hour_clock_takes_colon_times_as_written() -> None:
    assert read_when("at 6:30", NOW, Locale(BERLIN, hour24=True)).fixed_min == 390
    assert read_when("at 3", NOW, Locale(BERLIN, hour24=True)).fixed_min == 900


@pytest.mark.parametrize("text", ["parents' evening", "1299 divided by 12", "about 3 things", "20 percent",
    "version 2.5", "$9"])
def test_no_time_where_none_is_said(text: str) -> None:
    assert day_times(text, []) == []


@pytest.mark.parametrize(("text", "start"), [
    ("tomorrow at 6pm", "03-19 18:00"), ("at 6", "03-18 18:00"), ("at 9", "03-19 09:00"),
    ("on the 1st at 9am", "04-01 09:00"),
    ("in 20 minutes", "03-18 09:50"), ("in an hour and a half", "03-18 11:00"), ("Monday", None),
    ("tomorrow morning", None),
    ("Wednesday the 1st of April at 17:00", "04-01 17:00"), ("tonight at 8", "03-18 20:00"),
    ("next Tuesday 14:30", "03-24 14:30"),
])
def test_exact_start(text: str, start: str | None) -> None:
    assert local(read_when(text, NOW, HERE).start(NOW)) == start


def test_a_range_is_the_event_unless_another_length_is_said() -> None:
    def read(text: str) -> tuple[int | None, int | None]:
        when = read_when(text, NOW, HERE)
        return when.fixed_min, when.end_min

    assert read("block tomorrow 1pm to 2pm") == read("block tomorrow from 1pm to 2pm") == (780, 840)
    assert read("half an hour tomorrow from 1pm to 5pm") == read("half an hour tomorrow 1pm to 5pm") == (None, None)
    assert read("what is on tomorrow between 1pm and 2pm") == (None, None)


def test_a_wish_is_no_bound() -> None:
    when = read_when("in the week of April 6, late afternoon is best, not Tuesday", NOW, HERE)
    assert when.preferred == ((900, 1080),)
    assert when.day_from_min is None
    assert when.excluded_weekdays == {1}
    assert when.preferred_weekdays == frozenset()


def test_weekdays_move_into_the_week_that_is_named() -> None:
    when = read_when("next week, Tuesday or Thursday", NOW, HERE)
    assert when.windows == ((date(2026, 3, 24), date(2026, 3, 25)), (date(2026, 3, 26), date(2026, 3, 27)))


@pytest.mark.parametrize(("now", "said", "expected"), [
    # Clocks go forward on 29 March 2026 at 02:00: 22:00 plus five hours is 04:00 by the wall.
    (datetime(2026, 3, 28, 22, 0, tzinfo=BERLIN), "in 5 hours", "2026-03-29T04:00:00+02:00"),
    # And back on 25 October at 03:00: 22:00 plus five hours is 02:00, the second one.
    (datetime(2026, 10, 24, 22, 0, tzinfo=BERLIN), "in 5 hours", "2026-10-25T02:00:00+01:00"),
    (datetime(2026, 3, 28, 22, 0, tzinfo=BERLIN), "tomorrow at 9am", "2026-03-29T09:00:00+02:00"),
])
def test_nights_when_clocks_change(now: datetime, said: str, expected: str) -> None:
    start = read_when(said, now, HERE).start(now)
    assert start is not None
    assert start.astimezone(BERLIN).isoformat() == expected
    assert start.tzinfo is UTC


def test_the_day_of_the_change_has_23_hours_and_a_skipped_time_moves_on() -> None:
    (start, end), = read_when("on 29 March", NOW, HERE).periods(NOW)
    assert end - start == timedelta(hours=23)
    assert wall_time(date(2026, 3, 29), 150, BERLIN) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


def test_mornings_of_a_week_are_one_interval_a_day() -> None:
    periods = read_when("next week, mornings, not Wednesday", NOW, HERE).periods(NOW)
    assert [local(start) for start, _ in periods] == [f"03-{day} 06:00" for day in (23, 24, 26, 27, 28, 29)]


def test_an_answer_adds_to_what_was_said() -> None:
    earlier = read_when("put dentist on my calendar on Monday", NOW, HERE)
    assert local(read_when("at 8", NOW, HERE).over(earlier).start(NOW)) == "03-23 08:00"
    assert local(read_when("on Tuesday", NOW, HERE).over(read_when("at 8", NOW, HERE)).start(NOW)) == "03-24 08:00"


@pytest.mark.parametrize("text", ["next week", "tomorrow at 3pm", "in two hours", "Friday after lunch", "this weekend",
    "soon"])
def test_windows_lie_in_the_future(text: str) -> None:
    assert all(end > NOW for _, end in read_when(text, NOW, HERE).periods(NOW))


_WORDS = st.sampled_from(
    ["next", "this", "Monday", "tuesday", "Friday", "morning", "evening", "at", "3", "5pm", "14:30", "before", "after",
    "not", "in", "an", "hour", "half", "two", "and", "or", ",", "25", "March", "the", "1st", "week", "İstanbul", "ß",
    "between", "to", "from", "20", "minutes", "noon", "-", "except"],
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_WORDS, max_size=12).map(" ".join))
def test_spans_slice_the_request_and_never_overlap_within_a_reader(text: str) -> None:
    for found in (lengths(text), days(text, NOW.date()), day_times(text, [])):
        for one in found:
            assert 0 <= one.span.start < one.span.end <= len(text)
            assert one.span.of(text).strip()
    when = read_when(text, NOW, HERE)
    assert all(0 <= span.start < span.end <= len(text) for span in when.spans)
    assert all(start < end for start, end in when.periods(NOW))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_read_without_error(text: str) -> None:
    read_when(text, NOW, HERE)
