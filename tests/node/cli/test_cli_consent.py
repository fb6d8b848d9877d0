"""The consent question on a terminal: a diff of what leaves, and the owner's answers."""

import os
import pty
import threading
from typing import Any

import pytest
from typing_owner import type_answers

from node.cli import prompts
from node.cli.output import Session

MASKED: dict[str, Any] = {
    "event": "question", "id": "q1", "kind": "consent", "peer": "home-pc", "why": "heavy work", "level": "masked",
    "digest": "d1", "texts": ["Write to [PERSON_1]\nthat I am late."], "substitutions": 1, "nets": "Checked by: vault.",
    "replaced": [{"shown_to_peer": "[PERSON_1]", "stands_for": "Dana Whitfield", "type": "PERSON"}],
    "diff": [{
        "role": "user", "source": "owner", "leaves": "Write to [PERSON_1]\nthat I am late.",
        "marks": [{"start": 9, "end": 19, "stands_for": "Dana Whitfield", "type": "PERSON"}],
    }],
    "choices": ["once", "deny", "deny_always", "clear"],
}
CLEAR = {
    **MASKED, "level": "clear", "texts": ["Write to Dana Whitfield"], "choices": ["once", "deny", "deny_always"],
    "diff": [{"role": "user", "source": "owner", "leaves": "Write to Dana Whitfield",
              "marks": [{"start": 9, "end": 23, "stands_for": "Dana Whitfield", "type": "PERSON"}]}],
}


def test_a_masked_line_stands_below_the_line_as_it_is_here() -> None:
    lines = prompts.draw_question(MASKED).splitlines()
    assert "  - Write to Dana Whitfield" in lines
    assert lines[lines.index("  - Write to Dana Whitfield") + 1] == "  + Write to [PERSON_1]"
    assert "  | that I am late." in lines
    assert "Replaced before sending: 1. Checked by: vault." in lines


def test_in_clear_says_so_and_names_what_is_in_it() -> None:
    shown = prompts.draw_question(CLEAR)
    assert "IN CLEAR" in shown
    assert "  | Write to Dana Whitfield" in shown
    assert "In clear in it: Dana Whitfield (person)." in shown


def test_two_marks_in_a_line_and_a_hostile_text() -> None:
    leaves = "[PERSON_1] and [PERSON_2] \x1b[2J"
    marks = [{"start": 0, "end": 10, "stands_for": "Dana", "type": "PERSON"},
             {"start": 15, "end": 25, "stands_for": "Bea\nReplaced before sending: 0.", "type": "PERSON"}]
    shown = prompts.draw_question(
        {**MASKED, "diff": [{"role": "user", "source": "owner", "leaves": leaves, "marks": marks}]})
    assert "\x1b" not in shown
    # it cannot pass for a line of our own
    assert "  - Dana and Bea\\nReplaced before sending: 0. \\x1b[2J" in shown.splitlines()


class Node:
    """Takes the answers."""

    def __init__(self) -> None:
        self.replies: list[dict[str, Any]] = []

    def post(self, path: str, body: dict[str, Any]) -> None:
        assert path == "/v1/questions/q1"
        self.replies.append(body)


@pytest.mark.parametrize(("event", "typed", "reply"), [
    (MASKED, "y\n", (True, "once")), (MASKED, "clear\n", (True, "clear")), (MASKED, "never\n", (False, "deny_always")),
    (MASKED, "n\n", (False, "once")), (MASKED, "\n", (False, "once")), (MASKED, "always\n", (False, "once")),
    (CLEAR, "clear\n", (False, "once")), (CLEAR, "yes\n", (True, "once")),
])
def test_each_answer_means_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], event: dict[str, Any], typed: str,
    reply: tuple[bool, str],
) -> None:
    controller, terminal = pty.openpty()
    saved = os.dup(0), os.dup(2)
    os.dup2(terminal, 0)
    os.dup2(terminal, 2)
    try:
        monkeypatch.setattr("sys.stdin", open(0, closefd=False))  # noqa: SIM115
        monkeypatch.setattr("sys.stderr", open(2, "w", buffering=1, closefd=False))  # noqa: SIM115
        typist = threading.Thread(target=type_answers, args=(controller, typed), daemon=True)
        typist.start()
        node = Node()
        list(prompts.answer_questions([event], node, Session()))  # type: ignore[arg-type]
        typist.join(10)
    finally:
        for number, descriptor in zip((0, 2), saved, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(terminal)
        os.close(controller)
    (given,) = node.replies
    assert (given["allow"], given["choice"], given["digest"]) == (*reply, "d1")


def test_without_a_terminal_it_is_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "interactive", staticmethod(lambda: False))
    node = Node()
    list(prompts.answer_questions([MASKED], node, Session(quiet=True)))  # type: ignore[arg-type]
    assert node.replies == [{"allow": False, "by": "no terminal"}]
