"""A number with its noun, and the places that show one to the owner."""

from typing import Any

import pytest

from node.cli.cmd_ledger import _intact
from node.cli.cmd_mode import render
from node.cli.cmd_share import _draw_preview
from node.cli.cmd_status import _queue
from node.counting import counted


@pytest.mark.parametrize(("number", "words", "text"), [
    (0, ("peer",), "0 peers"), (1, ("peer",), "1 peer"), (2, ("peer",), "2 peers"),
    (1, ("entry", "entries"), "1 entry"),
    (0, ("entry", "entries"), "0 entries"), (1000, ("message waits", "messages wait"), "1,000 messages wait"),
])
def test_only_one_is_one(number: int, words: tuple[str, ...], text: str) -> None:
    assert counted(number, *words) == text


@pytest.mark.parametrize(("count", "says"), [(1, "1 entry, chain intact"), (2, "2 entries, chain intact")])
def test_a_verified_ledger(count: int, says: str) -> None:
    report = {"entries": count, "head": "ab", "first": 1, "asked": 1, "came": 0, "receipts": {}}
    lines = _intact(report).splitlines()
    assert lines[0].startswith(says)
    assert lines[1] == "asked for 1 receipt, 0 came"


def test_a_share_of_one_document() -> None:
    view = {"documents": 1, "withheld": 1, "folder": "/papers", "peers": ["phone"], "personal_hits": []}
    assert _draw_preview(view).splitlines() == [
        "1 document in /papers would be searchable, in clear, by: phone.",
        "1 passage holds secrets and is never handed out."]


def test_one_request_that_waits() -> None:
    shown = _queue({"waiting_requests": 1, "undecided_requests": 0, "new_answers": 1})
    assert shown.startswith("1 request waits for a better answer, 1 better answer is new ")


@pytest.mark.parametrize(("effective", "why", "line"), [
    ("lan", "as you chose; nobody is here", "lan   (as you chose; nobody is here)"),
    ("offline", "the connection is metered", "offline   you chose lan   (the connection is metered)"),
])
def test_a_mode_says_once_who_chose_it(effective: str, why: str, line: str) -> None:
    view: dict[str, Any] = {
        "effective": effective, "chosen": "lan", "why": why, "listening": [], "peers_here": 0, "in_the_way": [],
        "on_battery": False, "changes": []}
    assert render(view).splitlines()[0] == line
