"""Characters that nobody sees split no name, address, number or secret: all of Default_Ignorable_Code_Point (Unicode
Character Database, DerivedCoreProperties.txt, 4,174 code points), and strokes and rings over letters."""

import pytest

from node.privacy import normalise
from node.privacy.known_secrets import KnownSecrets
from node.privacy.patterns import find_patterns
from node.privacy.secrets import find_secrets
from node.privacy.vault import Hit, Vault

IGNORABLE = [
    0x00AD, 0x034F, 0x061C, *range(0x115F, 0x1161), *range(0x17B4, 0x17B6), *range(0x180B, 0x1810),
    *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF,
    0xFFA0, *range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000),
]
DRAWN_OVER = [0x0334, 0x0335, 0x0336, 0x0338, 0x20DD, 0x20E0, 0x0489]
SAMPLE = [*IGNORABLE[::61], 0x115F, 0x1160, 0x3164, 0xFFA0, 0xE0020, 0xE0100, 0x17B4, *DRAWN_OVER]
VAULT = Vault([("Ana Kovač", "PERSON"), ("Zdravka", "PERSON"), ("+386 41 234 567", "PHONE"), ("नीति शर्मा", "PERSON")])


def whole(text: str, hits: list[Hit]) -> bool:
    """Whether one hit covers the text from its first to its last letter."""
    return any(hit.start == 0 and text[hit.end :].strip(text[1]) == "" for hit in hits)


def test_every_such_character_is_taken_for_none() -> None:
    assert len(IGNORABLE) == 4174
    assert all(normalise.is_unseen(chr(point)) for point in IGNORABLE)
    assert not any(normalise.is_unseen(char) for char in "aé ä\u0301\n-＠한ी")


@pytest.mark.parametrize("point", SAMPLE, ids=hex)
def test_they_hide_nothing(point: int) -> None:
    mark = chr(point)
    for name in ("Zdravka", "Ana"):
        text = mark.join(name)
        assert whole(text, VAULT.find(text)), name
    text = "\u200a" + mark.join("+386 41 234 567")
    assert VAULT.find(text)
    address = mark.join("dana@acme.example")
    assert whole(address, find_patterns(address))
    assert find_secrets(f"my pass{mark}word is hunter2-blue")
    assert find_secrets(f"sk-proj-{mark}abcdefgh1234567890ABCDEFG")
    assert KnownSecrets(["korenjak-7-vrata"]).holds(f"use korenjak{mark}-7-vrata now")


def test_without_it_they_hide_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    for module in ("normalise", "secrets", "known_secrets"):
        monkeypatch.setattr(f"node.privacy.{module}.is_unseen", lambda char: False)
    monkeypatch.setattr(normalise, "_TABLE", normalise._Table())
    mark = "\u3164"
    text = mark.join("Zdravka")
    assert not whole(text, Vault([("Zdravka", "PERSON")]).find(text))
    assert not find_patterns("\U000e0100".join("dana@acme.example"))
    assert not find_secrets(f"my pass{mark}word is hunter2-blue")
    assert not KnownSecrets(["korenjak-7-vrata"]).holds("use k" + mark + "orenjak-7-vrata now")


def test_vowel_signs_do_not_cut_a_name_in_two() -> None:
    assert [(hit.start, hit.end) for hit in VAULT.find("to नीति शर्मा now")] == [(3, 13)]


@pytest.mark.parametrize(("text", "found"), [
    ('"dana w"@acme.example', '"dana w"@acme.example'), ("o'brien@acme.example", "o'brien@acme.example"),
    ("'dana@acme.example'", "dana@acme.example"), ('say "hi" to dana@acme.example', "dana@acme.example"),
])
def test_a_quoted_address_and_one_with_an_apostrophe_are_whole(text: str, found: str) -> None:
    hits = find_patterns(text)
    assert found in [text[hit.start : hit.end] for hit in hits]
    assert all(text[hit.start : hit.end] in found for hit in hits)
