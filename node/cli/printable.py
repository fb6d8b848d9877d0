"""Text as a terminal may show it: nothing in it can move the cursor, hide, reorder or forge what stands around it.

Applied wherever a command prints, because names, notes, messages and answers come from others. Must not print.
"""

import re

__all__ = ["cell", "json_safe", "printable", "quoted"]

# C0 but \t and \n, DEL and C1 (ECMA-48); marks, embeddings and isolates that turn the direction of text (Unicode
# annex 9); characters without width; line separators; tags; halves of surrogate pairs, which no encoder takes.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
    "\U000e0000-\U000e007f\ud800-\udfff"
)
_IN_TEXT = re.compile(f"[{_UNSAFE}]")
_IN_CELL = re.compile(f"[\t\n{_UNSAFE}]")
_NAMES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def printable(text: str) -> str:
    """text with every unsafe character as a visible escape such as \\x1b or \\u202e. Line ends and tabs stay."""
    return _IN_TEXT.sub(_escape, text)


def cell(text: str) -> str:
    """text for a place of one line: as printable(), with line ends and tabs visible too."""
    return _IN_CELL.sub(_escape, text)


def quoted(text: str) -> list[str]:
    """The lines of a foreign text, each behind a bar, so that none can pass for a line of the command's own."""
    return [f"  | {line}" for line in printable(text).removesuffix("\n").split("\n")]


def json_safe(document: str) -> str:
    """A JSON document in which the unsafe characters stand as JSON escapes: the same value, harmless to show."""
    return _IN_TEXT.sub(_json_escape, document)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character in _NAMES:
        return _NAMES[character]
    point = ord(character)
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _json_escape(found: re.Match[str]) -> str:
    point = ord(found[0])
    if point < 0x10000:
        return f"\\u{point:04x}"
    point -= 0x10000
    return f"\\u{0xD800 + (point >> 10):04x}\\u{0xDC00 + (point & 0x3FF):04x}"
