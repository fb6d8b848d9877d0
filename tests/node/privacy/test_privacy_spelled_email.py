"""E-mail addresses spelt so that no program should find them are masked like others; sentences with "at" are not."""

import json

import pytest
from cpu_limit import cpu_limit
from guard_bench import FRIEND, guard_bench
from hypothesis import given, settings
from hypothesis import strategies as st

from node.privacy import patterns
from node.privacy.egress import Part
from node.privacy.labels import owner_text
from node.privacy.patterns import find_patterns
from node.privacy.spelled_email import find_spelled_emails
from node.privacy.vault import Vault, merge

SPELT = [
    "dana(at)acme.example", "dana (at) acme", "dana [at] acme [dot] com", "dana{at}acme{dot}com", "dana <at> acme.com",
    "dana at acme dot com", "dana dot whitfield at acme dot com", "dana.whitfield at acme.com", "danaw at gmail.com",
    "dana @ acme.com", "dana@acme dot com", "dana&#64;acme.com", "dana%40acme%2Ecom", "dana(a)acme.com",
    "danaATacmeDOTcom", "dana_at_acme_dot_com", "dana-at-acme-dot-co-dot-uk", "DANA AT ACME DOT COM",
    "anna at gmx dot at", "dana underscore w at acme dot org", "dana [ät] firma [punkt] de", "dana (at) pc-2",
    "dana at mail dot acme dot co dot uk", "dana [dot] w [at] acme [dot] com", "dana@acme(dot)com",
    "dana @ acme . com", "dana@acme . com", "dana @ mail . acme . co . uk", "dana(at)acme . org", "dana *at* acme",
    "dana -at- acme -dot- com", "dana *at* acme *dot* com", "dana _at_ acme _dot_ com", "dana /at/ acme.com",
    "dana ~at~ acme", "dana.w |at| pc-2", "dana ==at== acme dot com", "dana *at* acme . com",
    "DANA -AT- ACME -DOT- COM",
]
PROSE = [
    "meet at host", "meet at noon dot", "look at the red dot in the corner", "we work at acme.com", "x @ y",
    "buy it at amazon.com", "find me @ www.acme.com", "look at that dot com bubble", "open 24/7 at acme.com",
    "see you at 10.30", "option (a) host", "look at red dot in the sky", "look at one dot it moved", "user@localhost",
    "self.look_at_target.position", "sold at 3.50 dot", "met at st. paul", "arrive at st.pancras", "dinner @ 8.30pm",
    "the house at no.5", "a polka dot dress at home", "He works at booking.com.", "items.get_at_index.value",
    "polka dot curtains at home", "stop at dot seven", "at dot com", "if text[at] in words", "run(at) not now",
    "look *at* Paris", "stay *at* home", "he is *at* once", "meet *at* noon", "not -at- all", "good *at* maths",
    "x*at*y", "arrived *at* Berlin", "| dana | at | acme |", "dinner @ eight . Call me", "dana - at - acme",
    "src/at/main.c", "Dana *at* home", "see you @ noon . it works", "we met @ www . acme . com", "see *at* 7",
    "the *at* sign",
]


def found(text: str) -> list[str]:
    return [text[hit.start : hit.end] for hit in merge(find_patterns(text), text)]


@pytest.mark.parametrize("address", SPELT)
@pytest.mark.parametrize("around", ["{}", "so {} ok", "({}).", "“{}”?", "Mail: {}\nThanks"])
def test_spelt_addresses_are_found_whole(address: str, around: str) -> None:
    assert address in found(around.format(address))


@pytest.mark.parametrize("sentence", PROSE)
def test_sentences_are_left_alone(sentence: str) -> None:
    assert found(sentence) == []
    assert found(f"{sentence} and so on") == []


@pytest.mark.parametrize("text", [
    "dana@ac\u200bme.example", "dana\u2060@acme.example", "dana＠acme.example", "dana@acme．example",
    "dana (ａｔ) acme",
])
def test_invisible_and_wide_characters_hide_nothing(text: str) -> None:
    assert found(f"to {text} now") == [text]


def test_wide_digits_are_digits() -> None:
    assert found("call ＋３８６ ４１ ２３４ ５６７!") == ["＋３８６ ４１ ２３４ ５６７"]


@pytest.mark.parametrize("text", [
    "ana.kovac at pc-2 dot lan", "ana dot kovac at pc-2 dot lan", "ana.kovac at pc-2.lan", "ana.kovac@pc-2 dot lan",
    "anadotkovacatpc2dotlan",
])
def test_a_known_address_is_found_whatever_its_host(text: str) -> None:
    vault = Vault([("ana.kovac@pc-2.lan", "EMAIL")])
    assert [text[hit.start : hit.end] for hit in vault.find(text)] == [text]


async def test_the_host_of_a_spelt_address_does_not_leave(monkeypatch) -> None:
    guard = await guard_bench([("Zdravka Korenjak", "PERSON"), ("zdravka@acme.example", "EMAIL")])
    asked = Part("user", owner_text("Write to zdravka(at)acme.example, copy to ivo [at] tehnika [dot] si."))
    marked = Part("user", owner_text("Write to ivo -at- tehnika -dot- si or eva @ tehnika . si today."))
    for conversation, peer in (("c1", FRIEND), ("c2", FRIEND)):
        clearance = await guard.clear(asked, peer=peer, conversation=conversation)
        assert clearance.texts == ("Write to [EMAIL_1], copy to [EMAIL_2].",)
        assert clearance.restore(clearance.texts[0]) == asked.text.value
    assert (await guard.clear(marked, conversation="c4")).texts == ("Write to [EMAIL_1] or [EMAIL_2] today.",)
    # the negative control: the net without this rule lets the host through
    monkeypatch.setattr(patterns, "find_spelled_emails", lambda text: [])
    clearance = await guard.clear(asked, conversation="c3")
    assert "tehnika" in clearance.texts[0]
    clearance = await guard.clear(marked, conversation="c5")
    assert clearance.texts[0].count("tehnika") == 2


async def test_what_is_left_after_masking_is_no_new_address() -> None:
    """A name masked beside "at host" must not read as an address afterwards: it would hold the whole request up."""
    guard = await guard_bench([("Will Novak", "PERSON"), ("Zdravka Korenjak", "PERSON")])
    for number, text in enumerate((
        "Tell Will Novak at acme.com that it is fixed.", "Zdravka Korenjak at acme dot com", "ask Will @ acme.com",
        "Zdravka (at) work", "email Will at gmail.com", "Zdravka *at* work", "ask Will -at- acme -dot- com",
        "Will @ acme . com",
    )):
        clearance = await guard.clear(Part("user", owner_text(text)), conversation=f"c{number}")
        assert "Zdravka" not in clearance.texts[0]
        assert "Will" not in clearance.texts[0]


@settings(deadline=None)
@given(st.text(alphabet="ab@. ()[]_-dotATDOT\u200b＠&#64;%40", max_size=120))
def test_any_text_gives_spans_inside_it(text: str) -> None:
    assert all(0 <= hit.start < hit.end <= len(text) for hit in find_patterns(text))


@pytest.mark.parametrize("piece", [
    "a.", "a at ", "a dot ", "(at)", "a (at) ", "x dot y at ", "a_at_", "aATb", "a [dot] ", "a-at-b.", "%40a", "((((",
    "a (  ", "a -at- ", "a *at* b *dot* ", "a @ b . ", "a -dot- ", "a . ", "*at*",
])
def test_hostile_repetition_costs_linear_work(piece: str) -> None:
    with cpu_limit():
        list(find_spelled_emails(piece * (200_000 // len(piece))))


def test_texts_without_annotated_addresses_hold_none(shared_privacy) -> None:
    """Chat and posts as people write them: what the rule takes for an address there is one."""
    rows = [json.loads(line) for line in (shared_privacy / "presidio_research_dev.jsonl").read_text().splitlines()]
    texts = [row["text"] for row in rows if all(kind != "EMAIL_ADDRESS" for _, _, kind in row["spans"])]
    texts += [json.loads(line)["text"] for line in (shared_privacy / "wnut17_dev.jsonl").read_text().splitlines()]
    assert len(texts) > 500
    spelt = [text[start:end] for text in texts for start, end in find_spelled_emails(text)]
    assert [address for address in spelt if " @ gmail . com" not in address] == []
    assert len(spelt) <= 1
