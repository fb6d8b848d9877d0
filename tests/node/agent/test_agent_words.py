"""Readers of people, closed sets, places, quantities and phrases."""

import agent_bank as bank
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.agent.effects import Span
from node.agent.readers.closed import on_off_or_number, pick
from node.agent.readers.people import AddressBook
from node.agent.readers.phrases import phrase, quoted, residual, trimmed
from node.agent.readers.places import place
from node.agent.readers.quantities import conversion, convert, evaluate, expression

BOOK = bank.BOOK


@pytest.mark.parametrize(("text", "names"), [
    ("lunch with Ana", ["Ana Kovac"]), ("lunch with Anna", ["Anna Lindqvist"]), ("call mum", ["Mum (Helen Marsh)"]),
    ("Dr Patel's phone", ["Dr. Patel"]), ("text dana: hi", ["Dana Whitfield"]), ("li wei", ["Li Wei"]),
    ("with Dana, Priya and Li", ["Dana Whitfield", "Priya Nair", "Li Wei"]), ("Jonas Keller", ["Jonas Keller"]),
    ("on 25 March", []), ("the plan for May", []), ("in the kitchen", []), ("Helen Marsh", ["Mum (Helen Marsh)"]),
])
def test_people(text: str, names: list[str]) -> None:
    found = BOOK.read(text)
    assert list(found.names) == names
    assert found.unclear == ()


@pytest.mark.parametrize(("text", "said", "candidates"), [
    ("book 45 minutes with Zoe", "Zoe", ()), ("invite Bjorn and Dana", "Bjorn", ()),
    ("meet Ann tomorrow", "Ann", ("Ana Kovac", "Anna Lindqvist")), ("with Dnaa", "Dnaa", ("Dana Whitfield",)),
    ("a call with Dana and Zoe", "Zoe", ()), ("Ann's number?", "Ann", ("Ana Kovac", "Anna Lindqvist")),
    ("dinner with Priyo", "Priyo", ("Priya Nair",)),
])
def test_an_unknown_or_mistyped_name_is_a_question_never_a_guess(text: str, said: str,
    candidates: tuple[str, ...]) -> None:
    found = BOOK.read(text)
    assert [(one.said, one.candidates) for one in found.unclear] == [(said, candidates)]
    assert not set(candidates) & set(found.names)


def test_a_word_that_two_people_share_is_a_question() -> None:
    found = AddressBook(["Ana Kovac", "Ana Silva", "Mark Berg"]).read("lunch with Ana")
    assert found.names == ()
    assert found.unclear[0].candidates == ("Ana Kovac", "Ana Silva")


def test_an_everyday_word_is_a_name_only_with_a_capital() -> None:
    book = AddressBook(["Mark Berg", "Will Young"])
    assert book.read("mark the date, I will come").names == ()
    assert book.read("lunch with Mark").names == ("Mark Berg",)


def test_words_of_a_date_are_no_names() -> None:
    book = AddressBook(["Helen Marsh", "April Jones"])
    assert book.read("on 25 March", taken=[Span(3, 11)]).names == ()
    assert book.read("on 2 April", taken=[Span(0, 10)]).names == ()


@pytest.mark.parametrize(("text", "choices", "value"), [
    ("show the roof repair note", ["Roof repair", "Garden plan"], "Roof repair"),
    ("email address of Li", ["phone", "email", "address"], "email"),
    ("how can I reach her by phone", ["phone", "email"], "phone"),
    ("where does he live", ["phone", "address"], "address"),
    ("the budget", ["Budget 2026", "Wifi codes"], "Budget 2026"),
    ("Turn on do not disturb", ["wifi", "do_not_disturb"], "do_not_disturb"), ("nothing of it", ["Roof repair"], None),
    ("read taxes.txt", ["taxes.txt", "lease.txt"], "taxes.txt"),
])
def test_closed_sets(text: str, choices: list[str], value: str | None) -> None:
    found = pick(text, choices)
    assert (found.value if found else None) == value


def test_a_part_that_two_values_share_lists_both() -> None:
    found = pick("the budget note", ["Budget 2025", "Budget 2026"])
    assert found is not None
    assert {found.value, *found.others} == {"Budget 2025", "Budget 2026"}


@pytest.mark.parametrize(("text", "value"), [
    ("switch it off", "off"), ("to 50 percent", "50"), ("enable it", "on"), ("at maximum", "100"), ("to 250", None),
])
def test_settings_values(text: str, value: str | None) -> None:
    found = on_off_or_number(text)
    assert (found.value if found else None) == value


@pytest.mark.parametrize(("text", "said"), [
    ("What time is it in Tokyo?", "Tokyo"), ("how late is it in Sydney right now", "Sydney"), ("what time is it", None),
    ("time in New York please", "New York"), ("current Berlin time", "Berlin"), ("in the morning", None),
])
def test_places(text: str, said: str | None) -> None:
    found = place(text)
    assert (found.of(text) if found else None) == said


@pytest.mark.parametrize(("text", "value"), [
    ("calculate (48 + 17) * 3", 195), ("1299 divided by 12", 108.25), ("20 percent of 80", 16),
    ("square root of 81", 9),
    ("12 times 7", 84), ("add 4 and 19", 23), ("two plus three", 5), ("3 squared plus 1", 10),
])
def test_arithmetic(text: str, value: float) -> None:
    found = expression(text)
    assert found is not None
    assert evaluate(found.code) == pytest.approx(value)
    assert 0 <= found.said.start < found.said.end <= len(text)


@pytest.mark.parametrize("code", ["9**9**9", "1/0", "__import__('os')", "a+1", "2**65", "[1]*9", "1 if 1 else 2",
    "-" * 5000 + "1", ""])
def test_arithmetic_is_bounded_and_runs_no_code(code: str) -> None:
    assert evaluate(code) is None


@pytest.mark.parametrize(("text", "units"), [
    ("Convert 5 miles to kilometres", ("5", "mile", "kilometer")), ("2.5 litres in cups", ("2.5", "liter", "cup")),
    ("how many inches are in a foot", ("1", "foot", "inch")), ("Convert 5 miles please", ("5", "mile", None)),
    ("book 45 minutes next week", (None, None, None)),
])
def test_conversions(text: str, units: tuple[str | None, ...]) -> None:
    found = conversion(text)
    assert tuple(part[0] if part else None for part in (found.amount, found.source, found.target)) == units


@pytest.mark.parametrize(("text", "inside"), [
    ('message li wei "Happy birthday!"', ["Happy birthday!"]), ("title 'Deep work'", ["Deep work"]),
    ("the parents' evening, Tom's", []),
    ("“two” and «three»", ["two", "three"]),
])
def test_quotes_and_apostrophes(text: str, inside: list[str]) -> None:
    assert [span.of(text) for span in quoted(text)] == inside


@pytest.mark.parametrize(("text", "kind", "words"), [
    ("Make a note: the spare key is with the neighbour", "note", "the spare key is with the neighbour"),
    ("jot this down: gate code 4471", "note", "gate code 4471"), ("add socks to my packing list note", "note", "socks"),
    ("take a note", "note", None), ("remember that the key is under the mat", "note", "the key is under the mat"),
    ("search my notes for the plumber quote", "query", "the plumber quote"), ("search my notes", "query", None),
    ("Do I have any notes about insulation?", "query", "insulation"),
    ("let Marcus know the parcel has arrived", "message", "the parcel has arrived"),
    ("set a reminder for something", "reminder", None), ("schedule lunch with Ana", "title", "lunch"),
])
def test_phrases(text: str, kind: str, words: str | None) -> None:
    found = phrase(text, kind, ())
    assert (found.of(text) if found else None) == words


def test_what_is_left_over_for_the_model_holds_no_time_and_no_politeness() -> None:
    text = "could you please put the vet on my calendar tomorrow at 6 please"
    cut = [Span(text.index("tomorrow"), text.index(" please", 30))]
    assert residual(text, cut) == "put the vet"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=50), st.integers(0, 50), st.integers(0, 50))
def test_trimming_stays_inside(text: str, a: int, b: int) -> None:
    span = Span(min(a, b, len(text)), min(max(a, b), len(text)))
    found = trimmed(text, span, [Span(2, 5)])
    assert found is None or (span.start <= found.start < found.end <= span.end)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["with", "Zoe", "Dana", "Ann", "and", "invite", "note", "about", "for", "Roof", "5",
    "miles", "plus", "3", "in", "Tokyo", "'x", "y'", '"z"', ":", ",", "."]),
                max_size=10).map(" ".join))
def test_every_span_slices_the_request(text: str) -> None:
    people = BOOK.read(text)
    spans = [one.span for one in (*people.found, *people.unclear)] + quoted(text)
    spans += [span for kind in ("title", "note", "query", "message", "reminder") if (span := phrase(text, kind, ()))]
    spans += [span for span in (place(text),) if span]
    assert all(0 <= span.start < span.end <= len(text) for span in spans)


@pytest.mark.parametrize(("amount", "source", "target", "result"), [
    (5, "mile", "kilometer", 8.04672), (100, "celsius", "fahrenheit", 212), (32, "fahrenheit", "celsius", 0),
    (-40, "celsius", "fahrenheit", -40), (1, "pound", "gram", 453.59237), (2.5, "liter", "cup", 10.5669),
    (0, "kelvin", "celsius", -273.15), (1, "foot", "inch", 12), (3, "week", "day", 21),
])
def test_units_by_definition(amount: float, source: str, target: str, result: float) -> None:
    assert convert(amount, source, target) == pytest.approx(result, rel=1e-5, abs=1e-9)


def test_what_does_not_measure_the_same_is_not_converted() -> None:
    assert convert(1, "mile", "gram") is None
    assert convert(1, "celsius", "cup") is None
