"""Texts with their escapes undone, with the way back to the original positions: "Kova%C4%8D", "Kova&#269;",
"Kova\\u010d", "Kova=C4=8D".

A link, a page or a JSON document spells one name in ways that a reader and a model understand. Must not know what is
searched for.
"""

import html
import html.entities
import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Unescaped", "unescaped"]

_ESCAPE = re.compile(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<entity>&(?:\#\d{1,7};?|\#[xX][0-9A-Fa-f]{1,6};?|[A-Za-z][A-Za-z0-9]{1,23};))"     # numbers end by themselves
    r"|(?P<units>(?:\\u[0-9A-Fa-f]{4})+)"
    r"|(?P<byte>\\x[0-9A-Fa-f]{2})"
    r"|(?P<quoted>(?:=[89A-F][0-9A-F]){2,})",      # RFC 2045, only letters that are not ASCII: "x=20" is no escape
)

_OCTET, _UNIT = len("%41"), len("\\u0041")
_LAST_OF_ONE_UNIT = 0xFFFF


@dataclass(frozen=True, slots=True)
class Unescaped:
    """The text that is meant; starts[i] and ends[i] are where its character i begins and ends in the original."""

    text: str
    starts: list[int]
    ends: list[int]


def unescaped(text: str) -> Unescaped | None:
    """The text with its escapes undone once; None when there are none. What decodes to nothing sensible stays."""
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for match in _ESCAPE.finditer(text):
        for meant, begin, end in _meant(match):
            plain = range(at, begin)
            out += (text[at:begin], meant)
            starts += [*plain, *([begin] * len(meant))]
            ends += [*(place + 1 for place in plain), *([end] * len(meant))]
            at = end
    if not at:
        return None
    rest = range(at, len(text))
    return Unescaped("".join((*out, text[at:])), [*starts, *rest], [*ends, *(place + 1 for place in rest)])


def _meant(match: "re.Match[str]") -> Iterator[tuple[str, int, int]]:
    """What is meant, each with its (start, end): a run in pieces, so that one bad byte in it hides none of the rest."""
    escape, start = match[0], match.start()
    match match.lastgroup:
        case "entity":
            meant = html.unescape(escape) if escape[1] == "#" else html.entities.html5.get(escape[1:], escape)
            if meant != escape:
                yield meant, start, match.end()
        case "byte":
            yield bytes.fromhex(escape[2:]).decode("latin-1"), start, match.end()
        case "units":
            for char in bytes.fromhex(escape.replace("\\u", "")).decode("utf-16-be", "surrogatepass"):
                end = start + (_UNIT if ord(char) <= _LAST_OF_ONE_UNIT else 2 * _UNIT)
                if not _is_surrogate(char):
                    yield char, start, end
                start = end
        case _:
            for char in bytes.fromhex(re.sub("[%=]", "", escape)).decode("utf-8", "surrogateescape"):
                end = start + _OCTET * len(char.encode("utf-8", "surrogateescape"))
                if not _is_surrogate(char):
                    yield char, start, end
                start = end


def _is_surrogate(char: str) -> bool:
    """Half a character, or how Python writes a byte that is part of none."""
    return "\ud800" <= char <= "\udfff"
