"""Thoughts stay out of the answer at every cut, and their budget is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_samples import TOOLS, answer_of, by_name, calls_of, parse, raw_of, thought_of

from offload.engine.deltas import CallFinished, Delta, ThoughtEnded
from offload.engine.formats.parser import AnswerParser
from offload.engine.thinking import ThoughtMarks, starts_inside, thought_marks

MARKS = ThoughtMarks()
CALL = "<tool_call>\n<function=clock_now>\n</function>\n</tool_call>"


def thinker(*, inside: bool = False, budget: int | None = None, name: str = "qwen-xml") -> AnswerParser:
    return AnswerParser(
        by_name(name), TOOLS, marks=MARKS, inside_thought=inside, thought_budget_tokens=budget)


def ends(deltas: list[Delta]) -> list[tuple[str, int]]:
    return [(delta.reason, delta.tokens) for delta in deltas if isinstance(delta, ThoughtEnded)]


@pytest.mark.parametrize(("inside", "text", "thought", "answer", "reasons"), [
    (True, "secret\n</think>\n\nopen", "secret", "open", ["closed"]),
    (False, "<think>\nsecret\n</think>\n\nopen", "secret", "open", ["closed"]),
    (False, "\n<think>secret</think>open", "secret", "open", ["closed"]),
    (True, "</think>open", "", "open", ["closed"]),
    (True, "\n\n</think>\n\nopen", "", "open", ["closed"]),
    (True, "a </thin b\n</think>open", "a </thin b", "open", ["closed"]),
    (True, "secret", "secret", "", ["unfinished"]),
    (True, "secret </thi", "secret </thi", "", ["unfinished"]),
    (False, "open", "", "open", []),
    (False, "What is `<think>`?", "", "What is `<think>`?", []),
    (False, "a </think> b", "", "a </think> b", []),
    (False, "</think>\n\nopen", "", "open", []),
    (False, "one\n<think>secret</think>\ntwo", "secret", "one\ntwo", ["closed"]),
    (True, "<think>\nsecret</think>open", "<think>\nsecret", "open", ["closed"]),
    (True, "a\n\nb\n</think>\n\nopen\n\nmore", "a\n\nb", "open\n\nmore", ["closed"]),
    (True, "", "", "", ["unfinished"]),
])
@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_thought_and_answer_come_apart(
    inside: bool, text: str, thought: str, answer: str, reasons: list[str], size: int,
) -> None:
    deltas = parse(thinker(inside=inside), text, (size,))
    assert raw_of(deltas) == text
    assert (thought_of(deltas), answer_of(deltas)) == (thought, answer)
    assert [reason for reason, _ in ends(deltas)] == reasons


@given(st.text(alphabet="ab </think>\n", max_size=40), st.integers(1, 9))
def test_no_part_of_a_thought_is_ever_answer(noise: str, size: int) -> None:
    """The reference: everything before the first closing mark is thought."""
    text = f"{noise}SECRET</think>OPEN"
    head, _, tail = text.partition("</think>")
    deltas = parse(thinker(inside=True), text, (size,))
    assert raw_of(deltas) == text
    assert thought_of(deltas) == head.strip()
    assert answer_of(deltas).strip() == tail.strip().removeprefix("</think>").strip() or "</think>" in tail
    assert ("SECRET" in answer_of(deltas)) == ("SECRET" in tail)


def test_a_model_that_does_not_think_keeps_its_words() -> None:
    deltas = parse(AnswerParser(by_name("generic"), TOOLS), "<think>x</think>y", (1,))
    assert answer_of(deltas) == "<think>x</think>y"


def test_the_budget_is_counted_in_tokens_of_the_thought_only() -> None:
    reader = thinker(inside=True, budget=3)
    reader.feed("one ", tokens=1)
    reader.feed("two ", tokens=1)
    assert not reader.over_budget
    reader.feed("three", tokens=1)
    assert reader.over_budget
    forced = reader.cut_thought()
    assert forced == "\n</think>\n\n"
    assert not reader.over_budget
    deltas = reader.feed(forced)
    assert ends(deltas) == [("budget", 3)]
    assert not reader.in_thought
    reader.feed("answer", tokens=50)
    assert not reader.over_budget
    assert reader.cut_thought() == ""


def test_a_thought_cut_in_the_middle_of_a_mark_still_ends() -> None:
    reader = thinker(inside=True, budget=1)
    found = reader.feed("secret </th", tokens=2)
    found += reader.feed(reader.cut_thought())
    found += reader.feed("open")
    assert thought_of(found) == "secret </th"
    assert answer_of(found) == "open"
    assert ends(found) == [("budget", 2)]


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_call_that_ends_an_unclosed_thought_is_meant(size: int) -> None:
    text = f"I need the time.\n{CALL}"
    deltas = parse(thinker(inside=True), text, (size,))
    assert raw_of(deltas) == text
    assert thought_of(deltas) == "I need the time."
    assert [call.name for call in calls_of(deltas)] == ["clock_now"]
    assert [reason for reason, _ in ends(deltas)] == ["call"]
    assert deltas.index(next(d for d in deltas if isinstance(d, ThoughtEnded))) \
        < deltas.index(next(d for d in deltas if isinstance(d, CallFinished)))


@pytest.mark.parametrize(("text", "cut", "wanted"), [
    (f"Perhaps\n{CALL}\n</think>\n\nNo.", False, 0),                # a draft
    (f"Perhaps\n{CALL}\n</think>\n\n{CALL}", False, 1),             # drafted, then made
    (f"Perhaps\n{CALL}\nor not", False, 0),
    (f"Perhaps {CALL}", False, 0),                                  # mentioned in a line
    (f"Perhaps\n{CALL}", True, 0),                                  # cut off: who knows
    ("Perhaps\n<tool_call>\n<function=clock", False, 0),
])
def test_a_call_inside_a_thought_is_a_thought(text: str, cut: bool, wanted: int) -> None:
    for size in (1, 3, 1000):
        deltas = parse(thinker(inside=True), text, (size,), cut=cut)
        assert raw_of(deltas) == text
        assert len(calls_of(deltas)) == wanted
        assert "Perhaps" in thought_of(deltas)
        assert "clock" in thought_of(deltas)
        assert answer_of(deltas) in {"", "No."}


def test_formats_whose_thoughts_hold_no_calls_keep_them() -> None:
    text = "Hm\n<|tool_call_start|>[clock_now()]<|tool_call_end|>"
    deltas = parse(thinker(inside=True, name="lfm2"), text)
    assert calls_of(deltas) == []
    assert answer_of(deltas) == ""


def test_marks_come_from_the_template_and_the_place_from_the_prompt() -> None:
    assert thought_marks(None) is None
    assert thought_marks("{{ content }}") is None
    assert thought_marks("{% if '</think>' in content %}") == MARKS
    assert thought_marks("<seed:think></seed:think>") == ThoughtMarks("<seed:think>", "</seed:think>")
    assert starts_inside("<|im_start|>assistant\n<think>\n", MARKS)
    assert not starts_inside("<|im_start|>assistant\n<think>\n\n</think>\n\n", MARKS)
    assert not starts_inside("<|im_start|>assistant\n", MARKS)
