"""Pauses between calls."""

from fixed import SeededEntropy
from hypothesis import given
from hypothesis import strategies as st

from node.net.backoff import Backoff
from node.net.limits import LinkTiming

TIMING = LinkTiming()


class Middle:
    """Entropy whose jitter is nil."""

    def bytes(self, n: int) -> bytes:
        return b"\x7f\xff"


def plan(away_s: list[float]) -> list[float]:
    backoff = Backoff(Middle(), TIMING)
    return [round(backoff.next_s(away), 2) for away in away_s]


def test_the_first_pauses_grow_by_the_factor_up_to_the_cap() -> None:
    assert plan([0.0] * 6) == [0.1, 0.16, 0.26, 0.41, 0.5, 0.5]


def test_the_cap_rises_while_the_peer_stays_away_and_ends_at_the_ceiling() -> None:
    late = [0.0] * 20 + [10.0, 60.0, 600.0, 6000.0, 1e9]
    assert plan(late)[-5:] == [1.0, 6.0, 60.0, 60.0, 60.0]


def test_reset_starts_short_again() -> None:
    backoff = Backoff(Middle(), TIMING)
    for _ in range(30):
        backoff.next_s(1000)
    backoff.reset()
    assert round(backoff.next_s(1000), 2) == 0.1


@given(st.integers(0, 1000), st.lists(st.floats(0, 1e7), min_size=1, max_size=200))
def test_a_pause_is_never_nothing_and_never_above_the_ceiling(seed: int, away: list[float]) -> None:
    backoff = Backoff(SeededEntropy(seed), TIMING)
    for away_s in away:
        assert 0.08 <= backoff.next_s(away_s) <= 72


def test_jitter_differs_between_nodes() -> None:
    assert Backoff(SeededEntropy(1), TIMING).next_s(0) != Backoff(SeededEntropy(2), TIMING).next_s(0)
