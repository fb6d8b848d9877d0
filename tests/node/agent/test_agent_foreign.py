"""Requests in German, French, Spanish and Italian: served where the words are known, declined in words elsewhere."""

from pathlib import Path

import agent_bank as bank
import pytest
from agent_memory import Owner
from agent_node import World, fill_folder, world
from foreign_requests import LANGUAGES, load, outcome

from node.agent.events import ApprovalNeeded, Status
from node.agent.foreign import understand
from node.agent.foreign_words import TONGUES
from node.agent.ports import AnswerKind


@pytest.fixture
def one(tmp_path: Path) -> World:
    fill_folder(tmp_path)
    return world(tmp_path)


def test_no_english_request_of_the_bank_is_taken_for_another_language() -> None:
    texts = [case.text for case in bank.cases()]
    assert len(texts) > 50
    assert [text for text in texts if understand(text)] == []
    assert understand("note that the roofer comes") is None


@pytest.mark.parametrize(("text", "english"), [
    ("Erinnere mich am 3. April um 14:30 daran, die Miete zu zahlen",
     'remind me on 3 April at 14:30 about "die Miete zu zahlen"'),
    ("Rappelle-moi dans une heure d'appeler le dentiste", 'remind me in 1 hour about "appeler le dentiste"'),
    ("¿Estoy libre el lunes?", "when am I free on Monday"),
    ("Cosa ho dopodomani?", "what do I have the day after tomorrow"),
    ('Notiz: Er sagte "nein"', "note: \"Er sagte 'nein'\""),
])
def test_a_request_is_said_again_in_english_and_its_words_stay(text: str, english: str) -> None:
    found = understand(text)
    assert found is not None
    assert found.english == english


@pytest.mark.parametrize("text", [
    "Was habe ich mit Dana morgen?", "Wann hat Dana morgen Zeit?", "Erinnere mich an den Zahnarzt",
    "Erinnere mich morgen",
])
def test_what_is_said_beyond_the_known_words_is_never_dropped(text: str) -> None:
    found = understand(text)
    assert found is None or not found.english


@pytest.mark.parametrize("request_", load(), ids=lambda one: one.text)
async def test_nothing_is_called_that_was_not_asked_for(one: World, request_: object) -> None:
    found = await outcome(one, request_)      # type: ignore[arg-type]
    assert found.exact or not found.called    # right, or nothing: never another tool and never other values


async def test_most_of_the_list_is_served_in_each_language(one: World) -> None:
    for language in LANGUAGES:
        mine = [await outcome(one, request) for request in load() if request.language == language]
        assert len(mine) == 20
        assert sum(found.exact for found in mine) >= 15


async def test_a_write_is_shown_with_the_english_reading_before_the_yes(tmp_path: Path) -> None:
    fill_folder(tmp_path)
    one = world(tmp_path, owner=Owner(lambda effect: False))
    answer = await one.ask("Erinnere mich morgen um 9 Uhr an den Zahnarzt")
    assert answer.kind is AnswerKind.DENIED
    statuses = [event.text for event in one.events.seen if isinstance(event, Status)]
    assert 'Read as English: remind me tomorrow at 9:00 about "den Zahnarzt"' in statuses
    (needed,) = [event for event in one.events.seen if isinstance(event, ApprovalNeeded)]
    assert needed.effect.value("text") == "den Zahnarzt"


@pytest.mark.parametrize("tongue", TONGUES, ids=lambda tongue: tongue.name)
async def test_what_is_not_served_is_declined_in_that_language(one: World, tongue: object) -> None:
    text = next(request.text for request in load() if request.language == tongue.name and request.tool is None)
    answer = await one.ask(text)
    assert answer.kind is AnswerKind.DECLINED
    assert answer.text == tongue.apology
    assert one.thoughts.jobs == []


async def test_a_question_that_needs_no_tool_goes_to_a_model(one: World) -> None:
    answer = await one.ask("Schreib mir bitte ein Gedicht über den Herbst")
    assert answer.kind is AnswerKind.DONE
    assert len(one.thoughts.jobs) == 1
