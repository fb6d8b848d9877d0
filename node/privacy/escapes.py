"""Texts with their escapes undone, with the way back to the original positions: "Kova%C4%8D", "Kova&#269;",
"Kova\\u010d", "Kova=C4=8D", "=?utf-8?Q?Kova=C4=8D?=".

A link, a page, a header or a JSON document spells one name in ways that a reader and a model understand. Must not know
what is searched for.
"""

import binascii
import html
import html.entities
import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["LAYERS", "Unescaped", "readings", "unescaped"]

LAYERS = 3
"""Escapes of escapes are undone so often; each layer costs one more look at the text, which only becomes shorter."""

_CHARSET = (
    r"(?:utf-?8|us-ascii|iso-8859-\d{1,2}|(?:windows-|cp)125\d|koi8-[ru]|gb2312|gbk|gb18030|big5|shift_jis|"
    r"iso-2022-jp|euc-jp|euc-kr)")
_ENCODED_WORD = rf"=\?(?i:{_CHARSET})(?:\*[\w-]{{1,16}})?\?[BbQq]\?[!->@-~]{{0,2000}}\?="      # RFC 2047, RFC 2231
_SLASHES = r"\\{1,4}"       # a string inside a string doubles them: three layers at once

_COMMON = (
    rf"(?P<words>{_ENCODED_WORD}(?:[ \t\r\n]{{1,8}}{_ENCODED_WORD})*)"
    r"|(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<entity>&(?:\#\d{1,7};?|\#[xX][0-9A-Fa-f]{1,6};?|[A-Za-z][A-Za-z0-9]{1,23};))"     # numbers end by themselves
    rf"|(?P<units>(?:(?:{_SLASHES}|%)u[0-9A-Fa-f]{{4}})+)"     # %u: of old scripts
    rf"|(?P<point>{_SLASHES}(?:[ux]\{{[0-9A-Fa-f]{{1,6}}\}}|U[0-9A-Fa-f]{{8}}))"
    rf"|(?P<bytes>(?:{_SLASHES}(?:x[0-9A-Fa-f]{{2}}|[23][0-7]{{2}}))+)"
)
# RFC 2045, only letters that are not ASCII: "x=20" is no escape
_FIRM = re.compile(rf"{_COMMON}|(?P<quoted>(?:=[89A-Fa-f][0-9A-Fa-f]){{2,}})")
# what has other meanings more often: any octet, a line that goes on, a line break inside a JSON string
_LOOSE = re.compile(
    rf"{_COMMON}|(?P<quoted>(?:=[0-9A-Fa-f]{{2}}|=[ \t]{{0,8}}\r?\n)+)|(?P<break>{_SLASHES}[nrt])")

_MARK = re.compile(r"[%&=\\]")
_WORD = re.compile(r"=\?(?P<charset>[\w-]+)[^?]*\?(?P<how>[BbQq])\?(?P<body>[^?]*)\?=")
_OCTET = re.compile(r"(?:[%=]|\\+x)(?P<hex>[0-9A-Fa-f]{2})|\\+(?P<octal>[0-7]{3})")
_UNIT = re.compile(r"(?:\\+|%)u(?P<hex>[0-9A-Fa-f]{4})")
_LAST_OF_ONE_UNIT, _LAST_CHARACTER, _FIRST_HIGH = 0xFFFF, 0x10FFFF, 0x80

_Meant = Iterator[tuple[str, int, int]]
_Pieces = list[tuple[bytes, int, int]]


@dataclass(frozen=True, slots=True)
class Unescaped:
    """The text that is meant; starts[i] and ends[i] are where its character i begins and ends in the original."""

    text: str
    starts: list[int]
    ends: list[int]


def readings(text: str) -> list[Unescaped]:
    """What the text may mean besides what stands there, at most 2 * LAYERS texts, none longer than it.

    One row undoes what is an escape for certain, the other also what may be one: a byte of no UTF-8 as Latin-1, each
    "=20", "\\n". Neither hides what the other finds.
    """
    found: list[Unescaped] = []
    if not _MARK.search(text):
        return found
    seen = {text}
    for shape in (_LOOSE, _FIRM):
        whole: Unescaped | None = None
        for _ in range(LAYERS):
            layer = _undone(whole.text if whole is not None else text, shape)
            if layer is None:
                break
            whole = layer if whole is None else _through(whole, layer)
            if whole.text not in seen:
                seen.add(whole.text)
                found.append(whole)
        if whole is None:
            break       # what is certain is a part of what may be
    return found


def unescaped(text: str) -> Unescaped | None:
    """The text with its certain escapes undone once; None when there are none. What decodes to nothing sensible
    stays."""
    return _undone(text, _FIRM)


def _undone(text: str, shape: "re.Pattern[str]") -> Unescaped | None:
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for match in shape.finditer(text):
        for meant, begin, end in _meant(match, loose=shape is _LOOSE):
            plain = range(at, begin)
            out += (text[at:begin], meant)
            starts += [*plain, *([begin] * len(meant))]
            ends += [*(place + 1 for place in plain), *([end] * len(meant))]
            at = end
    if not at:
        return None
    rest = range(at, len(text))
    return Unescaped("".join((*out, text[at:])), [*starts, *rest], [*ends, *(place + 1 for place in rest)])


def _through(outer: Unescaped, inner: Unescaped) -> Unescaped:
    """The inner text, with its places in the outer one's original."""
    return Unescaped(
        inner.text, [outer.starts[start] for start in inner.starts], [outer.ends[end - 1] for end in inner.ends])


def _meant(match: "re.Match[str]", *, loose: bool) -> _Meant:
    """What is meant, each with its (start, end): a run in pieces, so that one bad byte in it hides none of the rest."""
    escape, start = match[0], match.start()
    match match.lastgroup:
        case "entity":
            meant = html.unescape(escape) if escape[1] == "#" else html.entities.html5.get(escape[1:], escape)
            if meant != escape:
                yield meant, start, match.end()
        case "point":
            number = int(escape.lstrip("\\")[1:].strip("{}"), 16)
            if number <= _LAST_CHARACTER and not _is_surrogate(chr(number)):
                yield chr(number), start, match.end()
        case "break":
            yield "\n", start, match.end()
        case "words":
            yield from _words(escape, start)
        case "units":
            units = [(bytes.fromhex(unit["hex"]), *_span(unit, start)) for unit in _UNIT.finditer(escape)]
            text = b"".join(unit for unit, _, _ in units).decode("utf-16-be", "surrogatepass")
            yield from _letters(text, [1 if ord(char) <= _LAST_OF_ONE_UNIT else 2 for char in text], units, match)
        case kind:
            octets = [
                (bytes([int(octet["hex"], 16) if octet["hex"] else int(octet["octal"], 8) & 0xFF]),
                 *_span(octet, start))
                for octet in _OCTET.finditer(escape)]
            text = b"".join(octet for octet, _, _ in octets).decode("utf-8", "surrogateescape")
            sizes = [len(char.encode("utf-8", "surrogateescape")) for char in text]
            yield from _letters(text, sizes, octets, match, latin=loose or kind == "bytes")


def _letters(
    text: str, sizes: list[int], pieces: _Pieces, match: "re.Match[str]", *, latin: bool = False,
) -> _Meant:
    """Each character with the places of the pieces that it is made of, and nothing for what stands between two.

    latin: an octet that belongs to no character is a letter of its own, as before UTF-8.
    """
    at, last = 0, match.start()
    for char, size in zip(text, sizes, strict=True):
        octet, begin, _ = pieces[at]
        end = pieces[at + size - 1][2]
        if begin > last:
            yield "", last, begin
        if not _is_surrogate(char):
            yield char, begin, end
        elif latin and len(octet) == 1:
            yield octet.decode("cp1252", "replace"), begin, end
        at, last = at + size, end
    if last < match.end():
        yield "", last, match.end()


def _words(run: str, start: int) -> _Meant:
    """Encoded words of a header, each as a whole; the space between two of them means nothing (RFC 2047, 6.2)."""
    last = 0
    for word in _WORD.finditer(run):
        body = word["body"].encode()
        try:
            octets = binascii.a2b_qp(body, header=True) if word["how"] in "Qq" else binascii.a2b_base64(body + b"==")
            meant = octets.decode(word["charset"], "replace")
        except (binascii.Error, LookupError):
            continue        # no such thing: it stays as it stands
        if 0 < last < word.start():
            yield "", start + last, start + word.start()
        yield meant, start + word.start(), start + word.end()
        last = word.end()


def _span(match: "re.Match[str]", start: int) -> tuple[int, int]:
    return start + match.start(), start + match.end()


def _is_surrogate(char: str) -> bool:
    """Half a character, or how Python writes a byte that is part of none."""
    return "\ud800" <= char <= "\udfff"
