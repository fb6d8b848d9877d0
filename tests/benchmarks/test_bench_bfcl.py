"""The bound by which the benchmark of calls says that jumping made them no less right."""

import pytest

from benchmarks.bfcl import chance_of_losing


@pytest.mark.parametrize(("lost", "gained", "chance"), [
    (0, 0, 1.0), (1, 0, 0.5), (0, 1, 1.0), (1, 1, 0.75), (4, 0, 1 / 16), (5, 0, 1 / 32),
    (8, 2, (45 + 10 + 1) / 1024),       # of ten, at least eight
])
def test_worked_by_hand(lost: int, gained: int, chance: float) -> None:
    assert chance_of_losing(lost, gained) == pytest.approx(chance)


def test_what_is_taken_for_near_ties_and_what_is_not() -> None:
    assert chance_of_losing(4, 0) >= 0.05 > chance_of_losing(5, 0)
    assert chance_of_losing(6, 4) >= 0.05 > chance_of_losing(12, 3)
