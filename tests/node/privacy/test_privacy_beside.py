"""What of the detectors' guesses stays beside the values that are known."""

from hypothesis import given
from hypothesis import strategies as st

from node.privacy.inspector import _beside
from node.privacy.vault import Hit


def test_a_guess_that_touches_two_values_leaves_what_may_be_more_of_a_name() -> None:
    text = "Tell Dana Orla Whitfield"
    known = [Hit(5, 9, "PERSON"), Hit(15, 24, "PERSON")]
    assert list(_beside(known, [Hit(0, 24, "PERSON")], text)) == [Hit(10, 14, "PERSON")]
    assert list(_beside(known, [Hit(5, 9, "PERSON")], text)) == []
    assert list(_beside(known, [Hit(10, 14, "PERSON")], text)) == [Hit(10, 14, "PERSON")]


@given(st.sets(st.integers(0, 60), max_size=24), st.integers(0, 59), st.integers(1, 30))
def test_a_guess_stays_whole_if_and_only_if_it_touches_no_known_value(places: set[int], start: int, size: int) -> None:
    """Each known value found by looking at every one of its characters."""
    edges = sorted(places)
    known = [Hit(begin, end, "PERSON") for begin, end in zip(edges[::2], edges[1::2], strict=False)]
    covered = {place for one in known for place in range(one.start, one.end)}
    end = min(60, start + size)
    guess = Hit(start, end, "PERSON")
    rests = list(_beside(known, [guess], "X" * 60))
    assert (rests == [guess]) is covered.isdisjoint(range(start, end))
    masked = {place for rest in rests for place in range(rest.start, rest.end)}
    assert masked == set(range(start, end)) - covered
