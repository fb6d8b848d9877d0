"""Placeholders: typed, numbered, stable; surrogates invented and never real."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.privacy.placeholders import BRACKETS, SURROGATES, PlaceholderMap, mask
from node.privacy.rehydrate import Restorer
from node.privacy.surrogates import surrogates
from node.privacy.vault import Hit, Vault


def test_the_same_value_keeps_its_token_however_it_is_spelled() -> None:
    tokens = PlaceholderMap()
    assert tokens.token_for("Ana Kovač", "PERSON") == "[PERSON_1]"
    assert tokens.token_for("ANA  KOVAC", "PERSON") == "[PERSON_1]"
    assert tokens.token_for("John", "PERSON") == "[PERSON_2]"
    assert tokens.token_for("John", "ORG") == "[ORG_1]"
    assert tokens.tokens == {"[PERSON_1]": "Ana Kovač", "[PERSON_2]": "John", "[ORG_1]": "John"}


@pytest.mark.parametrize("type_", ["person", "X", "TOOLONGATYPENAME", "P2", "", "PER SON"])
def test_an_unknown_type_becomes_private(type_: str) -> None:
    assert PlaceholderMap().token_for("v", type_) == "[PRIVATE_1]"


def test_values_of_signs_only_are_told_apart() -> None:
    tokens = PlaceholderMap()
    assert tokens.token_for("☎", "ID") != tokens.token_for("☃", "ID")


def test_numbers_that_already_stand_in_a_text_are_not_given_out() -> None:
    tokens = PlaceholderMap()
    tokens.reserve("you wrote [PERSON_1] and Person_02, email #7")
    assert tokens.token_for("Ana", "PERSON") == "[PERSON_3]"
    assert tokens.token_for("a@b.c", "EMAIL") == "[EMAIL_1]"


def test_masking_says_where_the_tokens_stand() -> None:
    tokens = PlaceholderMap()
    text = "Ana met John; Ana left."
    hits = [Hit(0, 3, "PERSON"), Hit(8, 12, "PERSON"), Hit(14, 17, "PERSON")]
    masked, replaced = mask(text, hits, tokens)
    assert masked == "[PERSON_1] met [PERSON_2]; [PERSON_1] left."
    assert [masked[span.start : span.end] for span in replaced] == ["[PERSON_1]", "[PERSON_2]", "[PERSON_1]"]
    assert [span.original for span in replaced] == ["Ana", "John", "Ana"]
    assert mask("nothing", [], tokens) == ("nothing", ())


@pytest.mark.parametrize("style", [BRACKETS, SURROGATES])
@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["Ana Kovač", "Bo", "x@y.example", "041 234 567", "Acme d.o.o."]),
                          st.sampled_from(["PERSON", "EMAIL", "PHONE", "ORG", "BIRTHDAY"])), min_size=1, max_size=8))
def test_masking_and_restoring_give_the_text_back(style: str, pieces: list[tuple[str, str]]) -> None:
    text, hits = "", []
    for value, type_ in pieces:
        text += "so "
        hits.append(Hit(len(text), len(text) + len(value), type_))
        text += value + ", "
    tokens = PlaceholderMap(style)
    tokens.reserve(text)
    masked, _ = mask(text, hits, tokens)
    assert Restorer(tokens.tokens).restore(masked) == text
    for value, _ in pieces:
        assert value not in masked


def test_surrogates_have_the_form_of_the_value() -> None:
    tokens = PlaceholderMap(SURROGATES)
    assert re.fullmatch(r"[A-Z]\w+ [A-Z]\w+", tokens.token_for("Ana Kovač", "PERSON"))
    assert re.fullmatch(r"[A-Z]\w+", tokens.token_for("Ana", "PERSON"))
    assert tokens.token_for("ana@k.example", "EMAIL").endswith("@example.org")
    assert tokens.token_for("041 234", "PHONE").startswith("+1 202 555 01")
    assert re.fullmatch(r"\d+ \w+ \w+", tokens.token_for("12 Alder Row", "ADDRESS"))
    assert re.fullmatch(r"\d+ \w+ \w+, \w+", tokens.token_for("3 Alder Row, Bled", "ADDRESS"))
    assert tokens.token_for("Ljubljana", "PLACE").istitle()
    assert tokens.token_for("Acme", "ORG")
    assert tokens.token_for("1 May 1980", "BIRTHDAY") == "[BIRTHDAY_1]"     # a date keeps its bracket


def test_one_person_stays_one_person_whichever_name_is_used() -> None:
    tokens = PlaceholderMap(SURROGATES)
    given_name, family_name = tokens.token_for("Dr. Ana Kovač", "PERSON").split()
    assert tokens.token_for("Ana", "PERSON") == given_name
    assert tokens.token_for("KOVAC", "PERSON") == family_name
    # the other way round, the first name first
    first = tokens.token_for("Bo", "PERSON")
    assert first not in (given_name, family_name)
    assert tokens.token_for("Bo Lee", "PERSON").split()[0] == first
    # a name of two persons stands for neither of them
    other = tokens.token_for("Mia Kovač", "PERSON")
    assert family_name not in other
    assert PlaceholderMap(SURROGATES).token_for("Kovač", "PERSON") not in other
    text = "Dr. Ana Kovač wrote to Bo; Ana signed."
    hits = [Hit(0, 13, "PERSON"), Hit(23, 25, "PERSON"), Hit(27, 30, "PERSON")]
    masked, _ = mask(text, hits, tokens)
    assert Restorer(tokens.tokens).restore(masked) == text


def test_the_name_of_two_persons_gets_a_stand_in_of_its_own() -> None:
    tokens = PlaceholderMap(SURROGATES)
    both = {*tokens.token_for("Ana Kovač", "PERSON").split(), *tokens.token_for("Mia Kovač", "PERSON").split()}
    assert tokens.token_for("Kovač", "PERSON") not in both


@pytest.mark.parametrize("style", [BRACKETS, SURROGATES])
def test_the_plus_of_a_number_is_part_of_it(style: str) -> None:
    text = "Call +44 1632 960114 or 44 1632 960114."
    hits = [Hit(6, 20, "PHONE"), Hit(24, 38, "PHONE")]
    tokens = PlaceholderMap(style)
    masked, replaced = mask(text, hits, tokens)
    token = replaced[0].token
    assert masked == f"Call {token} or {token}."
    assert [span.original for span in replaced] == ["+44 1632 960114", "44 1632 960114"]
    assert tokens.tokens == {token: "+44 1632 960114"}


def test_a_surrogate_is_never_a_real_value() -> None:
    first = next(surrogates("PERSON", words=2))
    given_name = first.split()[0]
    vault = Vault([(f"{given_name} Smith", "PERSON")])
    tokens = PlaceholderMap(SURROGATES)
    token = tokens.token_for("Ana Kovač", "PERSON", is_real=lambda text: bool(vault.find(text)))
    assert token != first
    assert vault.find(token) == []
    # without the check it would be: the negative control
    assert PlaceholderMap(SURROGATES).token_for("Ana Kovač", "PERSON") == first


def test_a_surrogate_that_stands_in_the_text_is_not_used() -> None:
    first = next(surrogates("PERSON", words=2))
    tokens = PlaceholderMap(SURROGATES)
    tokens.reserve(f"have you read {first.split()[1]}?")
    assert first.split()[1] not in tokens.token_for("Ana Kovač", "PERSON")


def test_when_surrogates_run_out_brackets_take_over() -> None:
    tokens = PlaceholderMap(SURROGATES)
    given_out = [tokens.token_for(f"Town{n}", "PLACE") for n in range(12)]
    assert len(set(given_out)) == 12
    assert given_out[-1].startswith("[PLACE_")


@pytest.mark.parametrize("type_", ["PERSON", "EMAIL", "PHONE", "ADDRESS", "PLACE", "ORG"])
def test_surrogates_are_short_and_distinct(type_: str) -> None:
    made = list(surrogates(type_, words=2))
    assert all(0 < len(text) <= 36 for text in made[:60])
    assert len(set(made[:50])) == len(made[:50])


def test_an_unknown_style_counts_as_brackets() -> None:
    assert PlaceholderMap("angle").style == BRACKETS
