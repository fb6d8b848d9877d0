"""Time in milliseconds and back, entropy of the right size."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.clock import SystemClock, SystemEntropy, from_ms, new_id, to_ms


def test_known_instants():
    assert to_ms(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert to_ms(datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)) == 1_000_000_000_000
    assert to_ms(datetime(2001, 9, 9, 3, 46, 40, tzinfo=timezone(timedelta(hours=2)))) == 1_000_000_000_000
    assert to_ms(datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC)) == -1


def test_a_naive_time_is_refused():
    with pytest.raises(ValueError, match="time zone"):
        to_ms(datetime(2026, 1, 1))


@given(st.integers(-(10**12), 10**13))
def test_there_and_back(ms):
    assert to_ms(from_ms(ms)) == ms
    assert from_ms(ms).tzinfo is UTC


def test_the_real_ones():
    clock = SystemClock()
    assert clock.now().tzinfo is UTC
    assert clock.monotonic_s() <= clock.monotonic_s()
    assert len(SystemEntropy().bytes(16)) == 16
    assert len({new_id(SystemEntropy()) for _ in range(50)}) == 50
    assert len(new_id(SystemEntropy())) == 32
