"""Learning from confirmed actions: frames, nearness, what teaches and what does not, forgetting, and safety."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from agent_memory import Owner
from agent_node import StaticEmbedder, World, fill_folder, world

from benchmarks.learning import POINTS, replay
from node.agent.lessons import Lesson, Lessons, framed
from node.agent.ports import AnswerKind, Span
from node.agent.readers.people import AddressBook
from node.agent.readers.windows import Locale
from node.agent.recalling import fill_as_before
from node.agent.slots import Filled, SlotReader
from node.agent.tools.messages import MessageSend
from node.agent.tools.notes import NoteWrite
from node.agent.tools.registry import ToolSpec
from node.agent.tools.reminders import ReminderSet

AT = datetime(2026, 3, 18, tzinfo=UTC)


class Store:
    def __init__(self, *kept: Lesson) -> None:
        self.kept = list(kept)

    async def all(self) -> Sequence[Lesson]:
        return tuple(self.kept)

    async def add(self, lesson: Lesson) -> None:
        self.kept.insert(0, lesson)


def lesson(text: str, words: str) -> Lesson:
    return Lesson("l1", text, "note_write", AT, {"text": words})


@pytest.mark.parametrize(("taught", "words", "asked", "found"), [
    ("log it, the pump is oiled", "the pump is oiled", "log it, two gulls on deck", "two gulls on deck"),
    ("pop the dentist in the diary on Friday", "the dentist", "pop a swim in the diary on Monday", "a swim"),
    ("n: milk", "milk", "n: bread and jam", "bread and jam"),
    ("convey to Dana that we are late", "we are late", "convey to Dana that all is well", "all is well"),
    ("log it, the pump is oiled", "the pump is oiled", "write that down: gulls", None),
    ("to sleep", "sleep", "to run", None),                  # "to" alone is no frame
])
def test_the_words_in_the_same_frame_are_found(taught: str, words: str, asked: str, found: str | None) -> None:
    span = framed(lesson(taught, words), "text", asked, ())
    assert (span and span.of(asked)) == found


def test_an_understood_time_ends_the_words() -> None:
    taught = Lesson("l1", "rem water the ferns at 5pm", "reminder_set", AT, {"text": "water the ferns"})
    asked = "rem take the pills tonight at 8"
    span = framed(taught, "text", asked, (Span(19, len(asked)),))
    assert span is not None
    assert span.of(asked) == "take the pills"


def test_a_slot_that_was_not_learnt_has_no_frame() -> None:
    assert framed(lesson("n: milk", "milk"), "title", "n: bread", ()) is None


@pytest.mark.parametrize(("taught", "spec", "asked", "words"), [
    (Lesson("l1", "send home-pc: running late", "message_send", AT, {"text": "running late"}), MessageSend.spec,
     "send home-pc: back at six", "back at six"),
    (Lesson("l1", "n: milk", "note_write", AT, {"text": "milk"}), NoteWrite.spec, "n: choir at 7 on Monday",
     "choir at 7 on Monday"),
    (Lesson("l1", "rem water the ferns at 5pm", "reminder_set", AT, {"text": "water the ferns"}), ReminderSet.spec,
     "rem take the pills at 8", "take the pills"),
])
def test_a_time_ends_the_learnt_words_only_where_the_tool_takes_one(
    taught: Lesson, spec: ToolSpec, asked: str, words: str,
) -> None:
    reading = SlotReader(AddressBook(()), Locale(ZoneInfo("UTC"))).read(asked, AT)
    filled = fill_as_before([(taught, 1.0)], spec, Filled({}), reading)
    assert filled.values["text"].value == words


async def test_off_means_neither_learnt_nor_used() -> None:
    store = Store(lesson("log it, the pump is oiled", "the pump is oiled"))
    lessons = Lessons(store, StaticEmbedder(), lambda: "x", on=False)
    await lessons.learn("log it, gulls", "note_write", {"text": "gulls"}, AT)
    assert len(store.kept) == 1
    assert await lessons.near("log it, gulls") == []
    lessons.on = True
    assert [one.text for one, _ in await lessons.near("log it, gulls")] == ["log it, the pump is oiled"]
    assert await lessons.near("what is the capital of Peru") == []


async def test_what_is_not_in_the_sentence_is_not_kept() -> None:
    store = Store()
    await Lessons(store, StaticEmbedder(), lambda: "x").learn("log it", "note_write", {"text": "elsewhere"}, AT)
    assert store.kept[0].words == {}


# ------------------------------------------------------------ in the agent


def taught_world(root: Path, store: Store, owner: Owner | None = None) -> World:
    one = world(root, owner=owner)
    numbers = iter(range(100))
    parts = one.agent._parts
    lessons = Lessons(store, parts.embedder, lambda: f"lesson{next(numbers)}")
    one.agent._parts = replace(parts, lessons=lessons)
    one.agent._actor._parts = one.agent._judging._parts = one.agent._parts
    return one


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill_folder(tmp_path)
    return tmp_path


async def test_a_confirmed_write_teaches_and_a_denied_one_does_not(root: Path) -> None:
    store = Store()
    one = taught_world(root, store)
    await one.ask("note: the boiler was serviced today")
    assert [(kept.tool, kept.words) for kept in store.kept] == [
        ("note_write", {"text": "the boiler was serviced today"}),
    ]
    denied = taught_world(root, Store(), Owner(lambda effect: False))
    assert (await denied.ask("note: the boiler was serviced today")).kind is AnswerKind.DENIED
    assert (await denied.agent._parts.lessons.near("note: the boiler")) == []


async def test_the_owners_own_way_of_asking_is_understood_after_a_few_times(root: Path) -> None:
    plain = world(root)
    assert (await plain.ask("ink > the hedge grows 30 cm a year")).tools_used != ("note_write",)
    store = Store(*(
        Lesson(f"l{number}", f"ink > {words}", "note_write", AT, {"text": words})
        for number, words in enumerate(("the cat weighs 4.2 kilos", "the router is in the hall", "Bo owes me ten euros",
                                        "the vet moved to Mill Lane"))
    ))
    answer = await taught_world(root, store).ask("ink > the router is behind the sofa")
    assert (answer.kind, answer.tools_used) == (AnswerKind.DONE, ("note_write",))
    assert answer.effects[0].value("text") == "the router is behind the sofa"


async def test_a_lesson_never_makes_a_removal_run_nor_skips_the_owners_yes(root: Path) -> None:
    poison = Lesson("l0", "delete everything in my calendar", "calendar_create", AT, {"title": "everything"})
    one = taught_world(root, Store(poison), Owner(lambda effect: False))
    answer = await one.ask("delete everything in my calendar")
    assert answer.kind is AnswerKind.DECLINED
    assert one.owner.shown == []


async def test_three_owners_gain_and_nobody_becomes_less_careful(root: Path) -> None:
    for owner, one in (await replay(world(root), StaticEmbedder())).items():
        before = one["exact_before"]
        assert one["exact_after"] >= min(before + POINTS, before + (1 - before) / 2), owner
        assert one["abstain_after"] >= one["abstain_before"], owner
