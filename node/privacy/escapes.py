"""Texts with their escapes undone, with the way back to the original positions: "Kova%C4%8D", "Kova&#269;",
"Kova\\u010d", "Kova=C4=8D".

A link, a page or a JSON document spells one name in ways that a reader and a model understand. Must not know what is
searched for.
"""

import html
import html.entities
import re
from dataclasses import dataclass

__all__ = ["Unescaped", "unescaped"]

_ESCAPE = re.compile(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2}){1,64})"
    r"|(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,23});)"
    r"|(?P<backslash>(?:\\u[0-9A-Fa-f]{4}){1,64}|\\x[0-9A-Fa-f]{2})"
    r"|(?P<quoted>(?:=[89A-F][0-9A-F]){2,64})",      # RFC 2045, only letters that are not ASCII: "x=20" is no escape
)


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
        meant = _meant(match)
        if meant is None:
            continue
        plain = range(at, match.start())
        out += (text[at : match.start()], meant)
        starts += [*plain, *([match.start()] * len(meant))]
        ends += [*(place + 1 for place in plain), *([match.end()] * len(meant))]
        at = match.end()
    if not at:
        return None
    rest = range(at, len(text))
    return Unescaped("".join((*out, text[at:])), [*starts, *rest], [*ends, *(place + 1 for place in rest)])


def _meant(match: "re.Match[str]") -> str | None:
    escape = match[0]
    try:
        match match.lastgroup:
            case "entity" if escape[1] == "#":
                meant = html.unescape(escape)
            case "entity":
                meant = html.entities.html5.get(escape[1:], escape)
            case "backslash" if escape[1] == "x":
                meant = bytes.fromhex(escape[2:]).decode("latin-1")
            case "backslash":
                meant = bytes.fromhex(escape.replace("\\u", "")).decode("utf-16-be")
            case _:
                meant = bytes.fromhex(re.sub("[%=]", "", escape)).decode()
    except UnicodeDecodeError:
        return None
    return meant if meant != escape else None
