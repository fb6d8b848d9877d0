"""Sums that are shared or paid for several: worked out by code when nothing else is asked, by values worked by hand."""

from pathlib import Path

import pytest
from agent_node import World, fill_folder, world
from hypothesis import given
from hypothesis import strategies as st

from node.agent.readers.quantities import evaluate
from node.agent.readers.shares import numbers_used, sharing


@pytest.fixture
def one(tmp_path: Path) -> World:
    fill_folder(tmp_path)
    return world(tmp_path)


@pytest.mark.parametrize(("text", "result"), [
    ("split 86.40 between 4 people", "= 21.6"), ("split 86,40 by four", "= 21.6"), ("split 86.40 4 ways", "= 21.6"),
    ("please split the bill of 86.40 between 4 people", "= 21.6"), ("split $86.40 four ways", "= 21.6"),
    ("divide 86.40 among 3", "= 28.8"), ("86.40 euros between 4 people", "= 21.6"),
    ("how much is each share if 4 people split 86.40?", "= 21.6"), ("share 120 euros between 3 friends", "= 40"),
    ("split 1,200 euros between me and 3 friends", "= 300"), ("split 90 evenly between us three", "= 30"),
    ("7 tickets at 12 euros each", "= 84"), ("12 euros each for 7 people", "= 84"), ("8% of 250 euros", "= 20"),
    ("how much is 7 times 12 euros", "= 84"),
    ("what's 250 minus 75 euros", "= 175"), ("$40 plus $2.50", "= 42.5"), ("5 euros plus 3 euros", "= 8"),
    ("total of 12.5, 13 and 4", "= 29.5"), ("split 1234567.89 between 2 people", "1234567.89 / 2 = 617283.945"),
])
async def test_it_is_worked_out_by_code(one: World, text: str, result: str) -> None:
    answer = await one.ask(text)
    assert answer.tools_used == ("work_out",)
    assert answer.text.endswith(result)
    assert one.thoughts.jobs == []


@pytest.mark.parametrize("text", [
    "split the bill of 86.40 plus 10% tip between 4 people", "split 86.40 between 4 and 5 people",
    "split 86.40 between 0 people",
    "how much is 5 dollars 50 times 3", "100 dollars minus 20 euros", "what is 3 times 4 apples and 5 pears 6",
    "split the notes between 4 people", "share my notes with 2 friends", "split 10 minutes between 4 people",
    "note: split 86.40 between 4 people", "meet 2 people at 5 each", "between 2 and 5", "split 3.5 between 2.5 people",
])
async def test_what_would_leave_something_out_is_not(one: World, text: str) -> None:
    assert "work_out" not in (await one.ask(text)).tools_used


def test_a_number_that_is_left_out_is_seen() -> None:
    assert numbers_used("3 times 4", "3 * 4")
    assert numbers_used("15% of 240", "15 / 100 * 240")
    assert not numbers_used("5 dollars 50 times 3", "50 * 3")       # the control: the reader alone takes 50 * 3


@given(st.integers(1, 10**7), st.integers(1, 99))
def test_the_share_times_the_heads_is_the_sum(cents: int, heads: int) -> None:
    code = sharing(f"split {cents // 100}.{cents % 100:02} between {heads} people")
    assert code is not None
    value = evaluate(code)
    assert value is not None
    assert round(value * heads * 100) == cents
