"""Names with digits, as devices have them: read whole, asked about whole, never taken for one with another number."""

import pytest

from node.agent.readers.messages import message
from node.agent.readers.people import AddressBook
from node.agent.saying import who


@pytest.mark.parametrize(("names", "said", "meant"), [
    (("pixel 8", "Dana Reed"), "pixel 8", "pixel 8"),
    (("pixel 8", "pixel 7"), "Pixel 7", "pixel 7"),
    (("pixel 8", "pixel 7"), "pixel8", "pixel 8"),
    (("pc-2", "pc-3"), "pc-3", "pc-3"),
    (("pc-2", "pc-3"), "PC 2", "pc-2"),
    (("pc 2", "pc 20"), "pc 20", "pc 20"),
    (("node2", "node3"), "node3", "node3"),
    (("2ndpc",), "2ndpc", "2ndpc"),
    (("Dana's pc-2", "Dana Reed"), "Dana's pc-2", "Dana's pc-2"),
])
@pytest.mark.parametrize("asked", [
    "tell {} that I am late", "message {}: I am late", "send a text to {} saying I am late",
])
def test_a_name_with_a_number_is_read_whole(names: tuple[str, ...], said: str, meant: str, asked: str) -> None:
    text = asked.format(said)
    people = AddressBook(names).read(text)
    assert (people.names, people.unclear) == ((meant,), ())
    [person] = people.found
    assert person.span.of(text) == said
    words = message(text, [person.span])
    assert words is not None
    assert words.of(text) == "I am late"        # and not "8 that I am late"


@pytest.mark.parametrize("asked", ["tell {} that I am late", "message {}: I am late", "text {}, I am late"])
@pytest.mark.parametrize(("names", "said"), [
    (("pixel 8",), "Pixel 9"), (("pixel 8", "pixel 7"), "pixel 9"), (("pc-2", "pc-3"), "pc-9"), (("node2",), "Node9"),
])
def test_another_number_is_somebody_else(names: tuple[str, ...], said: str, asked: str) -> None:
    people = AddressBook(names).read(asked.format(said))
    assert people.found == ()
    [unclear] = people.unclear
    assert (unclear.said, unclear.candidates) == (said, names)
    assert who(unclear) == f"Whom do you mean by {said}: {' or '.join(names)}?"


def test_a_stranger_with_a_number_is_named_whole() -> None:
    [unclear] = AddressBook(["Dana Reed"]).read("tell Node9 that I am late").unclear
    assert who(unclear) == "I know nobody called Node9. Who is meant?"


def test_the_word_alone_still_counts_and_two_are_a_question() -> None:
    assert AddressBook(["pixel 8", "Dana Reed"]).read("tell pixel that I am late").names == ("pixel 8",)
    [unclear] = AddressBook(["pc-2", "pc-3"]).read("tell pc that I am late").unclear
    assert who(unclear) == "Whom do you mean by pc: pc-2 or pc-3?"
    assert AddressBook(["pc-2", "pc-3"]).read("pc-3", expected=True).names == ("pc-3",)


def test_numbers_near_names_without_any_stay_numbers() -> None:
    book = AddressBook(["Dana Reed", "Ravi Patel"])
    assert book.read("tell Dana 3 things").names == ("Dana Reed",)
    assert book.read("meet Ravi at 3").names == ("Ravi Patel",)
    assert AddressBook(["pixel 8"]).read("meet pixel at 3").names == ("pixel 8",)


def test_a_recipient_with_a_number_at_the_end_is_no_part_of_the_words() -> None:
    text = "send a text that says hi to pc-2"
    words = message(text, [])
    assert words is not None
    assert words.of(text) == "hi"
