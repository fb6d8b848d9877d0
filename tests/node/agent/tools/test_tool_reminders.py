"""Reminders through the agent: understood, confirmed, kept under the request's key, listed, cancelled, undone."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from agent_memory import Owner
from agent_node import World, fill_folder, world

from node.agent.ports import AnswerKind
from node.agent.undoing import Undone


@pytest.fixture
def one(tmp_path: Path) -> World:
    fill_folder(tmp_path)
    return world(tmp_path)


@pytest.mark.parametrize(("text", "words", "due"), [     # said on Wednesday 18 March 2026 at 9:30 in Berlin
    ("remind me to call the vet tomorrow at 9", "call the vet", datetime(2026, 3, 19, 8, 0, tzinfo=UTC)),
    ("remind me in 20 minutes about the oven", "the oven", datetime(2026, 3, 18, 8, 50, tzinfo=UTC)),
    ("don't let me forget to buy milk at 6pm", "buy milk", datetime(2026, 3, 18, 17, 0, tzinfo=UTC)),
    ("remind me on 29 March at 8 about the clocks", "the clocks", datetime(2026, 3, 29, 6, 0, tzinfo=UTC)),
])
async def test_a_reminder_is_kept_as_it_was_said(one: World, text: str, words: str, due: datetime) -> None:
    answer = await one.ask(text)
    assert (answer.kind, answer.tools_used) == (AnswerKind.DONE, ("reminder_set",))
    kept, = one.reminders.kept.values()
    assert (kept.text, kept.due) == (words, due)


async def test_without_a_time_only_the_time_is_asked_for(one: World) -> None:
    asked = await one.ask("remind me to water the plants")
    assert (asked.kind, asked.missing) == (AnswerKind.ASKED, "when")
    assert one.reminders.kept == {}
    done = await one.ask("tonight at 8", conversation_id=asked.conversation_id)
    assert done.kind is AnswerKind.DONE
    kept, = one.reminders.kept.values()
    assert (kept.text, kept.due) == ("water the plants", datetime(2026, 3, 18, 19, 0, tzinfo=UTC))


@pytest.mark.parametrize("text", [
    "don't remind me about the oven", "stop reminding me about the oven", "no need to remind me about the oven",
])
async def test_to_be_reminded_no_more_cancels(one: World, text: str) -> None:
    await one.ask("remind me in 20 minutes about the oven")
    answer = await one.ask(text)
    if answer.kind is AnswerKind.ASKED:     # not sure enough: then that is what is offered
        assert "cancel a reminder" in answer.text
    else:
        assert (answer.kind, answer.tools_used) == (AnswerKind.DONE, ("reminder_cancel",))


async def test_a_time_that_is_past_is_asked_again(one: World) -> None:
    asked = await one.ask("remind me at 5 yesterday to jump")
    assert (asked.kind, asked.missing) == (AnswerKind.ASKED, "when")
    assert one.reminders.kept == {}


@pytest.mark.parametrize(("text", "told"), [
    ("remind me to drink water every day at 9", True), ("remind me weekly on Monday at 8 about the bins", True),
    ("remind me every other Tuesday at 8 about the bins", True),
    ("remind me tomorrow at 9 to try every cheese", False), ("remind me tomorrow at 9 to greet each guest", False),
])
async def test_the_owner_is_told_before_the_yes_that_nothing_is_repeated(tmp_path: Path, text: str, told: bool) -> None:
    fill_folder(tmp_path)
    owner = Owner()
    await world(tmp_path, owner=owner).ask(text)
    shown, = owner.shown
    assert ("Nothing is repeated yet: this is for the first time only." in shown.cautions) is told


async def test_a_no_keeps_nothing(tmp_path: Path) -> None:
    fill_folder(tmp_path)
    one = world(tmp_path, owner=Owner(lambda effect: False))
    assert (await one.ask("remind me to call the vet tomorrow at 9")).kind is AnswerKind.DENIED
    assert one.reminders.kept == {}


async def test_the_list_tells_them_by_time_and_labels_their_words(one: World) -> None:
    assert (await one.ask("what reminders do I have?")).text == "No reminder is set."
    await one.ask("remind me to call the vet tomorrow at 9")
    await one.ask("remind me in 20 minutes about the oven")
    answer = await one.ask("show me my reminders")
    assert [line.rpartition(": ")[2] for line in answer.text.splitlines()[1:]] == ["the oven", "call the vet"]
    said = one.conversations.kept[answer.conversation_id].turns[-1].text
    assert {value.text for value in said.values or ()} == {"the oven", "call the vet"}


async def test_one_is_cancelled_by_its_words_and_comes_back_with_undo(one: World) -> None:
    await one.ask("remind me to call the vet tomorrow at 9")
    await one.ask("remind me in 20 minutes about the oven")
    answer = await one.ask("cancel the reminder about the oven")
    assert (answer.kind, answer.tools_used) == (AnswerKind.DONE, ("reminder_cancel",))
    assert [kept.text for kept in one.reminders.kept.values()] == ["call the vet"]
    assert await one.agent.undo() == Undone("The reminder is back: the oven")
    assert {kept.text for kept in one.reminders.kept.values()} == {"call the vet", "the oven"}
    assert await one.agent.undo() == Undone("I will not remind you: the oven")
