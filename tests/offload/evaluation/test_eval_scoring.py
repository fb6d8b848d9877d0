"""Scores worked out by hand, the way values are compared, intervals from the literature, and sums."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload.evaluation.cases import Case, Tool
from offload.evaluation.chooser import Choice
from offload.evaluation.report import Scored, add_up, wilson_interval
from offload.evaluation.scoring import Score, matches, score_choice

TOOLS = [Tool(name="book"), Tool(name="cancel")]
# Two needed arguments, one that may be left out.
CASE = Case(
    case_id="1", kind="multiple", messages=[("user", "x")], tools=TOOLS, right_tool="book",
    accepted={"city": ["New York", "NYC"], "nights": [3], "breakfast": [True, ""]})
NO_TOOL = Case(case_id="2", kind="irrelevance", messages=[("user", "x")], tools=TOOLS)


def call(name="book", **arguments):
    return Choice(kind="call", name=name, arguments=arguments)


@pytest.mark.parametrize(("choice", "wanted"), [
    # city and nights wanted, both given and accepted
    (call(city="new-york", nights=3), (True, 1, 1, 1)),
    (call(city="NYC", nights=3, breakfast=True), (True, 1, 1, 1)),
    # one value of two wrong: names 2*2/(2+2), values 1/2
    (call(city="Boston", nights=3), (False, 1, 1, 1 / 2)),
    # the optional one given with a wrong value: three wanted, three given, two of three values
    (call(city="NYC", nights=3, breakfast=False), (False, 1, 1, 2 / 3)),
    # one needed argument missing: names 2*1/(2+1), values 1/2
    (call(city="NYC"), (False, 1, 2 / 3, 1 / 2)),
    # an argument that does not exist: names 2*2/(2+3), values 2/3
    (call(city="NYC", nights=3, pets=1), (False, 1, 4 / 5, 2 / 3)),
    # nothing given at all: names 0, values 0
    (call(), (False, 1, 0, 0)),
    (call("cancel", city="NYC", nights=3), (False, 0, 0, 0)),
    (Choice(kind="none"), (False, 0, 0, 0)),
    (Choice(kind="ask", text="How many nights?"), (False, 0, 0, 0)),
    (Choice(kind="broken", text="{"), (False, 0, 0, 0)),
])
def test_partial_credit_by_hand(choice, wanted):
    score = score_choice(CASE, choice)
    assert (score.right, score.tool, score.argument_names, score.argument_values) == (
        wanted[0], *map(pytest.approx, wanted[1:]))


def test_a_tool_without_arguments():
    case = Case(case_id="3", kind="simple", messages=[], tools=TOOLS, right_tool="book")
    assert score_choice(case, call()) == Score(right=True, tool=1, argument_names=1, argument_values=1)
    assert score_choice(case, call(x=1)) == Score(right=False, tool=1, argument_names=0, argument_values=0)


@pytest.mark.parametrize(("choice", "right"), [
    (Choice(kind="none"), True), (Choice(kind="ask"), True), (call(), False), (Choice(kind="broken"), False)])
def test_where_no_tool_fits_only_not_calling_is_right(choice, right):
    assert score_choice(NO_TOOL, choice) == Score(right=right)


@pytest.mark.parametrize(("given", "accepted"), [
    ("Los Angeles, CA", "los angeles CA"), ("2023-04-01", "2023/04/01"), ("it's", 'it"s'), ("x^2", "X2"),
    (5, 5.0), (5.0, 5), (True, True), (None, None), ([1, "A b"], [1, "ab"]), ([], []),
    ({"city": "Paris"}, {"city": ["Paris", "FR"]}),
    ({"city": "FR"}, {"city": ["Paris", "FR"], "zip": ["", "75000"]}),
    ([{"a": 1}, {"a": 2}], [{"a": [1]}, {"a": [3, 2]}]),
    ({"a": {"b": 1}}, {"a": [{"b": [1]}]}),
])
def test_values_that_are_accepted(given, accepted):
    assert matches(given, accepted)


@pytest.mark.parametrize(("given", "accepted"), [
    ("Paris", "Lyon"), ("5", 5), (5, "5"), (1, True), (True, 1), (0, False), (None, ""), ("", None), (5.1, 5),
    ([1, 2], [2, 1]), ([1], [1, 1]), ("a", ["a"]), (["a"], "a"), ({"city": "Paris", "x": 1}, {"city": ["Paris"]}),
    ({}, {"city": ["Paris"]}), ({"a": 1}, [{"a": [1]}]), ("x", {"a": ["x"]}),
])
def test_values_that_are_not(given, accepted):
    assert not matches(given, accepted)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=8)


@given(JSON, JSON)
def test_any_two_values_can_be_compared(one, other):
    assert matches(one, other) in (True, False)


@given(JSON)
def test_scores_stay_within_their_bounds(value):
    score = score_choice(CASE, call(city=value, nights=value))
    assert 0 <= score.argument_values <= 1 and score.argument_names == 1


@pytest.mark.parametrize(("right", "count", "low", "high"), [
    # Wilson's score interval, 95 %: 7 of 14, 0 of 10, 10 of 10, and Newcombe (1998), table I: 81 of 263, 15 of 148
    (7, 14, 0.2680, 0.7320), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662),
    (15, 148, 0.0624, 0.1605),
])
def test_the_interval(right, count, low, high):
    assert wilson_interval(right, count) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_the_sums():
    """Four cases: 30 tokens for two right ones, one retry."""
    def scored(case, choice):
        return Scored(case, choice, score_choice(case, choice))

    results = [
        scored(CASE, Choice(kind="call", name="book", arguments={"city": "NYC", "nights": 3}, output_tokens=10,
                            prompt_tokens=100)),
        scored(CASE, Choice(kind="call", name="book", arguments={"city": "NYC"}, output_tokens=8, tries=2)),
        scored(CASE, Choice(kind="none", output_tokens=5)),
        scored(NO_TOOL, Choice(kind="ask", output_tokens=7)),
    ]
    report = add_up(results, model="m", digest="d", quantisation="Q4_0", chooser="c")
    assert (report.cases, report.right, report.prompt_tokens) == (4, 2, 100)
    assert (report.output_tokens, report.retries) == (30, 1)
    assert (report.output_tokens_per_right, report.retries_per_right) == (15, 0.5)
    multiple, irrelevance = report.kinds
    assert (multiple.kind, multiple.cases, multiple.right, multiple.abstained) == ("multiple", 3, 1, 1)
    assert multiple.tool == pytest.approx(2 / 3) and multiple.argument_values == pytest.approx((1 + 0.5) / 3)
    assert multiple.argument_names == pytest.approx((1 + 2 / 3) / 3)
    assert (irrelevance.right, irrelevance.asked, irrelevance.accuracy) == (1, 1, 1.0)
    nothing = add_up(results[1:3], model="m", digest="d", quantisation="", chooser="c")
    assert nothing.output_tokens_per_right is None
