"""Loops are seen, ordinary long text is not; steps are bounded and never repeated."""

import agent_bank as bank
import pytest

from node.agent.repetition import RepeatedSteps, RepeatedText


def feed(text: str, size: int) -> tuple[bool, str | None]:
    watch = RepeatedText()
    seen = [watch.feed(text[at : at + size]) for at in range(0, len(text), size)]
    return any(seen), watch.reason


@pytest.mark.parametrize("size", [1, 3, 40, 4000])
@pytest.mark.parametrize("text", [
    "This is a sentence that goes on. " * 9, "yes, " * 60, "The answer is:\n" + "I cannot do that for you.\n" * 6,
    "Ok. " + "one two three four five six seven eight nine ten eleven twelve, " * 5,
])
def test_a_text_in_circles(text: str, size: int) -> None:
    stopped, reason = feed(text, size)
    assert stopped
    assert reason is not None
    assert "repeated" in reason


@pytest.mark.parametrize("text", [
    (bank.DATA / "README.md").read_text() * 1, (bank.DATA / "tools.json").read_text()[:6000],
    "\n".join(f"{n}. step number {n} of the plan" for n in range(80)), "no no no", "ha " * 8,
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n",
])
def test_ordinary_text_runs_on(text: str) -> None:
    assert feed(text, 7) == (False, None)


def test_steps_are_bounded_and_not_repeated() -> None:
    steps = RepeatedSteps(limit=3)
    assert steps.step("note_read", "a") is None
    assert "twice" in (steps.step("note_read", "a") or "")
    assert steps.step("note_read", "b") is None
    assert steps.step("think", "c") is None
    assert "3 steps" in (steps.step("think", "d") or "")
    assert steps.taken == 3
