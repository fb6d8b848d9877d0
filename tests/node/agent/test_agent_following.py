"""A message in the light of the ones before it: corrections, undo, "her number", two goals; over a restart as well."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from agent_memory import MemoryConversations, MemoryJournal, Owner
from agent_node import World, fill_folder, world

from node.agent.following import correction, only_refused, split_goals, wants_undo, with_name
from node.agent.ports import Answer, AnswerKind


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill_folder(tmp_path)
    return tmp_path


@pytest.fixture
def one(root: Path) -> World:
    return world(root)


def contents(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def talk(one: World, *texts: str) -> list[Answer]:
    """The answers to one conversation."""
    answers: list[Answer] = []
    for text in texts:
        answers.append(await one.ask(text, conversation_id=answers[-1].conversation_id if answers else None))
    return answers


# ------------------------------------------------------------ words


@pytest.mark.parametrize(("text", "words"), [
    ("no, Tuesday", "Tuesday"), ("make it an hour", "an hour"), ("sorry, I meant Friday", "Friday"),
    ("actually 10:30", "10:30"), ("change it to noon please", "noon"), ("wait, with Priya", "with Priya"),
    ("no, make that 45 minutes instead", "45 minutes"), ("what about lunch", None), ("remind me at five", None),
    ("no", None), ("make it an hour earlier", None), ("no, 20 minutes later", None),
    ("make it later today", "later today"), ("not Monday, Tuesday", "Tuesday"), ("no I said Tuesday", "Tuesday"),
    ("Tuesday, not Monday", "Tuesday"), ("on Tuesday instead", "on Tuesday"), ("no, not Monday but Friday", "Friday"),
    ("not now, later", None), ("tea instead", None),
])
def test_corrections_are_told_from_other_messages(text: str, words: str | None) -> None:
    assert correction(text) == words


@pytest.mark.parametrize(("text", "parts"), [
    ("remind me to buy milk at 8 and tell Dana I am late", ("remind me to buy milk at 8", "tell Dana I am late")),
    ("what time is it in Oslo; show my agenda", ("what time is it in Oslo", "show my agenda")),
    ("read the note. Then remind me at five", ("read the note", "remind me at five")),
    ("note: buy bread and butter", ("note: buy bread and butter",)),
    ("tell Dana and Priya that we won", ("tell Dana and Priya that we won",)),
    ("book lunch with Dana and Ravi and me", ("book lunch with Dana and Ravi and me",)),
])
def test_goals_are_split_only_before_a_verb_of_asking(text: str, parts: tuple[str, ...]) -> None:
    assert split_goals(text) == parts


@pytest.mark.parametrize(("text", "undo"), [
    ("undo", True), ("please undo that", True), ("take it back", True), ("undo my tie", False), ("redo", False),
])
def test_undo_is_the_whole_message_or_none(text: str, undo: bool) -> None:
    assert wants_undo(text) is undo


@pytest.mark.parametrize(("text", "named"), [
    ("what is her number", "what is Dana Whitfield's number"), ("tell him I am late", "tell Dana Whitfield I am late"),
    ("and his work email please", "and Dana Whitfield's work email please"), ("that is theirs", "that is theirs"),
    ("I like her", "I like her"),
])
def test_only_a_pronoun_in_a_persons_place_is_filled(text: str, named: str) -> None:
    assert with_name(text, "Dana Whitfield") == named
    assert with_name(text, None) == text


# ------------------------------------------------------------ corrections in the agent


async def test_a_correction_replaces_the_write_it_corrects(one: World) -> None:
    answers = await talk(one, "remind me to call the vet tomorrow at 9", "no, Friday", "make it 10:30")
    assert [answer.kind for answer in answers] == [AnswerKind.DONE] * 3
    kept, = one.reminders.kept.values()
    assert (kept.text, kept.due) == ("call the vet", datetime(2026, 3, 20, 9, 30, tzinfo=UTC))
    assert "I will not remind you" in answers[1].text


async def test_a_correction_that_is_denied_leaves_the_first_in_place(root: Path) -> None:
    yes = iter([True, False])
    one = world(root, owner=Owner(lambda effect: next(yes)))
    answers = await talk(one, "remind me to call the vet tomorrow at 9", "no, Friday")
    assert answers[1].kind is AnswerKind.DENIED
    kept, = one.reminders.kept.values()
    assert kept.due == datetime(2026, 3, 19, 8, 0, tzinfo=UTC)


async def test_a_booking_can_grow_into_the_time_that_it_took_itself(one: World) -> None:
    before = one.calendar_text().count("BEGIN:VEVENT")
    answers = await talk(one, "add lunch with Dana on Monday at noon", "make it an hour and a half")
    assert answers[1].kind is AnswerKind.DONE, answers[1].text
    assert one.calendar_text().count("BEGIN:VEVENT") == before + 1
    assert answers[1].effects[0].value("duration") == 90


async def test_a_correction_outlives_a_restart(root: Path) -> None:
    journal, conversations = MemoryJournal(), MemoryConversations()
    first = world(root, journal=journal, conversations=conversations)
    answer = await first.ask("note: the boiler was serviced")
    later = world(root, journal=journal, conversations=conversations)
    undone = await later.ask("undo that", conversation_id=answer.conversation_id)
    assert "gone again" in undone.text


async def test_no_that_corrects_nothing_is_a_request_of_its_own(one: World) -> None:
    answers = await talk(one, "what time is it in Tokyo?", "no, what's on my calendar tomorrow")
    assert answers[1].tools_used == ("calendar_list",)


@pytest.mark.parametrize(("today", "first", "then", "day"), [     # by the calendar of March 2026; the 16th is a Monday
    (16, "next Monday", "no, Tuesday", (3, 24)), (18, "next Monday", "no, Tuesday", (3, 24)),
    (16, "next Monday", "not Monday, Tuesday", (3, 24)), (16, "next Monday", "I said Friday", (3, 27)),
    (16, "on 31 March", "no, Wednesday", (4, 1)), (16, "on 31 March", "Thursday instead", (4, 2)),
    (18, "on Friday", "no, Monday", (3, 23)),             # that week's Monday is over
    (16, "next Monday", "no, Tuesday 17 March", (3, 17)), (16, "next Monday", "no, this Tuesday", (3, 17)),
    (16, "next Monday", "no, tomorrow", (3, 17)),
])
async def test_a_bare_weekday_is_meant_in_the_week_of_the_day_it_corrects(
    one: World, today: int, first: str, then: str, day: tuple[int, int],
) -> None:
    one.clock.at = one.clock.at.replace(day=today)
    await talk(one, f"remind me to call the vet {first} at 9", then)
    kept, = one.reminders.kept.values()
    assert (kept.text, (kept.due.month, kept.due.day)) == ("call the vet", day)


async def test_each_correction_counts_from_the_one_before(one: World) -> None:
    one.clock.at = one.clock.at.replace(day=16)
    await talk(one, "remind me to call the vet next Monday at 9", "no, Tuesday", "no, Friday at 10", "sorry, Saturday")
    kept, = one.reminders.kept.values()
    assert kept.due == datetime(2026, 3, 28, 9, 0, tzinfo=UTC)      # Saturday of that week at 10 in Berlin


async def test_a_booking_takes_the_corrected_day_too(one: World) -> None:
    one.clock.at = one.clock.at.replace(day=16)
    answers = await talk(one, "book an hour with Ravi about the boiler next Monday", "no, Tuesday")
    assert str(answers[1].effects[0].value("start")).startswith("2026-03-24")
    assert one.calendar_text().count("SUMMARY:Boiler") == 1


async def test_what_could_not_be_booked_is_tried_on_the_corrected_day(one: World) -> None:
    answers = await talk(one, "book an hour with Ravi about the boiler on Monday at 10", "no, Tuesday")
    assert (answers[0].effects, answers[1].tools_used) == ((), ("book_meeting", "calendar_create"))
    assert str(answers[1].effects[0].value("start")) == "2026-03-24T09:00:00+00:00"       # 10 in Berlin


@pytest.mark.parametrize(("first", "slot", "answer", "part"), [
    ("put an event on my calendar next Monday at 8", "title", "dentist", '"dentist" on Tuesday 24 March 2026, 08:00'),
    ("put dentist on my calendar next Monday", "start", "at 8", '"dentist" on Tuesday 24 March 2026, 08:00'),
    ("remind me next Monday", "text", "call the vet", "on Tuesday 24 March 2026, 09:00: call the vet"),
])
async def test_a_correction_while_a_question_is_open_is_not_its_answer(
    one: World, first: str, slot: str, answer: str, part: str,
) -> None:
    one.clock.at = one.clock.at.replace(day=16)
    answers = await talk(one, first, "no, Tuesday", answer)
    assert [(one.kind, one.missing) for one in answers[:2]] == [(AnswerKind.ASKED, slot)] * 2
    assert answers[1].text.startswith("All right: Tuesday. ")
    assert part in answers[2].text


@pytest.mark.parametrize(("first", "answer"), [
    ("message Dana", "no, Tuesday is better"), ("message Dana", "no, Tuesday"), ("take a note", "sorry, Friday"),
])
async def test_an_answer_that_corrects_nothing_said_before_stays_the_answer(
    one: World, first: str, answer: str,
) -> None:
    await talk(one, first, answer)
    assert next(value.value for value in one.owner.shown[0].values if value.name == "text") == answer


async def test_a_corrected_recipient_takes_the_place_of_the_first(one: World) -> None:
    await talk(one, "tell Dana I am late", "no, Priya")
    assert [to for to, _, _ in one.postbox.sent.values()] == ["dana", "priya-phone"]        # the first had gone
    await talk(one, "message Dana", "no, Priya", "we won")
    assert [to for to, _, _ in one.postbox.sent.values()][2:] == ["priya-phone"]


@pytest.mark.parametrize("first", [      # which tool, whom of two, not paired, unknown
    "tell Ann we leave at 8", "message Ann: we leave at 8", "tell Ana Kovac that we leave at 8",
    "tell Bob we leave at 8",
])
@pytest.mark.parametrize("then", ["no, Priya", "no, to Priya", "sorry, I meant Priya"])
async def test_a_corrected_recipient_is_offered_the_same_message_while_a_question_is_open(
    one: World, first: str, then: str,
) -> None:
    answers = await talk(one, first, then)
    assert (answers[0].kind, one.owner.shown[0].value("text")) == (AnswerKind.ASKED, "we leave at 8")
    assert [to for to, _, _ in one.postbox.sent.values()] == ["priya-phone"]


async def test_a_corrected_recipient_who_is_unclear_is_asked_about(one: World) -> None:
    answers = await talk(one, "tell Bob I am late", "no, Ann", "no, Zoltan", "no, Priya")
    assert [answer.kind for answer in answers] == [AnswerKind.ASKED] * 3 + [AnswerKind.DONE]
    assert "Whom do you mean by Ann: Ana Kovac or Anna Lindqvist?" in answers[1].text
    assert "I know nobody called Zoltan." in answers[2].text
    assert [to for to, _, _ in one.postbox.sent.values()] == ["priya-phone"]


async def test_a_correction_that_leaves_nothing_to_work_out_is_a_request_of_its_own(one: World) -> None:
    answers = await talk(one, "split 86.40 between 4 people", "no, what's on my calendar tomorrow")
    assert answers[1].tools_used == ("calendar_list",)


async def test_a_day_within_a_note_is_corrected_where_it_stands(one: World) -> None:
    await talk(one, "note: call the vet next Monday about Rex", "no, Tuesday")
    assert one.owner.shown[1].value("text") == "call the vet Tuesday about Rex"


# ------------------------------------------------------------ undo


async def test_undo_takes_the_last_write_back_and_says_when_there_is_none(one: World) -> None:
    answers = await talk(one, "remind me to call the vet tomorrow at 9", "undo that", "undo")
    assert one.reminders.kept == {}
    assert answers[2].text == "There is nothing to take back."


async def test_a_message_that_was_sent_cannot_be_taken_back_and_it_is_said(one: World) -> None:
    answers = await talk(one, "tell Dana I am late", "undo")
    assert answers[1].kind is AnswerKind.STOPPED
    assert answers[1].text.startswith("A message that was sent can't be taken back.")


QUESTIONS = (
    "take a note", "put an event on my calendar next Monday at 8", "remind me to call mum", "tell Ann I am late",
    "book a meeting with Ravi about the boiler", "look for the roof", "Translate this letter into French",
)


@pytest.mark.parametrize("dropped", [
    "undo that", "Undo", "please undo it", "take that back", "forget it", "forget it then", "oh never mind",
    "forget that please", "no, nevermind, thanks", "scrap that",
    "leave it", "don't bother", "not now", "ok, drop it", "I changed my mind",
])
async def test_an_open_question_is_dropped_by_what_takes_it_back(one: World, dropped: str) -> None:
    for question in QUESTIONS:
        before = contents(one.root)
        asked = await one.ask(question)
        assert asked.kind is AnswerKind.ASKED, question
        answer = await one.ask(dropped, conversation_id=asked.conversation_id)
        assert (answer.kind, answer.text) == (
            AnswerKind.DECLINED, "All right, I dropped the question; nothing was done for it."), question
        assert one.conversations.kept[asked.conversation_id].draft is None
        assert (one.owner.shown, one.thoughts.jobs, contents(one.root)) == ([], [], before)


@pytest.mark.parametrize("text", [
    '"undo that"', "undo the bolts of the shelf", "never mind the gap, says Tom", "forget it or keep it: Monday",
])
async def test_words_that_only_begin_like_it_are_the_answer(one: World, text: str) -> None:
    answers = await talk(one, "take a note", text)
    assert answers[1].tools_used == ("note_write",)
    value = next(value for value in one.owner.shown[0].values if value.name == "text")
    assert value.value == text.strip('"')


async def test_after_the_question_the_last_write_can_still_be_undone(one: World) -> None:
    answers = await talk(
        one, "remind me to call the vet tomorrow at 9", "put an event on my calendar next Monday at 8", "undo that")
    assert [kept.text for kept in one.reminders.kept.values()] == ["call the vet"]      # one word, one step back
    assert "call the vet" in answers[2].text
    assert 'Say "undo" once more' in answers[2].text
    undone = await one.ask("undo", conversation_id=answers[0].conversation_id)
    assert (undone.text, one.reminders.kept) == ("I will not remind you: call the vet", {})


async def test_the_first_of_two_goals_stays_when_the_question_of_the_second_is_dropped(one: World) -> None:
    answers = await talk(one, "remind me to buy milk tonight at 8 and tell Ann I am late", "undo that")
    assert answers[1].text.startswith("All right, I dropped the question;")
    assert "buy milk" in answers[1].text
    assert (len(one.reminders.kept), one.postbox.sent) == (1, {})


async def test_never_mind_with_nothing_open_changes_nothing_and_says_so(one: World) -> None:
    answers = await talk(one, "note: the boiler was serviced", "never mind")
    assert answers[1].text.startswith("No question of mine is open.")
    assert one.thoughts.jobs == []
    assert len(list((one.root / "notes").glob("*.md"))) == 4


async def test_a_question_is_dropped_by_a_friendly_no(one: World) -> None:
    answers = await talk(one, "remind me to call mum", "no, never mind")
    assert (answers[1].kind, one.reminders.kept) == (AnswerKind.DECLINED, {})


# ------------------------------------------------------------ references and two goals


async def test_her_number_is_the_number_of_whom_we_spoke(one: World) -> None:
    answers = await talk(one, "get me the email of Jonas Keller", "and his phone number")
    assert answers[1].text == "Jonas Keller's phone number: +49 30 5550109."
    answers = await talk(one, "tell Priya I am on my way", "tell her I will be late")
    assert [to for to, _, _ in one.postbox.sent.values()] == ["priya-phone", "priya-phone"]


async def test_after_two_people_nobody_is_guessed(one: World) -> None:
    answers = await talk(one, "message Dana and Priya: lunch at one?", "tell her I am late")
    assert answers[1].kind is AnswerKind.ASKED
    assert len(one.postbox.sent) == 2


async def test_two_goals_are_both_reached_in_their_order(one: World) -> None:
    answer = await one.ask("remind me to buy milk tonight at 8 and tell Dana I am late")
    assert answer.tools_used == ("reminder_set", "message_send")
    assert len(answer.effects) == 2
    assert len(one.reminders.kept) == len(one.postbox.sent) == 1


async def test_a_first_goal_that_needs_an_answer_keeps_the_second_for_later(one: World) -> None:
    asked = await one.ask("remind me to buy milk and tell Dana I am late")
    assert (asked.kind, one.postbox.sent) == (AnswerKind.ASKED, {})
    assert "Not begun yet: tell Dana I am late" in asked.text


@pytest.mark.parametrize(("text", "refused"), [
    ("no, not Dana", True), ("no not Monday!", True), ("oh no, not that one", True),
    ("no, not Monday but Friday", False), ("no not Monday Tuesday", False),
    ("no, not Monday, Tuesday", False), ("not coming", False), ("sorry, not coming tonight", False),
    ("no, Dana", False),
])
def test_what_is_only_refused_says_nothing_new(text: str, refused: bool) -> None:
    assert only_refused(text) is refused
    assert not refused or correction(text) is None


@pytest.mark.parametrize(("first", "no", "right"), [
    ("put dentist on my calendar for Monday at 10:00", "no, not Monday", "no, Tuesday"),
    ("send Dana a message that lunch is ready", "no, not Dana", "no, Priya"),
    ("message Mike that lunch is ready", "no, not Mike", "no, Priya"),
])
async def test_a_refusal_changes_nothing_and_what_is_said_then_corrects(
    one: World, first: str, no: str, right: str,
) -> None:
    begun = await one.ask(first)
    shown = len(one.owner.shown)
    refused = await one.ask(no, conversation_id=begun.conversation_id)
    assert (refused.kind, len(one.owner.shown)) == (AnswerKind.ASKED, shown)
    assert refused.text.startswith("Nothing was changed.")
    await one.ask(right, conversation_id=begun.conversation_id)
    assert len(one.owner.shown) == shown + 1
    assert right.removeprefix("no, ") in one.owner.shown[-1].text


async def test_not_coming_is_a_text_where_one_is_asked_for(one: World) -> None:
    """The control."""
    begun = await one.ask("send Dana a message")
    await one.ask("no, not coming", conversation_id=begun.conversation_id)
    assert [effect.text for effect in one.owner.shown] == ["Send to Dana Whitfield (dana): no, not coming"]


@pytest.mark.parametrize("text", ["no worries", "no problem", "no problem, thanks"])
async def test_a_friendly_word_is_nobodys_name(one: World, text: str) -> None:
    answers = await talk(one, "note: the boiler was serviced", text)
    assert answers[1].text.startswith("No question of mine is open.")
