"""How many threads a decode gets: what was quickest, found again when the machine changes, one for a lone token."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload.engine.crew import Crew

IDLE = {1: 0.025, 2: 0.014}     # measured: 8 answers, one and two threads
BUSY = {1: 0.028, 2: 0.039}


def run(crew: Crew, decodes: int, takes_s: Callable[[int], float], tokens: int = 8) -> Counter[int]:
    used: Counter[int] = Counter()
    for _ in range(decodes):
        threads = crew.threads(tokens)
        used[threads] += 1
        crew.learn(tokens, threads, takes_s(threads))
    return used


@pytest.mark.parametrize(("machine", "best"), [(IDLE, 2), (BUSY, 1)])
def test_it_stays_with_what_is_quickest(machine: dict[int, float], best: int) -> None:
    used = run(Crew(2, lone=1), 2000, machine.__getitem__)
    assert used[best] >= 1960


@pytest.mark.parametrize(("before", "after", "best"), [(IDLE, BUSY, 1), (BUSY, IDLE, 2)])
def test_it_notices_when_the_machine_changes(before: dict[int, float], after: dict[int, float], best: int) -> None:
    crew = Crew(2, lone=1)
    run(crew, 500, before.__getitem__)
    run(crew, 300, after.__getitem__)
    assert run(crew, 100, after.__getitem__)[best] >= 95


def test_a_slower_decode_has_it_look_at_once() -> None:
    crew = Crew(2, lone=1)
    run(crew, 500, IDLE.__getitem__)
    assert run(crew, 16, BUSY.__getitem__)[1] >= 8


def test_one_slow_decode_changes_nothing() -> None:
    crew = Crew(2, lone=1)
    run(crew, 100, IDLE.__getitem__)
    run(crew, 1, lambda _threads: 1.0)
    assert run(crew, 100, IDLE.__getitem__)[2] >= 95


def test_sizes_are_told_apart() -> None:
    crew = Crew(2, lone=1)
    for _ in range(200):
        run(crew, 1, IDLE.__getitem__, tokens=8)
        run(crew, 1, BUSY.__getitem__, tokens=3)
    assert (crew.threads(8), crew.threads(3)) == (2, 1)


def test_prompts_get_all_and_a_lone_token_always_the_same() -> None:
    crew = Crew(4, lone=1)
    assert {run(crew, 50, lambda threads: threads, tokens=64).most_common(1)[0] } == {(4, 50)}
    assert run(crew, 50, lambda threads: 1 / threads, tokens=1) == {1: 50}


@given(st.lists(st.tuples(st.integers(1, 512), st.floats(1e-6, 10), st.integers(1, 8)), max_size=60))
def test_never_more_than_it_may_and_steady_never_varies(steps: list[tuple[int, float, int]]) -> None:
    crew, steady = Crew(8, lone=8), Crew(8, lone=1, steady=True)
    for tokens, elapsed_s, most in steps:
        crew.most = steady.most = most
        assert 1 <= crew.threads(tokens) <= most
        assert steady.threads(tokens) == (most if tokens > 1 else 1)
        for one in (crew, steady):
            one.learn(tokens, one.threads(tokens), elapsed_s)
