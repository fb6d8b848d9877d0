"""Foreign text cannot drive the terminal or forge lines: one test per place that prints."""

import json
import os
import pty
import subprocess
import sys

import pytest
from click.testing import CliRunner
from typing_owner import read_until

from node.cli import main as cli
from node.cli.client import NodeClient
from node.cli.failure import CommandFailure
from node.cli.output import Session, table
from node.cli.printable import cell, json_safe, printable
from node.cli.prompts import draw_question

HOSTILE = "a\x1b]0;x\x07\x9b2J\r\u202eb\u200b\ufeff\x7f\ud800c"
FORBIDDEN = "\x1b\x07\x9b\r\u202e\u200b\ufeff\x7f\ud800"


def harmless(text: str) -> bool:
    return not any(character in text for character in FORBIDDEN)


def test_the_check_sees_the_raw_text():
    """Negative control."""
    assert not harmless(HOSTILE) and all(not harmless(one) for one in HOSTILE if one in FORBIDDEN)


@pytest.mark.parametrize(("raw", "shown"), [
    ("\x1b[2J", "\\x1b[2J"), ("\x9b", "\\x9b"), ("a\r", "a\\r"), ("\x7f", "\\x7f"), ("\u202e", "\\u202e"),
    ("\u2066", "\\u2066"), ("\u200f", "\\u200f"), ("\u200d", "\\u200d"), ("\u2060", "\\u2060"),
    ("\ufeff", "\\ufeff"), ("\udc00", "\\udc00"), ("\U000e0041", "\\U000e0041"),
    ("a\n\tb é 🙂 日本", "a\n\tb é 🙂 日本"),
])
def test_what_is_shown(raw, shown):
    assert printable(raw) == shown


def test_a_cell_is_one_line():
    assert cell("a\n\tb") == "a\\n\\tb"
    assert len(table([["a\nb", "c"]], ["X", "Y"]).splitlines()) == 2


@pytest.mark.parametrize("print_it", [
    lambda at: at.data(HOSTILE),
    lambda at: at.say(HOSTILE),
    lambda at: at.piece(HOSTILE),
    lambda at: at.data(table([[HOSTILE]], ["X"])),
], ids=["data", "say", "piece", "table"])
def test_what_a_session_prints(print_it, capsys):
    print_it(Session())
    out = capsys.readouterr()
    assert harmless(out.out + out.err) and "\\x1b" in out.out + out.err


def test_json_is_the_same_value_and_harmless(capsys):
    Session(as_json=True).data("", {"text": HOSTILE, "tag": "\U000e0041"})
    out = capsys.readouterr().out
    assert harmless(out) and json.loads(out) == {"schema": 1, "text": HOSTILE, "tag": "\U000e0041"}
    assert json.loads(json_safe('"\U000e0041"')) == "\U000e0041"


@pytest.mark.parametrize("event", [
    {"kind": "consent", "peer": HOSTILE, "why": HOSTILE, "texts": [HOSTILE], "substitutions": 0, "nets": HOSTILE},
    {"kind": "approval", "text": HOSTILE,
     "values": [{"name": HOSTILE, "shown": HOSTILE, "source": HOSTILE, "alternatives": [HOSTILE]}]},
    {"kind": "pairing", "peer_name": HOSTILE, "peer_id": HOSTILE, "trust": "home", "their_trust": "self",
     "emoji": [[HOSTILE, HOSTILE]]},
    {"kind": "other", "text": HOSTILE},
], ids=lambda event: event["kind"])
def test_questions(event):
    assert harmless(draw_question(event)) and "\\x1b" in draw_question(event)


def test_failures(capsys):
    with pytest.raises(SystemExit):
        cli._fail(CommandFailure(HOSTILE, hint=HOSTILE), as_json=False)
    err = capsys.readouterr().err
    assert harmless(err) and err.count("\\x1b") == 2


@pytest.mark.parametrize(("command", "reply"), [
    (["inbox"], [{"received": "10:00", "sender": "bea", "body": "hi\n11:00  anna:  send money" + HOSTILE}]),
    (["inbox", "--out"],
     [{"created": "10:00", "to": "bea", "state": "sent", "body": "hi\n11:00  to anna  [sent]  x" + HOSTILE}]),
    (["search", "x"], {"stayed_local": "", "asked": [], "silent": [], "hits": [
        {"origin": "bea", "title": "t", "folder": "f", "text": "hi\n\nme: my note  (own)\n  x" + HOSTILE}]}),
], ids=["inbox", "outbox", "search"])
def test_a_body_cannot_forge_another_entry(command, reply, monkeypatch):
    monkeypatch.setattr(NodeClient, "_call", lambda *_: reply)
    result = CliRunner().invoke(cli.kith, command)
    first, *rest = result.stdout.splitlines()
    assert result.exit_code == 0 and harmless(result.stdout)
    assert len(rest) >= 2 and all(line.startswith("  | ") for line in rest) and "money" not in first


def test_a_message_that_was_not_delivered_says_why_in_place_of_its_text(monkeypatch):
    over = {"created": "10:00", "to": "bea", "state": "withheld", "body": "", "reason": "It holds" + HOSTILE,
            "hint": "kith send bea TEXT" + HOSTILE}
    monkeypatch.setattr(NodeClient, "_call", lambda *_: [over])
    result = CliRunner().invoke(cli.kith, ["inbox", "--out"])
    lines = result.stdout.splitlines()
    assert result.exit_code == 0 and harmless(result.stdout)
    assert lines[0] == "10:00  to bea  [withheld]"
    assert [line.startswith(start) for line, start in zip(
        lines[1:], ("     It holds", "     -> kith send bea TEXT"), strict=True)] == [True, True]


ASK = """
import fcntl, select, sys, termios
if sys.argv[1] == "piped":
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)
from node.cli import terminal
if sys.argv[2] == "unguarded":
    terminal.termios.tcflush = lambda *_: None
print("READY", file=sys.stderr, flush=True)
select.select([2], [], [], 10)
assert terminal.can_ask()
print(terminal.confirm("Send it?", "the question"))
"""


def ask(stdin: str, guard: str, early: str, late: str) -> str:
    controller, tty = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", ASK, stdin, guard], stdin=tty if stdin == "typed" else subprocess.DEVNULL,
            stderr=tty, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )
        os.close(tty)
        with process:
            assert read_until(controller, "READY").endswith("READY")
            os.write(controller, early.encode())  # the child goes on when it is there
            assert read_until(controller, "[y/N] ").endswith("[y/N] ")
            os.write(controller, late.encode())
            return process.communicate(timeout=20)[0].splitlines()[-1]
    finally:
        os.close(controller)


@pytest.mark.parametrize("stdin", ["typed", "piped"])
@pytest.mark.parametrize(("early", "late", "allowed"), [("y\n", "n\n", "False"), ("n\n", "y\n", "True")])
def test_only_what_is_typed_after_the_question_answers_it(stdin, early, late, allowed):
    assert ask(stdin, "guarded", early, late) == allowed


def test_type_ahead_would_answer_without_the_guard():
    """Negative control."""
    assert ask("typed", "unguarded", "y\n", "n\n") == "True"
