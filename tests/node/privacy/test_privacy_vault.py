"""The vault finds values however they are spelled, and leaves everyday words alone."""

import json
import random
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.privacy.near_names import NearNames
from node.privacy.normalise import fold, fold_word, squeeze, squeeze_word
from node.privacy.vault import Hit, Vault, merge

VALUES = [
    ("Ana Kovač", "PERSON"), ("ana.kovac@example.org", "EMAIL"), ("+386 41 234 567", "PHONE"),
    ("12 Alder Row, Brightwater", "ADDRESS"), ("John Smith", "PERSON"), ("Will Müller", "PERSON"),
    ("May Brown", "PERSON"), ("Dentist", "EVENT"), ("SI56 1920 0123 4567 892", "ID"),
    ("Jonathan Fitzgerald", "PERSON"), ("Dr. Ilse", "PERSON"), ("Contoso", "ORG"),
]
VAULT = Vault(VALUES)


def found(text: str, vault: Vault = VAULT) -> list[str]:
    return [text[hit.start : hit.end] for hit in vault.find(text)]


@pytest.mark.parametrize(("text", "expected"), [
    ("write to Ana Kovac", ["Ana Kovac"]),
    ("ANA KOVAČ", ["ANA KOVAČ"]),
    ("ana kovač", ["ana kovač"]),
    ("аnа Kоvаč", ["аnа Kоvаč"]),                        # Cyrillic look-alikes
    ("A\u200bna Ko\u00advač", ["A\u200bna Ko\u00advač"]),
    ("Ａｎａ Ｋｏｖａč", ["Ａｎａ Ｋｏｖａč"]),
    ("Ana\nKovač", ["Ana\nKovač"]),
    ("ana_kovac", ["ana_kovac"]),
    ("AnaKovac said", ["AnaKovac"]),
    ("Kovač, Ana", ["Kovač, Ana"]),
    ("A. Kovač", ["A. Kovač"]),
    ("Kovač A.", ["Kovač A"]),
    ("Kovač's car", ["Kovač"]),
    ("Anas Auto", ["Ana"]),
    ("only Ana", ["Ana"]),
    ("JohnSmith84", ["JohnSmith"]),
    ("J o h n  S m i t h", ["J o h n  S m i t h"]),
    ("mail ana.kovac@example.org!", ["ana.kovac@example.org"]),
    ("ana.kovac@other.example", ["ana.kovac"]),
    ("Mueller called", ["Mueller"]),
    ("Muller called", ["Muller"]),
    ("Ilse", ["Ilse"]),
    ("at CONTOSO", ["CONTOSO"]),
    ("user Smith84", ["Smith"]),
    ("1Smith", ["Smith"]),
    ("xxjohnsmithyy", ["johnsmith"]),
])
def test_names_in_any_spelling(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize("text", [
    "+386 41 234 567", "041 234 567", "0038641234567", "+386-41-234-567", "(041) 234-567", "041.234.567",
    "ring 041/234/567 now", "٠٤١ ٢٣٤ ٥٦٧",
])
def test_a_telephone_number_in_any_grouping(text: str) -> None:
    assert any(hit.type == "PHONE" for hit in VAULT.find(text))


def test_two_numbers_with_one_ending_are_both_known() -> None:
    both = Vault([("01 234 5678", "PHONE"), ("+386 30 234 5678", "ID")])
    assert [hit.type for hit in both.find("01 234 5678")] == ["PHONE"]
    assert [hit.type for hit in both.find("030 234 5678")] == ["ID"]


@pytest.mark.parametrize("text", [
    "1987-03-09", "9/3/1987", "09.03.1987", "3/9/1987", "9 March 1987", "March 9, 1987",
    "Mar 09 1987", "9th March 1987", "March 9th, 1987", "19870309",
])
def test_a_birthday_as_people_write_it(text: str) -> None:
    vault = Vault([("1987-03-09", "BIRTHDAY")])
    assert found(f"born {text}.", vault) == [text]
    assert found("born 10 March 1987 or 2020-13-45", vault) == []
    assert len(Vault([("2020-13-45", "ID")])) == 1


def test_a_short_joined_name_needs_the_edge_of_a_word() -> None:
    vault = Vault([("Bo Smyth", "PERSON")])
    assert found("BoSmyth84, bosmyths", vault) == ["BoSmyth", "bosmyth"]
    assert found("xbosmyth bosmythic", vault) == []


def test_short_names_and_numbers() -> None:
    vault = Vault([("Bo Li", "PERSON"), ("000 123 456", "ID"), ("Flat 1234", "ADDRESS")])
    assert found("Bo Li, li, 000123456", vault) == ["Bo Li", "000123456"]
    assert found("flat 12345", vault) == []
    assert found("flat 1234b", vault) == ["flat 1234"]
    assert found("flat1234b", vault) == ["flat1234"]


@pytest.mark.parametrize("text", ["041 234 568", "2341 567", "12 345", "tel 1 800 234 999"])
def test_other_numbers_are_left_alone(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("text", [
    "SI56192001234567892", "si56-1920-0123-4567-892", "S I 5 6 1920 0123 4567 892", "IBANSI56192001234567892",
])
def test_a_long_identifier_in_any_grouping(text: str) -> None:
    assert [hit.type for hit in VAULT.find(text)] == ["ID"]


@pytest.mark.parametrize("text", [
    "I will go in May", "may I ask", "May 5 is fine", "the will of the people", "old dentist", "a brown car",
    "12 people", "go down the row", "see you in May", "WILL THIS WORK", "Will you come?", "Will", "by May",
])
def test_everyday_words_are_not_people(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(("text", "expected"), [
    ("dear will, come", ["will"]),
    ("ask Will about it", ["Will"]),
    ("Will said ok", ["Will"]),
    ("see May tomorrow", ["May"]),
    ("ASK WITH WILL", ["WILL"]),
    ("Müller came. Will too", ["Müller", "Will"]),
    ("see the Dentist", ["Dentist"]),
    ("go to Brightwater", ["Brightwater"]),
    ("Alder Row", ["Alder Row"]),
])
def test_everyday_words_with_a_second_signal_are(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(("text", "expected"), [
    ("Jonathon Fitzgerald", ["Jonathon Fitzgerald"]),
    ("jonathan fitzgerlad", ["jonathan fitzgerlad"]),
    ("ask mr Fitzgerlad", ["Fitzgerlad"]),
    ("we met Fitzgerlad", ["Fitzgerlad"]),
    ("we met fitzgerlad", []),
    ("Jonh Smiht", ["Jonh Smiht"]),
])
def test_one_typing_error(text: str, expected: list[str]) -> None:
    assert found(text) == expected


def test_what_a_tool_returned_counts_whatever_its_words() -> None:
    assert found("the dentist", Vault([("Dentist", "EVENT")], strict=True)) == ["dentist"]
    assert found("i will", Vault([("Will", "PERSON")], strict=True)) == ["will"]


@pytest.mark.parametrize("value", ["", " ", "x", "12", "123", "!!!"])
def test_values_too_short_to_look_for_are_left_out(value: str) -> None:
    vault = Vault([(value, "PERSON")])
    assert len(vault) == 0
    assert vault.find("x 12 123 !!!") == []


def test_an_empty_text_and_an_empty_vault() -> None:
    assert VAULT.find("") == []
    assert Vault([]).find("Ana Kovač") == []
    assert len(VAULT) == len(VALUES)


def test_of_overlapping_hits_the_longest_wins_and_nothing_is_uncovered() -> None:
    hits = merge([Hit(0, 5, "A"), Hit(3, 10, "B"), Hit(10, 12, "C"), Hit(3, 4, "D")], "ab cdefghijk")
    assert hits == [Hit(0, 2, "A"), Hit(3, 10, "B"), Hit(10, 12, "C")]
    assert merge([Hit(2, 4, "A"), Hit(0, 3, "B"), Hit(3, 6, "C")], "abcdef") == [Hit(0, 3, "B"), Hit(3, 6, "C")]
    both = Vault([("Ana Kovač", "PERSON"), ("Kovač Trade", "ORG")])
    assert found("Ana Kovač Trade", both) == ["Ana", "Kovač Trade"]


@settings(deadline=None)
@given(st.text())
def test_folding_points_back_into_the_text(text: str) -> None:
    folded = fold(text)
    assert len(folded.text) == len(folded.origin)
    assert folded.origin == sorted(folded.origin)
    assert all(0 <= at < len(text) for at in folded.origin)
    assert "  " not in folded.text
    assert squeeze(folded).text == folded.text.replace(" ", "")


@settings(deadline=None)
@given(st.text(max_size=60), st.sampled_from([value for value, _ in VALUES if " " in value]), st.text(max_size=60))
def test_a_whole_value_between_spaces_is_always_covered(before: str, value: str, after: str) -> None:
    text = f"{before} {value} {after}"
    start = len(before) + 1
    covered = {at for hit in VAULT.find(text) for at in range(hit.start, hit.end)}
    solid = {at for at in range(start, start + len(value)) if text[at].isalnum()}
    assert solid <= covered


@settings(deadline=None)
@given(st.text())
def test_any_text_gives_sorted_disjoint_spans(text: str) -> None:
    hits = VAULT.find(text)
    assert all(hit.start < hit.end <= len(text) for hit in hits)
    assert all(one.end <= two.start for one, two in pairwise(hits))


def test_folding_of_special_letters() -> None:
    assert fold_word("Łukasz Øster Straße ﬁ ①") == "lukasz oster strasse fi 1"
    assert squeeze_word("a-b c") == "abc"


def test_near_names_only_know_words() -> None:
    near = NearNames()
    assert list(near.find("anything")) == []
    near.add("o2", 1)
    near.add("averylongnamethatnobodycouldeverhaveinlife", 1)
    assert list(near.find("o2")) == []


def _recall(vault: Vault, spell) -> float:
    rng = random.Random(7)
    people = [value for value, type_ in _people()]
    hits = 0
    for name in people:
        text = f"Please write to {spell(name, rng)} about the invoice."
        covered = "".join(text[hit.start : hit.end] for hit in vault.find(text))
        hits += sum(c.isalnum() for c in covered) >= sum(c.isalnum() for c in spell(name, random.Random(7))) - 1
    return hits / len(people)


def _people() -> list[tuple[str, str]]:
    rng = random.Random(3)
    def word() -> str:
        syllables = [rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(3, 4))]
        return "".join(syllables).capitalize()
    return [(f"{word()} {word()}", "PERSON") for _ in range(200)]


def _typo(name: str, rng: random.Random) -> str:
    at = rng.randrange(len(name) - 4, len(name) - 1)
    return name[:at] + name[at + 1] + name[at] + name[at + 2 :]


@pytest.mark.parametrize(("spell", "least"), [
    (lambda name, rng: name, 1.0),
    (lambda name, rng: name.lower(), 1.0),
    (lambda name, rng: name.upper(), 1.0),
    (lambda name, rng: name.replace(" ", ""), 1.0),
    (lambda name, rng: ", ".join(reversed(name.split())), 1.0),
    (_typo, 0.9),
])
def test_two_hundred_names_in_a_sentence(spell, least: float) -> None:
    assert _recall(Vault(_people()), spell) >= least


def test_real_posts_are_hardly_masked(wnut_posts: list[str]) -> None:
    vault = Vault([*_people(), ("Will Brown", "PERSON"), ("Grace May", "PERSON"), ("Mark Love", "PERSON")])
    length = sum(map(len, wnut_posts))
    masked = sum(hit.end - hit.start for post in wnut_posts for hit in vault.find(post))
    assert masked / length < 0.002


@pytest.fixture
def wnut_posts(shared_privacy) -> list[str]:
    lines = (shared_privacy / "wnut17_dev.jsonl").read_text().splitlines()
    return [json.loads(line)["text"] for line in lines]


def test_identifiers_of_an_agent_bench_are_all_found(shared_privacy) -> None:
    env = (shared_privacy / "agentdojo_env_workspace.json").read_text()
    emails = sorted(set(re.findall(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", env.replace("\\n", " "))))
    assert len(emails) > 20
    vault = Vault([(email, "EMAIL") for email in emails])
    for email in emails:
        for text in (f"send it to {email}.", f"<{email.upper()}>", f"{email};"):
            covered = "".join(text[hit.start : hit.end] for hit in vault.find(text)).lower()
            assert email.lower() in covered


MORE = Vault([
    ("Zdravka Korenjak", "PERSON"), ("Will Ivanov", "PERSON"), ("Dana Ivanov", "PERSON"), ("+386 41 234 567", "PHONE"),
    ("+43 (0)660 123 45 67", "PHONE"), ("1984-03-15", "DATE"),
])


@pytest.mark.parametrize(("text", "expected"), [
    ("Zdravka K. called", ["Zdravka K"]),                       # a first name with an initial
    ("Dana I think so", ["Dana"]),
    ("will I go", []),
    ("00386 (0)41/234-567", ["00386 (0)41/234-567"]),           # the trunk zero that is dialled at home only
    ("386(0)41234567", ["386(0)41234567"]),
    ("0043 660 123 45 67", ["0043 660 123 45 67"]),             # ... and one in the address book
    ("0660/1234567", ["0660/1234567"]),
    ("(0) and 12 more", []),
    ("on the 15th of March 1984", ["15th of March 1984"]),
    ("15.3.84", ["15.3.84"]),
    ("3/15/84", ["3/15/84"]),
    ("15. 3. 85", []),
])
def test_short_forms_of_names_numbers_and_dates(text: str, expected: list[str]) -> None:
    assert found(text, MORE) == expected


def test_without_the_rule_a_trunk_zero_hides_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    monkeypatch.setattr("node.privacy.vault._TRUNK", re.compile(r"(?!)()"))
    assert found("00386 (0)41/234-567", MORE) == []
