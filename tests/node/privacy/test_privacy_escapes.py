"""A name, an address or a password in the escapes of links, pages, JSON and mail is the same one.

The escaped forms are made by the standard library: urllib, html, json, quopri.
"""

import html
import json
import quopri
import urllib.parse
from collections.abc import Callable

import pytest
from cpu_limit import cpu_limit
from guard_bench import guard_bench
from hypothesis import given, settings
from hypothesis import strategies as st

from node.privacy import patterns, secrets, vault
from node.privacy.egress import Part
from node.privacy.errors import HoldsSecret
from node.privacy.escapes import unescaped
from node.privacy.labels import owner_text

NAME = "Štěpánka Kovač"
ADDRESS = "stepanka@acme.example"
ESCAPES: dict[str, Callable[[str], str]] = {
    "url": urllib.parse.quote,
    "url of a form": urllib.parse.quote_plus,
    "url, every byte": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "html": lambda text: text.encode("ascii", "xmlcharrefreplace").decode(),
    "html, hexadecimal": lambda text: "".join(f"&#x{ord(char):x};" for char in text),
    "html, named": lambda text: "".join(
        f"&{html.entities.codepoint2name[ord(char)]};" if ord(char) in html.entities.codepoint2name else char
        for char in text).replace("ě", "&ecaron;").replace("č", "&ccaron;"),
    "json": lambda text: json.dumps(text)[1:-1],
    "json, every character": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "mail": lambda text: quopri.encodestring(text.encode()).decode(),
}


@pytest.mark.parametrize("how", ESCAPES)
async def test_an_escaped_name_is_masked_whole_and_comes_back_as_it_was(how: str) -> None:
    guard = await guard_bench([(NAME, "PERSON")])
    asked = f"see https://x.example/?q={ESCAPES[how](NAME)} please"
    clearance = await guard.clear(Part("user", owner_text(asked)))
    assert clearance.texts == ("see https://x.example/?q=[PERSON_1] please",)
    assert clearance.restore(clearance.texts[0]) == asked


@pytest.mark.parametrize("how", ["url, every byte", "html, hexadecimal", "json, every character"])
async def test_an_escaped_address_of_nobody_known_is_masked(how: str) -> None:
    guard = await guard_bench([("Ana", "PERSON")])
    clearance = await guard.clear(Part("user", owner_text(f"write to {ESCAPES[how](ADDRESS)} now")))
    assert clearance.texts == ("write to [EMAIL_1] now",)


@pytest.mark.parametrize("how", ["url, every byte", "html, hexadecimal", "json, every character"])
async def test_an_escaped_password_stays_here(how: str) -> None:
    guard = await guard_bench([("Ana", "PERSON")])
    with pytest.raises(HoldsSecret):
        await guard.clear(Part("user", owner_text(ESCAPES[how]("my password is hunter2-blue"))))


@pytest.mark.parametrize("asked", [
    "%20{url}, " + "%D0%B5" * 60,           # a run that is longer than any chunk, its letters at odd places
    "%D0%B5" * 60 + "%2C{url}",
    "%ff{url}%C4", "{url}%ff%20", "%C4{url}",
    "\\ud83d{json}", "{json}\\ud83d\\u0020", "\\ude00{json}" + "\\u0435" * 80,
    "=C4{mail}=FF",
    "&#383;{html} &#83",
])
async def test_nothing_beside_it_in_a_run_of_escapes_hides_a_name(asked: str) -> None:
    name = "Иван Петров"
    guard = await guard_bench([(name, "PERSON")])
    text = "see " + asked.format(
        url=ESCAPES["url, every byte"](name), json=ESCAPES["json, every character"](name),
        mail=ESCAPES["url, every byte"](name).replace("%20", " ").replace("%", "="),
        html="".join(f"&#{ord(char)}" for char in name),
    )
    clearance = await guard.clear(Part("user", owner_text(text)))
    meant = unescaped(clearance.texts[0])
    assert "[PERSON_1]" in clearance.texts[0]
    assert "Петров" not in (meant.text if meant else "")
    assert clearance.restore(clearance.texts[0]) == text


async def test_without_it_they_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    for module in (vault, patterns, secrets):
        monkeypatch.setattr(module, "unescaped", lambda text: None)
    guard = await guard_bench([(NAME, "PERSON")])
    for number, text in enumerate((NAME, ADDRESS, "my password is hunter2-blue")):
        escaped = ESCAPES["json, every character"](text)
        clearance = await guard.clear(Part("user", owner_text(escaped)), conversation=f"c{number}")
        assert clearance.texts == (escaped,)


@pytest.mark.parametrize("text", [
    "100% of it", "x=20", "a=C4", "AT&T; and R&D", "&nothing;", "C:\\users\\ana", "%C4%", "50%ff", "\\u12", "\\ud83d",
    "%C4%C4", "a = b", "",
])
def test_what_only_looks_like_an_escape_stays(text: str) -> None:
    meant = unescaped(text)
    assert meant is None or meant.text == text


@settings(deadline=None)
@given(st.text(alphabet="aé%C48D&#;x=\\u01 2amp", max_size=80))
def test_every_character_has_its_place(text: str) -> None:
    meant = unescaped(text)
    if meant is not None:
        assert len(meant.text) == len(meant.starts) == len(meant.ends)
        assert all(0 <= start < end <= len(text) for start, end in zip(meant.starts, meant.ends, strict=True))
        assert meant.starts == sorted(meant.starts)


@pytest.mark.parametrize("piece", ["%C4", "%41", "&#65;", "&a", "\\u0041", "=C4=8D", "%", "&#", "\\u00", "&amp;"])
def test_hostile_repetition_costs_linear_work(piece: str) -> None:
    with cpu_limit():
        unescaped(piece * (200_000 // len(piece)))
