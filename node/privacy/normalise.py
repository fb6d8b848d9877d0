"""Texts folded to one spelling, with the way back to the original positions.

Two people can write one name in many ways: accents, case, full width, zero-width characters, look-alike letters of
another alphabet, underscores, line breaks. The vault compares folded texts only. Must not know what is searched for.
"""

import unicodedata
from dataclasses import dataclass

__all__ = ["Folded", "fold", "fold_word", "is_unseen", "squeeze", "squeeze_word", "visible"]

# Dropped entirely: what is drawn as nothing (Default_Ignorable_Code_Point of the Unicode Character Database: zero-width
# characters, direction marks, variation selectors, tags, Hangul fillers) and annotation marks.
_INVISIBLE = frozenset([
    0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0,
    *range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070),
    *range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFFC), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B),
    *range(0xE0000, 0xE1000),
])
_OVERLAY = 1    # combining class of strokes through a letter

# Letters (already casefolded) that look like a Latin one, or that NFKD does not take apart. Folding is applied to both
# sides, so a fold that is linguistically wrong costs at most a rare false hit, never a miss.
_LOOKALIKE = str.maketrans({
    "а": "a", "в": "b", "е": "e", "к": "k", "м": "m", "н": "h", "о": "o", "р": "p", "с": "c", "т": "t", "у": "y",
    "х": "x", "і": "i", "ј": "j", "ѕ": "s", "һ": "h", "ԁ": "d", "ԛ": "q", "ԝ": "w", "ӏ": "l", "ё": "e", "ӕ": "ae",
    "α": "a", "β": "b", "ε": "e", "ζ": "z", "η": "h", "ι": "i", "κ": "k", "μ": "m", "ν": "v", "ο": "o", "ρ": "p",
    "τ": "t", "υ": "y", "χ": "x", "ı": "i", "ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "æ": "ae",
    "œ": "oe", "ɑ": "a", "ɡ": "g", "ʏ": "y", "þ": "th", "ŋ": "n", "ʼ": "'", "ǃ": "!",
})


def is_unseen(char: str) -> bool:
    """Whether a reader takes no notice of it: nothing is drawn, or only a stroke or a ring over the letter before."""
    if ord(char) in _INVISIBLE or unicodedata.category(char) in ("Cf", "Me"):
        return True
    return unicodedata.combining(char) == _OVERLAY


def _fold_char(char: str) -> str:
    """What one character becomes: letters and digits, or one space, or nothing."""
    if is_unseen(char):
        return ""
    out = []
    for piece in unicodedata.normalize("NFKD", char).casefold():
        if unicodedata.category(piece) == "Mn":
            continue
        for letter in piece.translate(_LOOKALIKE):
            if letter.isdecimal():
                out.append(str(unicodedata.decimal(letter)))
            elif letter.isalnum() or unicodedata.category(letter) == "Mc":    # a vowel sign is part of its word
                out.append(letter)
            else:
                out.append(" ")
    return "".join(out)


class _Table(dict[str, str]):
    """Folds of characters seen so far; bounded by the number of code points."""

    def __missing__(self, char: str) -> str:
        folded = _fold_char(char)
        self[char] = folded
        return folded


_TABLE = _Table()


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text; origin[i] is the position in the original of folded character i."""

    text: str
    origin: list[int]


def fold(text: str) -> Folded:
    """Letters and digits folded, everything else one single space between words, none at the start."""
    out: list[str] = []
    origin: list[int] = []
    table = _TABLE
    spaced = True
    for position, char in enumerate(text):
        folded = table[char]
        if folded == " ":
            if not spaced:
                out.append(" ")
                origin.append(position)
                spaced = True
        elif len(folded) == 1:
            out.append(folded)
            origin.append(position)
            spaced = False
        else:
            for letter in folded:
                if letter != " " or not spaced:
                    out.append(letter)
                    origin.append(position)
                    spaced = letter == " "
    return Folded("".join(out), origin)


def visible(text: str) -> Folded:
    """The text as it is read: without invisible characters, full-width and other compatibility forms as plain ones
    (NFKC). Case, signs and accents stay."""
    if text.isascii():
        return Folded(text, list(range(len(text))))
    out: list[str] = []
    origin: list[int] = []
    for position, char in enumerate(text):
        plain = char if char.isascii() else "" if is_unseen(char) else unicodedata.normalize("NFKC", char)
        out.append(plain)
        origin += [position] * len(plain)
    return Folded("".join(out), origin)


def squeeze(folded: Folded) -> Folded:
    """The same without any space: "J o h n" and "SI56 1920" in one piece."""
    out: list[str] = []
    origin: list[int] = []
    for letter, position in zip(folded.text, folded.origin, strict=True):
        if letter != " ":
            out.append(letter)
            origin.append(position)
    return Folded("".join(out), origin)


def fold_word(text: str) -> str:
    """The folded text alone, trimmed."""
    return fold(text).text.strip()


def squeeze_word(text: str) -> str:
    """The folded text alone, without spaces."""
    return fold(text).text.replace(" ", "")
