"""Free text where no cue opens it, asides, missing text, and the rules of the readers beside them; each worked by
hand."""

from collections.abc import Callable
from datetime import UTC, datetime

import agent_bank as bank
import pytest
from agent_node import StaticEmbedder

from node.agent.choice import Choosable, Chooser
from node.agent.effects import Span
from node.agent.readers.closed import on_off_or_number, pick
from node.agent.readers.courtesy import core
from node.agent.readers.messages import message
from node.agent.readers.people import AddressBook
from node.agent.readers.places import place
from node.agent.readers.quantities import conversion, evaluate, expression
from node.agent.readers.remains import is_filler, remains, without_asides

SPECS = {spec.name: spec for spec in bank.specs()}


def filled(tool: str, text: str) -> dict[str, object]:
    reader = bank.reader()
    found = reader.fill(SPECS[tool], reader.read(text, bank.NOW), {})
    return {name: value.value for name, value in found.values.items()}


@pytest.mark.parametrize(("text", "title"), [
    ("Chess club, Saturday 11 April, 14:15, can that go in the diary?", "Chess club"),
    ("make for me appointment barber in calendar on tuesday 24 march", "barber"),
    ("I have a viewing with Bo on Friday at 3, put it in my calendar", "a viewing"),
    ("the chimney sweep needs to be added to my calendar", "the chimney sweep"),
    ("put me down for pottery on Sunday at 10", "pottery"),
    ("get the sweep's visit into my calendar", "the sweep's visit"),
    ("can you book a half hour meeting with Dana on tuesday at 10 am", "meeting with Dana"),
    ("create an event at 4:30 pm on friday called parent evening", "parent evening"),
    ("enter the tasting evening for next Wednesday 19:00", "the tasting evening"),
    ("meet Dana for coffee tomorrow at 4", "coffee"), ("block Thursday 2 to 4 for writing", "writing"),
    ("my aunt's party is on Saturday at 3pm, add it", "aunt's party"),
    ("add the staff meeting to my calendar", "the staff meeting"),
    ("before I forget put something on the calendar for Friday at 2", None),
    ("I need a new calendar entry for Friday at 11", None), ("add an appointment on Friday at 3", None),
])
def test_titles(text: str, title: str | None) -> None:
    assert filled("calendar_create", text).get("title") == title


@pytest.mark.parametrize(("text", "words"), [
    ("reminder in forty minutes, turn the roast", "turn the roast"), ("I need reminding to order paint", "order paint"),
    ("could you nudge me at quarter to seven this evening to take my tablet", "take my tablet"),
    ("I really ought to collect the coat on Monday at 9, please make sure I don't forget", "collect the coat"),
    ("remind me about my eye drops, I'd lose my head if it weren't screwed on", "my eye drops"),
    ("I need to call the bank at 2, remind me", "call the bank"),
    ("set an alert for 6pm: feed the cat", "feed the cat"),
    ("remind me about my meeting tomorrow", "my meeting"), ("remind me at a later time", None),
    ("set up a reminder to alert me when it's time to water the fern", "water the fern"),
    ("pay rent on friday at 9 am, no wait, on thursday at 9 am, remind me", "pay rent"),
    ("remnd me to wish Bo a nice day on sunday at 10am", "wish Bo a nice day"),
    ("I'd like to have a reminder made", None),
])
def test_reminders(text: str, words: str | None) -> None:
    assert filled("reminder_set", text).get("text") == words


@pytest.mark.parametrize(("text", "words", "title"), [
    ("pop swimming caps on the packing list", "swimming caps", "Packing list"),
    ("Under roof repair add that the chimney leans", "the chimney leans", "Roof repair"),
    ("Dune ought to go in my book ideas note, would you put it there", "Dune", "Book ideas"),
    ("the guest code is 99, add it to wifi codes", "the guest code is 99", "Wifi codes"),
    ("book ideas needs Emma adding to it", "Emma", "Book ideas"),
    ("in my budget note put 30 for paint", "30 for paint", "Budget 2026"),
    ("i need two bulbs put on my garden plan", "two bulbs", "Garden plan"),
    ("take a note, bay 12 is ours", "bay 12 is ours", None),
    ("I want to add a bit to the garden plan note", None, "Garden plan"),
    ("make a new note called holiday", None, None),
    ("write that the meeting went well", "the meeting went well", None), ("i wanna make a note real quick", None, None),
])
def test_notes(text: str, words: str | None, title: str | None) -> None:
    found = filled("notes_write", text)
    assert (found.get("text"), found.get("title")) == (words, title)


@pytest.mark.parametrize(("tool", "text", "query"), [
    ("notes_search", "look through my notes for anything with the word lease in it", "lease"),
    ("notes_search", "somewhere in my notes theres something on rye bread, find it", "rye bread"),
    ("notes_search", "check my notes for anything to do with the boiler", "the boiler"),
    ("notes_search", "is there a note of mine somewhere on black paint", "black paint"),
    ("notes_search", "look up what I wrote on compost", "compost"),
    ("notes_search", "can you look for something in all my notes", None),
    ("notes_search", "Have a search through my notes for me", None),
    ("web_search", "do a google search on knee braces", "knee braces"),
    ("web_search", "Search in internet what papers I need", "what papers I need"),
    ("web_search", "See what the internet has on tomato blight", "tomato blight"),
    ("web_search", "check online whether the pool is open", "whether the pool is open"),
    ("web_search", "look something up on the web", None),
])
def test_queries(tool: str, text: str, query: str | None) -> None:
    assert filled(tool, text).get("query") == query


@pytest.mark.parametrize(("text", "words"), [
    ("send jonas a text i'll be there in ten", "i'll be there in ten"), ("i want to send marcus a txet", None),
    ("could you send ravi a text and say i am stuck", "i am stuck"), ("Text Gemma Hi are we on", "Hi are we on"),
    ("message ryan can you feed the cat?", "can you feed the cat?"), ("send a text that says hi to abby", "hi"),
    ("text my coworker for me and tell them the due date", "the due date"), ("Drop Marcus a text for me", None),
    ("shoot marcus a text, tell him the game is on", "the game is on"), ("message Jonas about the picnic", None),
    ("say happy birthday to marcus in a text", "happy birthday"),
    ("ask tomas what the gate code is", "what the gate code is"),
    ("text Ravi, wait no, Priya, that I left", "I left"), ("can you text something to wendy", None),
    ("tell dana and priya the meeting moved to 4", "the meeting moved to 4"), ("send jack a text saying hi", "hi"),
])
def test_messages(text: str, words: str | None) -> None:
    found = message(text, [person.span for person in bank.BOOK.read(text).found])
    assert (found.of(text) if found else None) == words


def test_polite_words_and_asides_are_part_of_a_message_but_not_at_its_end() -> None:
    text = "please tell Dana can you please start, I'm late, thanks"
    assert filled("message_send", text)["text"] == "can you please start, I'm late"
    assert filled("message_send", "tell Dana thanks")["text"] == "thanks"
    assert "text" not in filled("message_send", "text Dana, thanks")


@pytest.mark.parametrize(("text", "inner"), [
    ("hey, please call Bo", "call Bo"), ("ok so what is on", "what is on"), ("call Bo please", "call Bo"),
    ("call Bo, thanks!", "call Bo"), ("please", "please"), ("go ahead and add it", "add it"),
    ("pleased to meet", "pleased to meet"),
    ("say thanks", "say thanks"), ("", ""),
])
def test_courtesy_is_no_part_of_a_request(text: str, inner: str) -> None:
    assert core(text).of(text) == inner


@pytest.mark.parametrize("change", [
    lambda text: f"please {text[0].lower()}{text[1:]}", lambda text: f"hey, {text}",
    lambda text: f"{text.rstrip('.?! ')}, thanks",
    lambda text: f"{text.rstrip('.?! ')} please", lambda text: text[0].upper() + text[1:],
])
def test_courtesy_and_case_change_no_value(change: Callable[[str], str]) -> None:
    reader = bank.reader()
    for case in bank.cases():
        if case.tool is None:
            continue
        before, after = (
            reader.fill(SPECS[case.tool], reader.read(text, bank.NOW), {}).values
            for text in (case.text, change(case.text))
        )
        assert {name: str(one.value).lower().strip(" .!?") for name, one in before.items()} == {
            name: str(one.value).lower().strip(" .!?") for name, one in after.items()
        }, case.text


async def test_courtesy_changes_no_choice() -> None:
    chooser = Chooser([Choosable.of(spec) for spec in bank.specs()], StaticEmbedder())
    for case in bank.cases()[::4]:
        plain = await chooser.choose(case.text, {})
        for text in (f"hey, {case.text}", f"please {case.text}", f"{case.text.rstrip('.?! ')}, thanks"):
            changed = await chooser.choose(text, {})
            assert [one.name for one in changed.tools[:2]] == [one.name for one in plain.tools[:2]], text


def test_whoever_owns_it_is_not_invited() -> None:
    assert "attendees" not in filled("calendar_create", "add mum's birthday to my calendar on 12 April at 3pm")
    assert filled("calendar_create", "add lunch with mum on 12 April at 3pm")["attendees"] == ("Mum (Helen Marsh)",)
    assert filled("contact_lookup", "mum's number")["name"] == ("Mum (Helen Marsh)",)


@pytest.mark.parametrize(("text", "start"), [
    ("am i free sat between 3 and 6pm", "2026-03-21T15:00"), ("on Friday the 27th", "2026-03-27T00:00"),
    ("block Thursday 2 to 4", "2026-03-19T14:00"), ("evening of the 2nd of April", "2026-04-02T18:00"),
])
def test_days_and_hours_in_other_words(text: str, start: str) -> None:
    period, *_ = bank.reader().read(text, bank.NOW).when.periods(bank.NOW)
    assert period[0].astimezone(bank.ZONE).strftime("%Y-%m-%dT%H:%M") == start


def test_a_reminder_for_a_day_is_set_for_nine_and_says_so() -> None:
    reader = bank.reader()
    found = reader.fill(SPECS["reminder_set"], reader.read("remind me on Saturday to mow the lawn", bank.NOW), {})
    assert found.values["when"].value == datetime(2026, 3, 21, 8, 0, tzinfo=UTC)        # 9:00 in Berlin
    assert found.values["when"].source.endswith("the hour is assumed")
    open_week = reader.read("remind me next week to mow", bank.NOW)
    assert reader.fill(SPECS["reminder_set"], open_week, {}).missing == ("when",)


def test_evidence_counts_a_name_that_is_not_clear_yet() -> None:
    reader, spec = bank.reader(), SPECS["contact_lookup"]
    shares = [
        reader.fill(spec, reader.read(text, bank.NOW), {}).evidence(spec)
        for text in ("Dana's number", "Ann's number", "the number", "hello")
    ]
    assert shares == [1.0, 1.0, 0.5, 0.0]


def test_remains_needs_a_word_of_its_kind() -> None:
    assert remains("fix the gate", "reminder", ()) is None
    assert remains("reminder: fix the gate", "reminder", ()) == Span(10, 22)
    assert remains("please set a reminder for me", "reminder", ()) is None
    # what only tells something beside it comes last
    assert remains("I'm off to bed, reminder, lock the gate", "reminder", ()) == Span(26, 39)


@pytest.mark.parametrize(("text", "told", "kept"), [
    ("eye drops, I'd lose my head", False, "eye drops"),
    ("eye drops, I'd lose my head", True, "eye drops, I'd lose my head"),
    ("Dune, would you put it there", True, "Dune"), ("call Dr. Patel", False, "call Dr. Patel"),
])
def test_asides(text: str, told: bool, kept: str) -> None:
    assert without_asides(text, Span(0, len(text)), told=told).of(text) == kept


@pytest.mark.parametrize(("kind", "words", "filler"), [
    ("note", "a bit", True), ("query", "through my notes", True), ("message", "a text", True), ("message", "hi", False),
    ("note", "a bit of string", False), ("reminder", "later", True),
])
def test_fillers(kind: str, words: str, filler: bool) -> None:
    assert is_filler(kind, words) is filler


@pytest.mark.parametrize(("text", "value"), [
    ("add 19 percent to 1,250", 1487.5), ("25 percent on top of 80", 100), ("138, that divided by 6", 23),
    ("fifteen percent off sixty dollars", 51), ("if five of us split a bill of 186 euros, how much each", 37.2),
    ("an 18 percent tip on a 65 dollar meal", 11.7), ("3/8 of 72", 27), ("the area of a 4.5 by 6 metre room", 27),
    ("a third of 99", 33), ("double 45", 90), ("cube root of 27", 3), ("how many times does 7 go into 91", 13),
    ("25% of $54,788", 13697), ("square root of 1243225", 1115),
])
def test_sums(text: str, value: float) -> None:
    found = expression(text)
    assert found is not None
    assert evaluate(found.code) == pytest.approx(value)
    assert 0 <= found.said.start < found.said.end <= len(text)


@pytest.mark.parametrize(("text", "units"), [
    ("half a mile in meters", ("0.5", "mile", "meter")),
    ("2 and a half cups into millilitres", ("2.5", "cup", "milliliter")),
    ("three hundred and forty miles in kilometres", ("340", "mile", "kilometer")),
    ("convert 250 to ounces", ("250", None, "ounce")),
    ("seven inches into centimetres, no sorry nine inches", ("9", "inch", "centimeter")),
])
def test_amounts(text: str, units: tuple[str | None, ...]) -> None:
    found = conversion(text)
    assert tuple(part[0] if part else None for part in (found.amount, found.source, found.target)) == units


@pytest.mark.parametrize(("text", "value"), [
    ("the brightness on this screen needs changing", None), ("turn on the wifi", "on"),
    ("put the screen in dark mode", "on"),
    ("screen brightness to sixty percent", "60"), ("volume up to fifty", "50"), ("disconnect the wifi", "off"),
])
def test_switches(text: str, value: str | None) -> None:
    found = on_off_or_number(text)
    assert (found.value if found else None) == value


def test_an_address_book_is_no_address_and_one_download_is_the_folder() -> None:
    assert pick("find priya in my address book", ["phone", "address"]) is None
    found = pick("whats in the download folder", ["Documents", "Downloads"])
    assert found is not None
    assert found.value == "Downloads"


@pytest.mark.parametrize(("text", "said"), [
    ("what hour is it in Wellington at present? A pupil of mine lives there.", "Wellington"),
    ("I'm ringing a client in Singapore shortly, what's their time?", "Singapore"), ("might I ask for the time", None),
    ("over in osaka what's the time", "osaka"), ("lisbon time please", "lisbon"), ("hey waht time have we got", None),
])
def test_places(text: str, said: str | None) -> None:
    found = place(text)
    assert (found.of(text) if found else None) == said


def test_people_taken_back_and_parents_by_another_word() -> None:
    assert bank.BOOK.read("text Ravi, wait no, Priya").names == ("Priya Nair",)
    assert bank.BOOK.read("text Ravi and Priya, no rush").names == ("Ravi Menon", "Priya Nair")
    assert bank.BOOK.read("call my mom").names == ("Mum (Helen Marsh)",)
    assert AddressBook(["Helen Marsh"]).read("call my mom").names == ()
