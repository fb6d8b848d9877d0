"""A name, an address or a password in the escapes of links, pages, JSON and mail is the same one.

The escaped forms are made by the standard library: urllib, html, json, quopri, email.
"""

import base64
import html
import json
import quopri
import re
import urllib.parse
from collections.abc import Callable
from email.charset import BASE64, QP, Charset
from email.header import Header

import pytest
from cpu_limit import cpu_limit
from guard_bench import guard_bench
from hypothesis import given, settings
from hypothesis import strategies as st

from node.privacy import escapes, patterns, secrets, vault
from node.privacy.egress import Part
from node.privacy.errors import HoldsSecret
from node.privacy.escapes import LAYERS, readings, unescaped
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
    "mail, spaces too": lambda text: quopri.encodestring(text.encode(), quotetabs=True).decode(),
    "mail, a line that goes on": lambda text: "=\n".join(_quoted(text)),
    "mail, lower case": lambda text: "".join(f"={byte:02x}" if byte > 127 else chr(byte) for byte in text.encode()),
    "url of an old script": lambda text: "".join(f"%u{ord(char):04X}" if ord(char) > 255 else char for char in text),
    "url of an old script, every character": lambda text: "".join(f"%u{ord(char):04x}" for char in text),
    "braces": lambda text: "".join(f"\\u{{{ord(char):x}}}" for char in text),
    "braces and x": lambda text: "".join(f"\\x{{{ord(char):x}}}" for char in text),
    "eight digits": lambda text: "".join(f"\\U{ord(char):08x}" for char in text),
    "bytes of Python": lambda text: repr(text.encode())[2:-1],
    "octal": lambda text: "".join(chr(byte) if byte < 128 else f"\\{byte:o}" for byte in text.encode()),
    "header, quoted": lambda text: _header(text, "utf-8", QP),
    "header, base64": lambda text: _header(text, "utf-8", BASE64),
    "header in words": lambda text: " ".join(_header(char, "utf-8", BASE64) for char in text),
    "header in words of lines": lambda text: "\r\n ".join(_header(char, "utf-8", QP) for char in text),
    "header, other charset": lambda text: _header(text, "windows-1250", QP),
    "header with a language": lambda text: _header(text, "iso-8859-2", BASE64).replace("?b?", "*cs?B?"),
}
NESTED: dict[str, Callable[[str], str]] = {
    "url twice": lambda text: urllib.parse.quote(urllib.parse.quote(text)),
    "url three times": lambda text: urllib.parse.quote(urllib.parse.quote(urllib.parse.quote(text))),
    "json in json": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "json in json in json": lambda text: json.dumps(json.dumps(json.dumps(text)[1:-1])[1:-1])[1:-1],
    "json whose slashes are bare": lambda text: json.dumps(text)[1:-1].replace("\\", "\\" * 3),
    "html in html": lambda text: html.escape(ESCAPES["html"](text)),
    "json in a url": lambda text: urllib.parse.quote(json.dumps(text)[1:-1]),
    "url in html in json": lambda text: json.dumps(
        urllib.parse.quote(text).replace("%", "&#37;").replace("&", "\u0026"))[1:-1].replace("\\\\", "\\"),
    "mail of a url": lambda text: quopri.encodestring(urllib.parse.quote(text).replace("%", "=25").encode()).decode()
    .replace("=3D", "="),
}
OLD = "René Müller-Iñarra"
LATIN: dict[str, Callable[[str], str]] = {
    "url": lambda text: urllib.parse.quote(text, encoding="latin-1"),
    "url of a form": lambda text: urllib.parse.quote_plus(text, encoding="latin-1"),
    "url, every byte": lambda text: "".join(f"%{byte:02X}" for byte in text.encode("latin-1")),
    "url twice": lambda text: urllib.parse.quote(urllib.parse.quote(text, encoding="latin-1")),
    "mail": lambda text: quopri.encodestring(text.encode("latin-1")).decode(),
    "bytes of Python": lambda text: repr(text.encode("latin-1"))[2:-1],
    "header": lambda text: _header(text, "iso-8859-1", QP),
}


def _quoted(text: str) -> list[str]:
    """Each octet of quoted-printable by itself."""
    return [f"={byte:02X}" for byte in text.encode()]


def _header(text: str, charset: str, how: int) -> str:
    coding = Charset(charset)
    coding.header_encoding = how
    return Header(text, coding, maxlinelen=998).encode()


@pytest.mark.parametrize("how", ESCAPES)
async def test_an_escaped_name_is_masked_whole_and_comes_back_as_it_was(how: str) -> None:
    guard = await guard_bench([(NAME, "PERSON")])
    asked = f"see https://x.example/?q={ESCAPES[how](NAME)} please"
    clearance = await guard.clear(Part("user", owner_text(asked)))
    assert clearance.texts == ("see https://x.example/?q=[PERSON_1] please",)
    assert clearance.restore(clearance.texts[0]) == asked


@pytest.mark.parametrize("how", NESTED)
async def test_so_is_one_in_escapes_of_escapes(how: str) -> None:
    guard = await guard_bench([(NAME, "PERSON")])
    asked = f"see https://x.example/?q={NESTED[how](NAME)} please"
    clearance = await guard.clear(Part("user", owner_text(asked)))
    assert clearance.texts == ("see https://x.example/?q=[PERSON_1] please",)
    assert clearance.restore(clearance.texts[0]) == asked


@pytest.mark.parametrize("how", LATIN)
async def test_so_is_one_in_the_bytes_of_before_unicode(how: str) -> None:
    guard = await guard_bench([(OLD, "PERSON")])
    asked = f"see https://x.example/?q={LATIN[how](OLD)} please"
    clearance = await guard.clear(Part("user", owner_text(asked)))
    assert clearance.texts == ("see https://x.example/?q=[PERSON_1] please",)
    assert clearance.restore(clearance.texts[0]) == asked


@pytest.mark.parametrize("before", range(60, 80))
async def test_a_line_of_mail_that_goes_on_hides_no_name_wherever_it_is_cut(before: int) -> None:
    """quopri cuts at 76 characters."""
    guard = await guard_bench([(NAME, "PERSON")])
    asked = quopri.encodestring(f"{'x' * before} {NAME} and more".encode()).decode()
    clearance = await guard.clear(Part("user", owner_text(asked)))
    assert clearance.texts[0].replace("=\n", "") == f"{'x' * before} [PERSON_1] and more"
    assert clearance.restore(clearance.texts[0]) == asked


@pytest.mark.parametrize("layers", [1, 2, 3])
async def test_the_line_break_before_a_name_in_json_hides_it_not(layers: int) -> None:
    guard = await guard_bench([(NAME, "PERSON"), ("Nadia Rossi", "PERSON")])
    asked = f"from:\nNadia Rossi\nto:\n{NAME}\n\tNadia"
    for _ in range(layers):
        asked = json.dumps(asked)[1:-1]
    clearance = await guard.clear(Part("user", owner_text(asked)))
    assert "[PERSON_1]" in clearance.texts[0] and "[PERSON_2]" in clearance.texts[0]
    assert not any(word in clearance.texts[0] for word in ("Nadia", "adia", "Rossi", "t\\u011b", "Kova"))
    assert clearance.restore(clearance.texts[0]) == asked


async def test_what_is_escaped_more_often_than_the_limit_leaves() -> None:
    """The stated bound; masking it takes no fourth look at every text."""
    text = NAME
    for _ in range(LAYERS + 1):
        text = urllib.parse.quote(text)
    assert len(readings(text)) == LAYERS
    guard = await guard_bench([(NAME, "PERSON")])
    assert (await guard.clear(Part("user", owner_text(text)))).texts == (text,)


@pytest.mark.parametrize("how", ["url, every byte", "html, hexadecimal", "json, every character", "braces",
                                 "header, base64", "bytes of Python"])
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
        monkeypatch.setattr(module, "readings", lambda text: [])
    guard = await guard_bench([(NAME, "PERSON")])
    for number, text in enumerate((NAME, ADDRESS, "my password is hunter2-blue")):
        escaped = ESCAPES["json, every character"](text)
        clearance = await guard.clear(Part("user", owner_text(escaped)), conversation=f"c{number}")
        assert clearance.texts == (escaped,)


@pytest.mark.parametrize("how", [*NESTED, "json", "html", "url", "braces", "octal", "header, base64",
                                 "mail, lower case", "url of an old script"])
async def test_without_it_a_name_leaves_in_each_way_of_writing_it(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control; a name that is nothing but escapes, since plain letters would be found by themselves."""
    for module in (vault, patterns, secrets):
        monkeypatch.setattr(module, "readings", lambda text: [])
    name = "Šťř Ěžčřš"
    escaped = {**ESCAPES, **NESTED}[how](name)
    guard = await guard_bench([(name, "PERSON")])
    assert (await guard.clear(Part("user", owner_text(escaped)))).texts == (escaped,)
    monkeypatch.undo()
    assert (await guard.clear(Part("user", owner_text(escaped)), conversation="other")).texts == ("[PERSON_1]",)


@pytest.mark.parametrize("how", ["url", "mail", "header"])
async def test_without_the_loose_reading_an_old_name_leaves(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control for one byte a letter."""
    monkeypatch.setattr(escapes, "_LOOSE", re.compile("(?!)"))
    name = "Éèêë Üöäß"
    escaped = LATIN[how](name).replace("iso-8859-1", "x-nothing")
    guard = await guard_bench([(name, "PERSON")])
    assert (await guard.clear(Part("user", owner_text(escaped)))).texts == (escaped,)


@pytest.mark.parametrize("text", [
    "100% of it", "x=20", "a=C4", "AT&T; and R&D", "&nothing;", "C:\\users\\ana", "%C4%", "50%ff", "\\u12", "\\ud83d",
    "%C4%C4", "a = b", "",
])
def test_what_only_looks_like_an_escape_stays(text: str) -> None:
    meant = unescaped(text)
    assert meant is None or meant.text == text


@pytest.mark.parametrize("text", [
    "\\u{110000}", "\\u{d800}", "\\U00110000", "\\u{}", "\\x{1234567}", "\\12", "\\x4", "=?utf-8?Q?",
    "=?utf-8?X?YQ==?=", "=?hex?B?YQ==?=", "=?utf-8?B?a?=", "=?iso-8859-12?Q?a?=", "=?punycode?Q?a-b?=",
    "=?utf-8?Q?a b?=",
])
def test_what_only_looks_like_one_of_the_rarer_ones_stays(text: str) -> None:
    assert readings(text) == []


@pytest.mark.parametrize("text", [
    "C:\\new\\tanja\\readme", "https://x.example/?id=45&tag=AB&x=DE", "x =\n  5", "100%25 of R&amp;D", "a %E9 b",
    "\\nabla \\rho", "a=ab=cd&x=de", "100%u of it",
])
async def test_escapes_beside_them_mask_nothing_of_a_plain_text(text: str) -> None:
    guard = await guard_bench([(NAME, "PERSON"), (OLD, "PERSON"), (ADDRESS, "EMAIL")])
    assert (await guard.clear(Part("user", owner_text(text)))).texts == (text,)


@pytest.mark.parametrize("text", ["C:\\nadia\\x", "?q=DAna%20Kolar", "=?utf-8?Q?x?= Dana", "%FF Dana"])
async def test_undoing_hides_nothing_that_stands_there(text: str) -> None:
    guard = await guard_bench([("Nadia Rossi", "PERSON"), ("Dana Kolar", "PERSON")])
    clearance = await guard.clear(Part("user", owner_text(text)))
    assert "[PERSON_1]" in clearance.texts[0]


def test_encoded_words_may_be_told_by_hand() -> None:
    """RFC 2047, section 8."""
    for text, meant in (
        ("=?ISO-8859-1?Q?a?= b", "a b"), ("=?ISO-8859-1?Q?a?= =?ISO-8859-1?Q?b?=", "ab"),
        ("=?ISO-8859-1?Q?a?=  \r\n    =?ISO-8859-1?Q?b?=", "ab"), ("=?ISO-8859-1?Q?a_b?=", "a b"),
        ("=?US-ASCII*EN?Q?Keith_Moore?= <m@x>", "Keith Moore <m@x>"),
        (f"=?utf-8?b?{base64.b64encode('é'.encode()).decode().rstrip('=')}?=", "é"),
    ):
        assert readings(text)[0].text == meant


@settings(deadline=None)
@given(st.text(alphabet="aé%C48D&#;x=\\u{}01 2ampn\n?Qq", max_size=80))
def test_each_reading_has_its_places_and_is_no_longer(text: str) -> None:
    found = readings(text)
    assert len(found) <= 2 * LAYERS
    for meant in found:
        assert len(meant.text) == len(meant.starts) == len(meant.ends) <= len(text)
        assert all(0 <= start < end <= len(text) for start, end in zip(meant.starts, meant.ends, strict=True))
        assert meant.starts == sorted(meant.starts) and meant.ends == sorted(meant.ends)


@settings(deadline=None)
@given(st.text(alphabet="aé%C48D&#;x=\\u01 2amp", max_size=80))
def test_every_character_has_its_place(text: str) -> None:
    meant = unescaped(text)
    if meant is not None:
        assert len(meant.text) == len(meant.starts) == len(meant.ends)
        assert all(0 <= start < end <= len(text) for start, end in zip(meant.starts, meant.ends, strict=True))
        assert meant.starts == sorted(meant.starts)


@pytest.mark.parametrize("piece", [
    "%C4", "%41", "&#65;", "&a", "\\u0041", "=C4=8D", "%", "&#", "\\u00", "&amp;", "\\", "\\n", "%2525", "\\\\u0041",
    "\\u{41}", "\\u{", "=\n", "=E9", "=?utf-8?Q?", "=?utf-8?Q?a?= ", "=?utf-8?B?YWFh?=", "= ", "=?", "\\xc4\\x8d",
    "\\304", "%u0041", "=c4", "%u",
])
def test_hostile_repetition_costs_linear_work(piece: str) -> None:
    with cpu_limit():
        readings(piece * (200_000 // len(piece)))
