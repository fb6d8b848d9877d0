"""The ladder over real tools and files: what runs, what is asked, what is declined, what goes to a model and with
which labels."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from agent_memory import Events, MemoryConversations, Owner, ScriptedModel, Thoughts
from agent_node import World, fill_folder, world
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from node.agent.errors import EmptyRequest, NoSuchConversation, RequestTooLong
from node.agent.events import Answered, ApprovalNeeded, Delta, Status, ToolFinished, ToolStarted
from node.agent.loop import REQUEST_CHARS
from node.agent.ports import AUTO, AnswerKind, AskRequest
from node.privacy.labels import Confidentiality, Integrity, Labeled


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill_folder(tmp_path)
    return tmp_path


@pytest.fixture
def one(root: Path) -> World:
    return world(root)


PERSONAL = Confidentiality.PERSONAL


@pytest.mark.parametrize(("text", "tool", "part"), [
    ("what's on my calendar tomorrow", "calendar_list", "Fair"),
    ("when am I free on Friday?", "calendar_free", "10:00"),
    ("what time is it in Tokyo?", "clock_now", "17:30"), ("could you tell me what time it is", "clock_now", "09:30"),
    ("get me the email of Jonas Keller", "contact_lookup", "@example.org"),
    ("do I have notes about tomatoes", "note_search", "Garden plan"),
    ("read my note Garden plan", "note_read", "Tomatoes"),
    ("which peers are online", "peers_list", "kith pair"),
])
async def test_read_tools_run_here_and_say_so(one: World, text: str, tool: str, part: str) -> None:
    answer = await one.ask(text)
    assert answer.kind is AnswerKind.DONE
    assert answer.tools_used == (tool,)
    assert answer.ran_on == "phone"
    assert part in answer.text
    assert one.thoughts.jobs == []
    assert [type(event) for event in one.events.seen] == [ToolStarted, ToolFinished, Answered]


async def test_arguments_are_shown_as_the_owner_reads_them(one: World) -> None:
    await one.ask("what's on my calendar tomorrow")
    await one.ask("what's on my calendar next Monday between 2 and 5pm")
    shown = [event.args["when"] for event in one.events.of(ToolStarted)]
    assert shown == ["Thu 19 March 2026, 00:00 to Fri 20 March 2026, 00:00", "Mon 23 March 2026, 14:00-17:00"]


@pytest.mark.parametrize("text", [
    "don't put lunch with Ravi in my calendar on Friday", "don't write that down", "please don't add milk to the note",
])
async def test_what_the_owner_said_not_to_do_is_not_offered(one: World, text: str) -> None:
    answer = await one.ask(text)
    assert (answer.kind, answer.tools_used) == (AnswerKind.DECLINED, ())
    assert answer.text.startswith("You said not to, so nothing was done.")
    assert one.owner.shown == []
    assert one.thoughts.jobs == []


@pytest.mark.parametrize(("text", "slot"), [
    ("take a note", "text"), ("search my notes", "query"), ("put dentist on my calendar", "start"),
    ("list my appointments", "when"),
    ("Ann's number?", "name"), ("book a meeting with Ravi about the boiler", "when"),
])
async def test_a_missing_argument_is_asked_for_and_nothing_else(one: World, text: str, slot: str) -> None:
    answer = await one.ask(text)
    assert (answer.kind, answer.missing) == (AnswerKind.ASKED, slot)
    assert one.owner.shown == []
    assert one.thoughts.jobs == []


@pytest.mark.parametrize(("first", "second", "tool", "part"), [
    ("take a note", "buy bread", "note_write", "buy bread"),
    ("search my notes", "tomatoes", "note_search", "Garden plan"),
    ("put dentist on my calendar on Monday", "at 8", "calendar_create", "Monday 23 March 2026, 08:00"),
    ("Ann's number?", "the first", "contact_lookup", "Ana Kovac"),
    ("Ann's number?", "Anna", "contact_lookup", "Anna Lindqvist"),
    ("list my appointments", "next week", "calendar_list", "Standup Monday"),
])
async def test_the_next_message_fills_the_slot(one: World, first: str, second: str, tool: str, part: str) -> None:
    asked = await one.ask(first)
    done = await one.ask(second, conversation_id=asked.conversation_id)
    assert done.kind is AnswerKind.DONE
    assert done.tools_used[-1] == tool
    assert part in done.text
    assert one.conversations.kept[asked.conversation_id].draft is None


async def test_a_time_in_the_draft_means_the_moment_it_was_said(one: World) -> None:
    asked = await one.ask("put an event on my calendar tomorrow at 8")
    assert asked.missing == "title"
    one.clock.at = one.clock.at.replace(day=25)                 # a week passes before the answer
    done = await one.ask("dentist", conversation_id=asked.conversation_id)
    assert "19 March 2026" in done.text


async def test_never_mind_drops_the_draft(one: World) -> None:
    asked = await one.ask("take a note")
    done = await one.ask("never mind", conversation_id=asked.conversation_id)
    assert done.kind is AnswerKind.DECLINED
    again = await one.ask("buy bread", conversation_id=asked.conversation_id)
    assert "note_write" not in again.tools_used


async def test_another_request_is_not_taken_for_an_answer(one: World) -> None:
    asked = await one.ask("take a note")
    done = await one.ask("what's on my calendar tomorrow", conversation_id=asked.conversation_id)
    assert done.tools_used == ("calendar_list",)
    assert one.owner.shown == []


async def test_an_answer_that_is_not_understood_is_asked_again(one: World) -> None:
    asked = await one.ask("list my appointments")
    again = await one.ask("hmm", conversation_id=asked.conversation_id)
    assert (again.kind, again.missing) == (AnswerKind.ASKED, "when")


@pytest.mark.parametrize("text", [
    "Lock the front door", "Call Dana now", "Buy two tickets for the concert on Saturday", "play some jazz",
    "open the garage",
    "turn on do not disturb", "Book a flight to Lisbon on 3 May", "What's my bank balance?",
    "what will the weather be tomorrow",
    "who will win the match tomorrow", "cancel my dentist appointment on Monday", "delete the note Garden plan",
    "Water the tomatoes",
])
async def test_what_nobody_here_can_do_is_declined_and_no_model_makes_it_up(one: World, text: str) -> None:
    answer = await one.ask(text)
    assert answer.kind is AnswerKind.DECLINED
    assert one.thoughts.jobs == []
    assert one.owner.shown == []
    assert answer.tools_used == ()


@pytest.mark.parametrize(("text", "result"), [
    ("what's 15% of 240", "36"), ("(48 + 17) * 3", "195"), ("how much is 1299 divided by 12?", "108.25"),
    ("convert 5 miles to km", "8.04672 kilometer"), ("how many inches are in a foot", "12 inch"),
    ("30 celsius in fahrenheit", "86 f"),
])
async def test_sums_and_units_are_worked_out_by_code(one: World, text: str, result: str) -> None:
    answer = await one.ask(text)
    assert answer.tools_used == ("work_out",)
    assert result in answer.text
    assert one.thoughts.jobs == []


@pytest.mark.parametrize("text", ["note that 12 times 7 is 84", "what is 1 mile of motorway like", "between 2 and 5"])
async def test_a_sum_inside_something_else_is_not_taken(one: World, text: str) -> None:
    assert "work_out" not in (await one.ask(text)).tools_used


async def test_without_the_scan_worker_it_still_answers(root: Path) -> None:
    class Down:
        async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            raise RuntimeError("the worker died")

    one = world(root, embedder=Down())
    asked = await one.ask("what's on my calendar tomorrow")
    assert asked.kind in {AnswerKind.DONE, AnswerKind.ASKED}
    assert (await one.ask("Lock the front door")).kind is AnswerKind.DECLINED


async def test_a_refusal_names_the_nearest_three(one: World) -> None:
    answer = await one.ask("Lock the front door")
    assert answer.text.count("\n  - ") == 3


async def test_the_middle_band_asks_and_takes_the_choice(one: World) -> None:
    asked = await one.ask("look for the roof")
    assert asked.kind is AnswerKind.ASKED
    assert "1. " in asked.text
    assert "2. " in asked.text
    done = await one.ask("1", conversation_id=asked.conversation_id)
    assert done.tools_used == ("note_read",)
    assert "Rafters are fine" in done.text


@pytest.mark.parametrize("text", [
    "What is the capital of France?", "how do I bleed a radiator?", "write me a poem about rain",
    "explain entropy to a child",
    "translate into French: the meeting is moved to Monday afternoon", "give me ideas for a birthday present", "hello",
    "draft an email to my landlord about the heating", "tell me about the French revolution", "why is the sky blue",
])
async def test_language_work_and_questions_go_to_the_thinker(one: World, text: str) -> None:
    answer = await one.ask(text)
    assert answer.kind is AnswerKind.DONE
    assert answer.text == "An answer."
    assert answer.reason.startswith("phone has the larger model")
    job, = one.thoughts.jobs
    assert job.parts[-1].text.value == text
    assert job.parts[-1].text.integrity is Integrity.OWNER
    assert [event.text for event in one.events.of(Delta)] == ["An ", "answer."]


async def test_a_named_note_is_read_and_goes_along_labelled(one: World) -> None:
    answer = await one.ask("summarise the roof repair note")
    assert answer.tools_used == ("note_read",)
    assert answer.sources[0].startswith("note_read:Roof repair")
    job, = one.thoughts.jobs
    note = next(part for part in job.parts if part.name == "Roof repair")
    assert "2,400 euros" in note.text.value
    assert note.text.confidentiality is PERSONAL
    kept = one.conversations.kept[answer.conversation_id].turns[-1].text
    assert kept.confidentiality is PERSONAL


async def test_files_given_along_are_material_with_their_label(one: World) -> None:
    letter = Labeled("Dear Sir, ...", PERSONAL, Integrity.LOCAL, "file:letter.txt", ())
    answer = await one.ask("what does he want?", attachments=(("letter.txt", letter),))
    job, = one.thoughts.jobs
    assert [(part.name, part.text) for part in job.parts if part.name == "letter.txt"] == [("letter.txt", letter)]
    assert answer.sources == ("file:letter.txt",)


async def test_a_text_that_is_spoken_of_but_not_there_is_asked_for(one: World) -> None:
    asked = await one.ask("Translate this letter into French")
    assert (asked.kind, asked.missing) == (AnswerKind.ASKED, "material")
    await one.ask("Dear Sir, I hope you are well.", conversation_id=asked.conversation_id)
    job, = one.thoughts.jobs
    assert job.parts[-1].text.value == "Dear Sir, I hope you are well."
    assert job.parts[-1].text.confidentiality is PERSONAL
    assert job.parts[-2].text.value == "Translate this letter into French"


async def test_a_peers_answer_is_untrusted_and_the_label_only_rises(root: Path) -> None:
    one = world(root, thoughts=Thoughts(ran_on="home-pc", peer_id="12D3Koo"))
    first = await one.ask("summarise the roof repair note")
    assert first.ran_on == "home-pc"
    kept = one.conversations.kept[first.conversation_id].turns[-1].text
    assert kept.label.integrity is Integrity.UNTRUSTED
    second = await one.ask("why is the sky blue", conversation_id=first.conversation_id)
    label = await one.conversations.label(second.conversation_id)
    assert label is not None
    assert (label.confidentiality, label.integrity) == (PERSONAL, Integrity.UNTRUSTED)


async def test_continuing_sends_the_labelled_history(one: World) -> None:
    first = await one.ask("read my note Garden plan")
    await one.ask("why do tomatoes like the sun", conversation_id=AUTO)
    job, = one.thoughts.jobs
    history = [part for part in job.parts if part.name == "history"]
    assert [part.role for part in history] == ["user", "assistant"]
    assert history[1].text.confidentiality is PERSONAL
    assert history[1].text.value == first.text
    assert one.thoughts.jobs[0].conversation_id == first.conversation_id


async def test_a_model_in_circles_is_stopped_with_a_reason(root: Path) -> None:
    one = world(root, thoughts=Thoughts(["This again and again and over. "] * 200))
    answer = await one.ask("why is the sky blue")
    assert answer.kind is AnswerKind.STOPPED
    assert "repeated" in answer.reason
    assert len(one.events.of(Delta)) < 20
    assert any("repeated" in event.text for event in one.events.of(Status))


async def test_the_owners_place_and_model_reach_the_job(one: World) -> None:
    await one.ask("why is the sky blue", place="home-pc", model="big")
    assert (one.thoughts.jobs[0].place, one.thoughts.jobs[0].model) == ("home-pc", "big")


async def test_model_and_rules_differ_so_both_are_shown(root: Path) -> None:
    model = ScriptedModel(['{"text": "the plumber needs new washers"}'])
    one = world(root, model=model)
    await one.ask("write down that the plumber needs new washers by Friday")
    text = next(value for value in one.owner.shown[0].values if value.name == "text")
    assert text.value == "the plumber needs new washers by Friday"
    assert text.alternatives == ("the plumber needs new washers",)


async def test_model_and_rules_agree(root: Path) -> None:
    one = world(root, model=ScriptedModel(['{"text": "the car needs new tyres"}']))
    await one.ask("write down that the car needs new tyres")
    text = next(value for value in one.owner.shown[0].values if value.name == "text")
    assert "model agrees" in text.source
    assert text.alternatives == ()


async def test_a_broken_model_stops_nothing(root: Path) -> None:
    one = world(root, model=ScriptedModel([RuntimeError("worker died")]))
    answer = await one.ask("write down that the car needs new tyres")
    assert answer.kind is AnswerKind.DONE


async def test_no_date_of_today_in_any_prompt(root: Path) -> None:
    model = ScriptedModel(['{"text": "dentist"}'])
    one = world(root, model=model)
    await one.ask("put dentist on my calendar for Monday at 8")
    await one.ask("why is the sky blue")
    prompts = [message.text for messages, _ in model.asked for message in messages]
    prompts += [part.text.value for job in one.thoughts.jobs for part in job.parts]
    assert not any("2026" in prompt or "18 March" in prompt for prompt in prompts)


async def test_events_end_with_the_answer_and_approval_comes_before_the_write(one: World) -> None:
    await one.ask("write down that the car needs new tyres")
    kinds = [type(event) for event in one.events.seen]
    assert kinds == [ToolStarted, ApprovalNeeded, ToolFinished, Answered]


async def test_steps_are_bounded(root: Path) -> None:
    one = world(root)
    one.agent._settings = type(one.agent._settings)(one.agent._settings.locale, "phone", max_steps=0)
    answer = await one.ask("what's on my calendar tomorrow")
    assert answer.kind is AnswerKind.STOPPED
    assert "0 steps" in answer.reason


async def test_bad_requests(one: World) -> None:
    with pytest.raises(EmptyRequest):
        await one.ask("  \n ")
    with pytest.raises(RequestTooLong):
        await one.ask("x" * (REQUEST_CHARS + 1))
    with pytest.raises(NoSuchConversation):
        await one.ask("hello", conversation_id="nope")


async def test_politeness_and_case_change_nothing(one: World) -> None:
    plain = await one.ask("what's on my calendar tomorrow")
    polite = await one.ask("Please, what's on my calendar tomorrow?")
    loud = await one.ask("WHAT'S ON MY CALENDAR TOMORROW")
    assert plain.text == polite.text == loud.text


async def test_swapping_the_day_changes_only_the_day(root: Path) -> None:
    shown = {}
    for day in ("Monday", "Tuesday"):
        one = world(root, owner=Owner(lambda effect: False))
        await one.ask(f"put dentist on my calendar for {day} at 8")
        shown[day] = {value.name: value.value for value in one.owner.shown[0].values}
    different = {name for name in shown["Monday"] if shown["Monday"][name] != shown["Tuesday"][name]}
    assert different == {"start", "end"}


async def test_a_second_agent_sees_the_draft_of_the_first(root: Path) -> None:
    kept = MemoryConversations()
    asked = await world(root, conversations=kept).ask("take a note")
    later = world(root, conversations=kept)
    answer = await later.agent.ask(AskRequest("buy bread", asked.conversation_id), Events())
    assert answer.tools_used == ("note_write",)


class AllAlike:
    """Every text has the same vector: whatever is chosen, is chosen by cues and evidence."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [[1.0, 0.0] for _ in texts]


_PIECES = st.sampled_from([
    "book", "note that", "an hour", "with Dana", "with Zoe", "next week", "at 6", "delete", "cancel", "summarise",
    "this", "the roof",
    "repair note", "my calendar", "?", ":", '"x"', "free", "email of", "Ann", "not", "Monday", "in 20 minutes", "what",
    "is", "1", "no",
])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(_PIECES.map(str), st.text(max_size=12)), min_size=1, max_size=8).map(" ".join), st.booleans())
async def test_any_request_ends_in_an_answer_and_without_a_yes_nothing_changes(root: Path, text: str,
    again: bool) -> None:
    one = world(root, owner=Owner(lambda effect: False), embedder=AllAlike())
    before = contents(root)
    if text.strip():
        answer = await one.ask(text)
        if again:
            await one.ask(text, conversation_id=answer.conversation_id)
        assert isinstance(one.events.seen[-1], Answered)
        assert answer.text
    assert contents(root) == before


def contents(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
