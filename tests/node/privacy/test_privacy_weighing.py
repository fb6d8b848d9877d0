"""Which findings of detectors count: those that tell of a person; dates, acronyms and public names stay readable."""

import pytest

from node.privacy.public_names import PublicNames, shipped_names
from node.privacy.weighing import weigh

PUBLIC = PublicNames((*shipped_names(), "Tolmin"))


def marked(text: str, *found: tuple[str, str]) -> list[tuple[str, str]]:
    """What is masked of text when the detectors found these words with these types."""
    spans = [(text.index(word), text.index(word) + len(word), type_) for word, type_ in found]
    return [(text[hit.start : hit.end], hit.type) for hit in weigh(text, spans, PUBLIC, this_year=2026)]


@pytest.mark.parametrize(("text", "written", "masked"), [
    ("I was born on 3 May 2019", "3 May 2019", True),
    ("date of birth: 1990-02-03", "1990-02-03", True),
    ("they married on 12/06/1994", "12/06/1994", True),
    ("married on June 12, 1994", "June 12, 1994", True),
    ("let us meet on 12/06/2027", "12/06/2027", False),
    ("let us meet next Tuesday", "next Tuesday", False),
    ("the war ended in 1945", "1945", False),
    ("at 3 pm", "3 pm", False),
])
def test_dates_of_lives_are_masked_and_dates_of_plans_are_not(text: str, written: str, masked: bool) -> None:
    assert marked(text, (written, "DATE")) == ([(written, "DATE")] if masked else [])


@pytest.mark.parametrize(("text", "age"), [
    ("I am 64 years old", "64"), ("a 45-year-old man", "45"), ("aged 31, from here", "31"), ("i'm 23 y/o", "23"),
    ("my 7 year old son", None), ("a 200 year old house", None), ("in 30 years", None),
])
def test_ages_of_adults_are_masked(text: str, age: str | None) -> None:
    assert marked(text) == ([(age, "AGE")] if age else [])


def test_public_names_acronyms_and_nationalities_stay_readable() -> None:
    text = "Ask the Python team at IBM whether Shakespeare liked Italian food in Tolmin"
    found = [("Python", "ORG"), ("IBM", "ORG"), ("Shakespeare", "PERSON"), ("Italian", "GROUP"), ("Tolmin", "PLACE")]
    assert marked(text, *found) == []
    assert marked("Ask Ebenezer", ("Ebenezer", "PERSON")) == [("Ebenezer", "PERSON")]     # control
    assert marked("call Python at 5551234", ("5551234", "PHONE")) == [("5551234", "PHONE")]


def test_titles_go_with_the_name() -> None:
    assert marked("Ask Dr. Ebenezer", ("Ebenezer", "PERSON")) == [("Dr.", "TITLE"), ("Ebenezer", "PERSON")]
    assert marked("Ask Dr. Ebenezer") == []


def test_pieces_of_one_address_or_name_become_one() -> None:
    text = "12 Alder Row, Leeds and Ann Bea"
    pieces = [("12", "ADDRESS"), ("Alder Row", "ADDRESS"), ("Leeds", "PLACE"), ("Ann", "NAME"), ("Bea", "PERSON")]
    assert marked(text, *pieces) == [("12 Alder Row, Leeds", "ADDRESS"), ("Ann Bea", "PERSON")]
    apart = "Ann and Lee"
    assert marked(apart, ("Ann", "PERSON"), ("Lee", "PERSON")) == [("Ann", "PERSON"), ("Lee", "PERSON")]


def test_names_are_compared_however_they_are_written() -> None:
    names = PublicNames(["São Paulo", " "])
    assert len(names) == 1
    assert all(map(names.holds, ["sao paulo", "SÃO PAULO", "the São Paulo", "São Paulo's"]))
    assert not names.holds("Paulo")
    assert len(shipped_names()) > 300


def test_a_small_number_alone_is_no_address() -> None:
    assert marked("I need 12 eggs", ("12", "ADDRESS")) == []
    assert marked("flat 7, 12 Alder Row", ("12", "ADDRESS"), ("Alder Row", "ADDRESS")) == [("12 Alder Row", "ADDRESS")]
    assert marked("zip 86036", ("86036", "ADDRESS")) == [("86036", "ADDRESS")]
