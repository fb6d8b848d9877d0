"""Hours of a day: as they are written, as bits, and by the clock of a zone."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.errors import UsageError
from node.identity.hours import half_hour_at, hours_in_words, read_hours
from protocol.grants import ALL_DAY


@pytest.mark.parametrize(("text", "bits", "words"), [
    ("00:00-00:30", 1, "00:00-00:30"),
    ("9:00-10:00", 0b11 << 18, "09:00-10:00"),
    ("23:30-00:30", 1 << 47 | 1, "23:30-00:30"),
    ("22:00-24:00, 12:30-13:00", 0b1111 << 44 | 1 << 25, "12:30-13:00,22:00-24:00"),
    ("00:00-24:00", ALL_DAY, "all"), ("all", ALL_DAY, "all"), ("none", 0, "none"),
])
def test_spans_by_hand(text, bits, words):
    assert read_hours(text) == bits
    assert hours_in_words(bits) == words


@pytest.mark.parametrize("text", ["", "always", "9-17", "09:15-10:00", "24:00-01:00", "10:00-10:00", "25:00-26:00",
                                  "9:00-24:30", "9:00-10:00,"])
def test_what_is_no_span_is_refused(text):
    with pytest.raises(UsageError):
        read_hours(text)


@given(st.integers(0, ALL_DAY))
def test_words_and_bits_are_each_others_inverse(bits):
    assert read_hours(hours_in_words(bits)) == bits


def test_the_clock_of_the_zone_counts_summer_time_included():
    winter, summer = datetime(2026, 1, 15, 21, 40, tzinfo=UTC), datetime(2026, 7, 15, 21, 40, tzinfo=UTC)
    assert half_hour_at(winter, "UTC") == 43
    assert half_hour_at(winter, "Europe/Rome") == 45  # 22:40
    assert half_hour_at(summer, "Europe/Rome") == 47  # 23:40
    assert half_hour_at(summer, "Asia/Kolkata") == 6  # 03:10
    assert half_hour_at(winter, "Mars/Olympus") is None
