"""Bare hours beside words for meals and evenings: dinner at 7 is 19:00, breakfast at 6 is 6:00, all else as it was."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from agent_node import World, fill_folder, world

from node.agent.events import ApprovalNeeded
from node.agent.ports import AnswerKind
from node.agent.readers.windows import Locale, read_when

BERLIN = ZoneInfo("Europe/Berlin")
HERE = Locale(BERLIN)
NOW = datetime(2026, 3, 18, 9, 30, tzinfo=BERLIN).astimezone(UTC)


@pytest.fixture
def one(tmp_path: Path) -> World:
    fill_folder(tmp_path)
    return world(tmp_path)


@pytest.mark.parametrize(("text", "minute"), [
    ("dinner at 7", 1140), ("book dinner on Friday at 7", 1140), ("add dinner with Bo on Saturday at seven", 1140),
    ("pencil in drinks with Lee for Saturday at eight", 1200), ("supper at half past seven", 1170),
    ("cinema tomorrow at 9", 1260), ("theatre at 7:30", 1170), ("put the concert on my calendar for Friday at 8", 1200),
    ("birthday party on Sunday at 7", 1140), ("school concert at 7", 1140),
    ("parents' evening at seven", 1140), ("opera: Friday, 7 o'clock", 1140),
    ("on Friday at 8 cinema with Jo", 1200), ("meet Ann and Lee at 8 for drinks", 1200),
    ("book a table at 8 for dinner", 1200), ("am I free at 7 for a drink", 1140), ("at 9 we go to the theatre", 1260),
    ("breakfast at 7", 420), ("breakfast with Ann at 6", 360), ("meet Ann at 6:30 for breakfast", 390),
    ("lunch at 1", 780), ("lunch at 12", 720), ("lunch at 11:30", 690), ("brunch at 11", 660),
])
def test_the_word_says_which_half_a_bare_hour_is_in(text: str, minute: int) -> None:
    assert read_when(text, NOW, HERE).fixed_min == minute


@pytest.mark.parametrize(("text", "minute"), [
    ("party at 10am", 600), ("dinner at 07:00", 420), ("party at 10 in the morning", 600), ("dinner at 12", 720),
    ("dinner at 18:30", 1110), ("at 8", 480), ("meeting at 9", 540), ("dentist at 7", 420), ("call Ann at 6", 1080),
    ("remind me to buy drinks at 9", 540), ("remind me at 9 to order the dinner", 540),
    ("remind me to book the theatre at 10", 600), ("meeting about the party at 9", 540),
    ("pick up the concert tickets at 10", 600), ("party planning meeting at 9", 540), ("call the cinema at 10", 600),
    ("after the party, breakfast at 8", 480), ("dinner with Bo. Dentist at 9", 540), ("no dinner, train at 8", 480),
    ("kids party at 10", 600), ("the children's party at 11", 660), ("put kids’ party on Saturday at 10", 600),
])
def test_what_was_said_or_no_word_decides_stays_as_it_was(text: str, minute: int) -> None:
    assert read_when(text, NOW, HERE).fixed_min == minute


@pytest.mark.parametrize(("text", "times"), [
    ("dinner from 7 to 9", (1140, 1260)), ("party on Friday 8-12", (1200, 1440)), ("work from 9 to 11", (540, 660)),
    ("breakfast from 6 to 7", (360, 420)), ("dinner from 6 to 8pm", (1080, 1200)),
])
def test_a_range_goes_by_the_same_word(text: str, times: tuple[int, int]) -> None:
    when = read_when(text, NOW, HERE)
    assert (when.fixed_min, when.end_min) == times


def test_a_party_over_midnight_is_asked_about() -> None:
    assert "over midnight" in read_when("party from 8 to 1", NOW, HERE).doubt


async def test_dinner_is_offered_in_the_evening_and_a_new_hour_for_it_as_well(one: World) -> None:
    answer = await one.ask("book dinner on Friday at 7")
    assert "19:00" in one.events.of(ApprovalNeeded)[-1].effect.text
    await one.ask("no, at 8", conversation_id=answer.conversation_id)
    assert "20:00" in one.events.of(ApprovalNeeded)[-1].effect.text


async def test_the_hour_that_answers_a_question_about_dinner_is_in_the_evening(one: World) -> None:
    answer = await one.ask("put dinner on my calendar for Friday")
    assert answer.kind is AnswerKind.ASKED
    await one.ask("at 7", conversation_id=answer.conversation_id)
    assert "19:00" in one.events.of(ApprovalNeeded)[-1].effect.text
