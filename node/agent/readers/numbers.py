"""Numbers as people write and say them: digits, and words up to some thousands.

Gives the regular expression other readers build on and the value of what it matched. Must not know what is counted.
"""

import re

__all__ = ["LARGE_NUMBER", "NUMBER", "ORDINAL", "fold", "large_number", "number", "ordinal"]

_UNITS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10,
    "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
    "eighteen": 18, "nineteen": 19,
}
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14, "fifteenth": 15, "sixteenth": 16,
    "seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20, "thirtieth": 30,
}
_DIGIT_WORDS = "|".join(list(_UNITS)[1:10])

_BELOW_HUNDRED = (
    r"(?:(?:" + "|".join(_TENS) + rf")(?:[ -](?:{_DIGIT_WORDS}))?|"
    + "|".join(sorted(_UNITS, key=len, reverse=True)) + r")"
)
NUMBER = rf"(?:\d+(?:[.,]\d+)?|{_BELOW_HUNDRED})"
"""Matches a whole number, a decimal, or number words up to ninety-nine. Give it word boundaries yourself."""

LARGE_NUMBER = (
    rf"(?:(?:{_BELOW_HUNDRED}|an?)\s+(?:hundred|thousand)(?:\s+(?:and\s+)?(?:{_BELOW_HUNDRED}\s+hundred|{_BELOW_HUNDRED}))?"
    rf"(?:\s+(?:and\s+)?{_BELOW_HUNDRED})?)"
)
"""Matches number words with a hundred or a thousand in them."""

ORDINAL = (
    r"(?:\d{1,2}(?:st|nd|rd|th)|(?:twenty|thirty)[ -](?:" + "|".join(list(_ORDINALS)[:9]) + r")|"
    + "|".join(sorted(_ORDINALS, key=len, reverse=True)) + r")"
)
"""Matches 1st, 22nd, first, twenty-first."""


def fold(text: str) -> str:
    """The text in lower case, with every character still at its place (no case change that alters the length)."""
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def number(text: str) -> float:
    """The value of what NUMBER matched."""
    text = text.strip()
    if text[0].isdigit():
        return float(text.replace(",", "."))
    parts = re.split(r"[ -]", text)
    return float(sum(_TENS.get(part, _UNITS.get(part, 0)) for part in parts))


def large_number(text: str) -> int:
    """The value of what LARGE_NUMBER matched."""
    total = current = 0
    for word in re.split(r"[\s-]+", text.strip()):
        if word == "hundred":
            current *= 100
        elif word == "thousand":
            total, current = total + current * 1000, 0
        elif word != "and":
            current += 1 if word in {"a", "an"} else _TENS.get(word, _UNITS.get(word, 0))
    return total + current


def ordinal(text: str) -> int:
    """The value of what ORDINAL matched."""
    text = text.strip()
    if text[0].isdigit():
        return int(re.sub(r"\D", "", text))
    parts = re.split(r"[ -]", text)
    return sum(_TENS.get(part, _ORDINALS.get(part, 0)) for part in parts)
