"""The second opinion on dates: only for a text that is nothing but a date, and never a guess."""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from agent_memory import Owner
from agent_node import fill_folder, world

from node.agent.events import ApprovalNeeded
from node.agent.foreign import understand
from node.agent.ports import AnswerKind
from node.agent.readers.second_opinion import said_again

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 18, 9, 30, tzinfo=ZONE)      # a Wednesday


@pytest.mark.parametrize(("text", "again"), [
    ("3 avril", "3 April 2026"), ("12/04/2026 08:15", "12 April 2026 at 08:15"), ("übermorgen", "20 March 2026"),
    ("le 12 avril à 15h", "12 April 2026 at 15:00"), ("15 de mayo a las 10:30", "15 May 2026 at 10:30"),
    ("12 aprile", "12 April 2026"),
])
def test_a_date_in_another_language_or_form_is_read(text: str, again: str) -> None:
    assert said_again(text, NOW, ZONE) == again


@pytest.mark.parametrize("text", [
    "Dana", "the roofer", "hello", "yes", "no", "12", "May", "sun", "mon chat", "maybe later", "", "?!", "5 Minuten",
    "12 April 2099", "x" * 61,
])
def test_what_is_no_date_is_none(text: str) -> None:
    assert said_again(text, NOW, ZONE) is None


@pytest.mark.parametrize(("day_first", "month"), [(True, "3 April 2026"), (False, "4 March 2027")])
def test_the_order_of_day_and_month_is_the_owners(day_first: bool, month: str) -> None:
    assert said_again("3/4", NOW, ZONE, day_first=day_first) == month


async def test_an_answer_to_when_may_be_in_another_language_and_its_words_are_shown(tmp_path: Path) -> None:
    fill_folder(tmp_path)
    one = world(tmp_path, owner=Owner(lambda effect: False))
    asked = await one.ask("remind me to pay the rent")
    assert (asked.kind, asked.missing) == (AnswerKind.ASKED, "when")
    answer = await one.ask("le 12 avril à 15h", conversation_id=asked.conversation_id)
    assert answer.kind is AnswerKind.DENIED
    (needed,) = [event for event in one.events.seen if isinstance(event, ApprovalNeeded)]
    assert "12 April 2026, 15:00" in needed.effect.text
    assert any('"le 12 avril à 15h", read as 12 April 2026 at 15:00' in value.source for value in needed.effect.values)


def test_a_day_that_the_tables_do_not_hold_is_read_in_a_foreign_request() -> None:
    for text in ("Was habe ich am 12.4.2026 vor?", "Cosa ho il 12/04?"):
        found = understand(text, lambda words: said_again(words, NOW, ZONE))
        assert found is not None
        assert found.english == "what do I have on 12 April 2026"
