"""Ranges of hours that end before they begin: asked about, never read as another start."""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from agent_node import World, fill_folder, world

from node.agent.ports import AnswerKind
from node.agent.readers.windows import Locale, read_when

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 18, 9, 30, tzinfo=BERLIN)


@pytest.fixture
def one(tmp_path: Path) -> World:
    fill_folder(tmp_path)
    return world(tmp_path)


@pytest.mark.parametrize(("said", "start", "lasts"), [
    ("8pm to 6pm", "20:00", "22 hours"), ("from 8pm to 6pm", "20:00", "22 hours"), ("8pm-6pm", "20:00", "22 hours"),
    ("between 8pm and 6pm", "20:00", "22 hours"), ("from 10pm to 2am", "22:00", "4 hours"),
    ("22:00-06:00", "22:00", "8 hours"), ("from 20:00 to 6:15", "20:00", "10 hours 15 minutes"),
    ("5pm to 3", "17:00", "10 hours"), ("from 9am to 9am", "9:00", "24 hours"), ("at 8pm to 6pm", "20:00", "22 hours"),
])
def test_nothing_is_made_of_a_range_that_ends_before_it_begins(said: str, start: str, lasts: str) -> None:
    when = read_when(f"a shift tomorrow {said}", NOW, Locale(BERLIN))
    assert (when.said, when.start(NOW), when.rough_start(NOW), when.periods(NOW)) == (False, None, None, ())
    assert f'"at {start} for {lasts}"' in when.doubt
    assert said.removeprefix("at ") in when.doubt


@pytest.mark.parametrize(("said", "minutes"), [        # the control: ranges that do end after they begin
    ("6pm to 8pm", (1080, 1200)), ("from 8 to 6", (480, 1080)), ("8pm till midnight", (1200, 1440)),
    ("from 12pm to 12am", (720, 1440)), ("from 11 to 1", (660, 780)), ("from 8pm to 11pm", (1200, 1380)),
    ("9-5pm", (540, 1020)), ("from midnight to 2am", (0, 120)),
])
def test_a_range_in_its_order_is_read_as_before(said: str, minutes: tuple[int, int]) -> None:
    when = read_when(f"a shift tomorrow {said}", NOW, Locale(BERLIN))
    assert (when.doubt, when.fixed_min, when.end_min) == ("", *minutes)


@pytest.mark.parametrize("text", [
    "put a shift on my calendar tomorrow {}", "book a meeting with Ravi about the boiler tomorrow {}",
    "remind me to check the oven tomorrow {}", "when am I free tomorrow {}", "what's on my calendar tomorrow {}",
])
@pytest.mark.parametrize("said", ["8pm to 6pm", "from 10pm to 2am"])
async def test_it_is_asked_what_is_meant(one: World, text: str, said: str) -> None:
    answer = await one.ask(text.format(said))
    assert (answer.kind, answer.missing in {"when", "start"}) == (AnswerKind.ASKED, True)
    assert "ends before it begins" in answer.text
    assert one.owner.shown == []


@pytest.mark.parametrize(("reply", "start", "end"), [
    ("at 20:00 for 22 hours", "2026-03-19T20:00", "2026-03-20T18:00"),
    ("at 6pm for two hours", "2026-03-19T18:00", "2026-03-19T20:00"),
    ("from 6pm to 8pm", "2026-03-19T18:00", "2026-03-19T20:00"),
    ("on Friday at 8pm for an hour", "2026-03-20T20:00", "2026-03-20T21:00"),
])
async def test_the_answer_gives_start_and_length_and_the_day_is_kept(
    one: World, reply: str, start: str, end: str,
) -> None:
    asked = await one.ask("put a shift on my calendar tomorrow from 8pm to 6pm")
    await one.ask(reply, conversation_id=asked.conversation_id)
    shown = one.owner.shown[0]
    times = [datetime.fromisoformat(str(shown.value(name))).astimezone(BERLIN) for name in ("start", "end")]
    assert [f"{moment:%Y-%m-%dT%H:%M}" for moment in times] == [start, end]


async def test_the_same_slip_in_the_answer_is_not_taken(one: World) -> None:
    asked = await one.ask("put a shift on my calendar tomorrow")
    again = await one.ask("from 8pm to 6pm", conversation_id=asked.conversation_id)
    assert (again.kind, again.missing, one.owner.shown) == (AnswerKind.ASKED, "start", [])


async def test_beside_another_hour_it_is_part_of_the_words(one: World) -> None:
    await one.ask("remind me at 5 that the shop is open 8pm to 6pm")
    kept, = one.reminders.kept.values()
    assert kept.due.astimezone(BERLIN).hour == 17
