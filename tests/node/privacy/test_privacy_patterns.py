"""Shaped identifiers: found with their whole extent; dates, versions, prices and ids of machines are left alone.

IBANs are the examples of the ISO 13616 registry.
"""

import json

import pytest
from cpu_limit import cpu_limit
from hypothesis import given, settings
from hypothesis import strategies as st

from node.privacy.patterns import find_patterns
from node.privacy.vault import merge


def found(text: str) -> list[str]:
    return [text[hit.start : hit.end] for hit in merge(find_patterns(text), text)]


@pytest.mark.parametrize("text", [
    "a@b.example", "anna.maria+x@mail.firma.example", "ÄNNE@bücher.example", "o_b-c@x-y.co.example",
    "+386 41 234 567", "+1 (202) 555-0123", "+4366012345678", "+44-20-7946-0958",
    "(041) 234-567", "555-123-4567", "555.123.4567", "041 234 567", "0171/123 45 67", "0038641234567",
    "GB29 NWBK 6016 1331 9268 19", "DE89370400440532013000", "si56 2633 0001 2039 086", "NO9386011117947",
    "536-90-4399",
])
def test_identifiers_are_found_whole(text: str) -> None:
    for around in ("{}", "so {}.", "<{}>", "x: {}, y", "({})", "“{}”?"):
        assert text in found(around.format(text)), around


@pytest.mark.parametrize("text", ["call me on 12345678", "Phone:\n60-56-85-91", "tel 01 23 45 67 89", "fax (05)123456"])
def test_a_number_that_is_announced(text: str) -> None:
    assert "".join(char for char in "".join(found(text)) if char.isdigit()) == "".join(filter(str.isdigit, text))


def test_an_iban_with_words_behind_it() -> None:
    assert found("pay GB29 NWBK 6016 1331 9268 19 to me now") == ["GB29 NWBK 6016 1331 9268 19"]


@pytest.mark.parametrize("text", [
    "2026-11-30", "30.11.2026", "10:30", "1,234,567.89", "version 0.12.345", "192.168.1.1", "v1.2.3-4567", "3.14159265",
    "12345678", "room 041", "pages 120-134", "GB29 NWBK 6016 1331 9268 18", "user@localhost", "@handle", "a@b", "x @ y",
    "550e8400-e29b-41d4-a716-446655440000", "ISO 8601-1:2019", "2026/11/30 10.30", "+5", "1 + 2",
    "Python 3.11.7", "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "100 000 000",
])
def test_other_numbers_and_words_are_left_alone(text: str) -> None:
    assert found(text) == []


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_gives_spans_inside_it(text: str) -> None:
    assert all(0 <= hit.start < hit.end <= len(text) for hit in find_patterns(text))


@pytest.mark.parametrize("piece", ["a.", "a@", "1 ", "+1", "GB29 ", "0-1", "(0", "x@y.", "12-"])
def test_hostile_repetition_costs_linear_work(piece: str) -> None:
    with cpu_limit():
        find_patterns(piece * (200_000 // len(piece)))


def test_the_annotated_addresses_of_the_bench(shared_privacy) -> None:
    rows = [json.loads(line) for line in (shared_privacy / "presidio_research_dev.jsonl").read_text().splitlines()]
    for type_, least in (("EMAIL_ADDRESS", 1.0), ("IBAN_CODE", 0.9), ("PHONE_NUMBER", 0.75)):
        spans = [(row["text"], start, end) for row in rows for start, end, kind in row["spans"] if kind == type_]
        assert spans
        hit = sum(any(h.start <= start and end <= h.end for h in find_patterns(text)) for text, start, end in spans)
        assert hit / len(spans) >= least, (type_, hit, len(spans))


def test_real_posts_hold_hardly_any(shared_privacy) -> None:
    posts = [json.loads(line)["text"] for line in (shared_privacy / "wnut17_dev.jsonl").read_text().splitlines()]
    assert sum(bool(find_patterns(post)) for post in posts) <= 3
