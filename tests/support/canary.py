"""Looks for planted values in bytes, however they are written: the judge of every "nothing personal leaves" test.

Plant values that occur nowhere else and whose name parts have at least five letters. `scan` takes the chunks of one tap
(writes of one stream) or the content of files. What it can find is the table ENCODINGS; `self_test` shows that it does.
Independent of the guard's own code on purpose: a fault there must not blind the judge.
"""

import base64
import binascii
import codecs
import html
import json
import quopri
import re
import unicodedata
import urllib.parse
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ahocorasick
import msgspec

__all__ = ["ENCODINGS", "Canary", "CanaryFind", "self_test"]

_SHORTEST = 5           # bytes of a pattern; shorter ones turn up by chance
_DEPTH = 3              # decodings inside decodings
_INFLATED_LIMIT = 8 << 20
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{12,}={0,2}")
_HEX = re.compile(rb"[0-9a-fA-F]{12,}")
_PRINTABLE = re.compile(rb"[\t\r\n\x20-\x7e]{8,}")
_BASE32 = re.compile(rb"[A-Z2-7]{16,}={0,6}")
_ESCAPED = re.compile(rb"%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|&[#\w]{2,8};|=[0-9A-F]{2}")
_ZLIB_START = re.compile(rb"\x78[\x01\x5e\x9c\xda]|\x1f\x8b\x08")


def _encode(codec: str) -> Callable[[str], bytes]:
    return lambda value: value.encode(codec)


def _form(form: Any) -> Callable[[str], bytes]:
    return lambda value: unicodedata.normalize(form, value).encode()


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def _gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


ENCODINGS: Mapping[str, Callable[[str], bytes]] = {
    "raw": _encode("utf-8"),
    "lower": lambda value: value.lower().encode(),
    "upper": lambda value: value.upper().encode(),
    "reversed": lambda value: value[::-1].encode(),
    "nfd": _form("NFD"),
    "nfkc": _form("NFKC"),
    "without accents": lambda value: _bare(value).encode(),
    "without separators": lambda value: re.sub(r"[\W_]", "", value).encode(),
    "underscores": lambda value: value.replace(" ", "_").encode(),
    "zero-width joined": lambda value: "\u200b".join(value).encode(),
    "full width": lambda value: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in value).encode(),
    "first part only": lambda value: max(re.findall(r"\w+", value), key=len).encode(),
    "utf-16-le": _encode("utf-16-le"),
    "utf-16-be": _encode("utf-16-be"),
    "utf-32-le": _encode("utf-32-le"),
    "json": lambda value: json.dumps(value).encode(),
    "html": lambda value: html.escape(value).encode("ascii", "xmlcharrefreplace"),
    "url": lambda value: urllib.parse.quote(value).encode(),
    "url plus": lambda value: urllib.parse.quote_plus(value).encode(),
    "url, every byte": lambda value: "".join(f"%{byte:02X}" for byte in value.encode()).encode(),
    "quoted-printable": lambda value: quopri.encodestring(value.encode()),
    "hex": lambda value: value.encode().hex().encode(),
    "HEX": lambda value: value.encode().hex().upper().encode(),
    "base32": lambda value: base64.b32encode(value.encode()),
    "base85": lambda value: base64.b85encode(value.encode()),
    "ascii85": lambda value: base64.a85encode(value.encode()),
    "rot13": lambda value: codecs.encode(value, "rot13").encode(),
    "base64": lambda value: base64.b64encode(value.encode()),
    "base64, shifted by 1": lambda value: base64.b64encode(b"\0" + value.encode()),
    "base64, shifted by 2": lambda value: base64.b64encode(b"\0\0" + value.encode()),
    "base64url": lambda value: base64.urlsafe_b64encode(b"~~~" + value.encode()),
    "base64 of base64": lambda value: base64.b64encode(base64.b64encode(value.encode())),
    "base64 of upper case": lambda value: base64.b64encode(value.upper().encode()),
    "base64 of nfd": lambda value: base64.b64encode(unicodedata.normalize("NFD", value).encode()),
    "hex of lower case": lambda value: value.lower().encode().hex().encode(),
    "zlib": lambda value: zlib.compress(value.encode()),
    "zlib inside other bytes": lambda value: b"\x92\xc4\x20" + zlib.compress(value.encode()) + b"\x01",
    "gzip": lambda value: _gzip(value.encode()),
    "raw deflate": lambda value: _raw_deflate(value.encode()),
    "base64 of zlib": lambda value: base64.b64encode(zlib.compress(value.encode())),
    "msgpack string": lambda value: msgspec.msgpack.encode({"text": value}),
    "split over msgpack strings": lambda value: msgspec.msgpack.encode([value[:4], 7, value[4:]]),
    "json inside msgpack": lambda value: msgspec.msgpack.encode([1, json.dumps({"q": value})]),
}
"""Name -> how a value is written. Each has to be found in a self test."""


@dataclass(frozen=True, slots=True)
class CanaryFind:
    """A planted value that was found: which, how it was written, in which view of which chunk, and where."""

    value: str
    pattern: str
    view: str
    chunk: int
    offset: int


class Canary:
    """A scanner for a fixed set of planted values."""

    def __init__(self, values: Iterable[str], *, name_parts: bool = True) -> None:
        """name_parts: also look for each word of at least five letters by itself."""
        self._automaton = ahocorasick.Automaton()
        self.pattern_count = 0
        self._words = ahocorasick.Automaton()
        for value in values:
            for pattern, data in _patterns(value, name_parts=name_parts):
                key = data.decode("latin-1")
                if len(data) >= _SHORTEST and key not in self._automaton:
                    self._automaton.add_word(key, (value, pattern, len(data)))
                    self.pattern_count += 1
            for pattern, word in _folded_patterns(value, name_parts=name_parts):
                if len(word) >= _SHORTEST and word not in self._words:
                    self._words.add_word(word, (value, pattern, len(word)))
        self._automaton.make_automaton()
        self._words.make_automaton()

    def scan(self, chunks: Sequence[bytes]) -> list[CanaryFind]:
        """Every find in every chunk by itself and in all of them joined."""
        found: dict[tuple[str, str, int], CanaryFind] = {}
        for number, chunk in enumerate(chunks):
            for find in self._scan_one(chunk, number, "", _DEPTH):
                found.setdefault((find.value, find.pattern, number), find)
        if len(chunks) > 1:
            for find in self._scan_one(b"".join(chunks), -1, "joined", _DEPTH):
                found.setdefault((find.value, find.pattern, -1), find)
        return list(found.values())

    def scan_files(self, paths: Iterable[Path]) -> list[CanaryFind]:
        """The same for files, read raw; chunk is the file's number."""
        return self.scan([path.read_bytes() for path in paths])

    def values_in(self, chunks: Sequence[bytes]) -> set[str]:
        """Only which planted values were found."""
        return {find.value for find in self.scan(chunks)}

    def _scan_one(self, data: bytes, chunk: int, view: str, depth: int) -> Iterator[CanaryFind]:
        for end, (value, pattern, length) in self._automaton.iter(data.decode("latin-1")):
            yield CanaryFind(value, pattern, view or "bytes", chunk, end - length + 1)
        for name, text in _text_views(data):
            folded = _fold(text)
            for end, (value, pattern, length) in self._words.iter(folded):
                yield CanaryFind(value, pattern, f"{view} {name}".strip(), chunk, end - length + 1)
        if depth:
            for name, inner in _inner_views(data):
                if inner != data:
                    yield from self._scan_one(inner, chunk, f"{view} {name}".strip(), depth - 1)


def self_test(value: str, *, around: tuple[bytes, bytes] = (b"\x93\xa3abc", b"\xc0 tail")) -> list[str]:
    """The names of the encodings of this value that a scanner for it finds between other bytes."""
    canary = Canary([value])
    found = []
    for name, encode in ENCODINGS.items():
        if name == "first part only" and not _parts(value):
            continue
        body = encode(value)
        # compressed bodies have no mark of their own unless they start a chunk
        data = body if name == "raw deflate" else around[0] + body + around[1]
        if name.startswith(("msgpack", "split", "json inside")):
            data = body
        if canary.scan([data]):
            found.append(name)
    return found


def _patterns(value: str, *, name_parts: bool) -> Iterator[tuple[str, bytes]]:
    """Byte patterns of the forms that cannot be undone before looking."""
    texts = {"raw": value, "lower": value.lower(), "upper": value.upper(), "nfd": unicodedata.normalize("NFD", value),
             "bare": _bare(value)}
    if name_parts:
        texts.update({f"part {part}": part for part in _parts(value)})
    for name, text in texts.items():
        data = text.encode()
        yield name, data
        yield f"{name}, reversed", text[::-1].encode()
        yield f"{name}, rot13", codecs.encode(text, "rot13").encode()
        for codec in ("utf-16-le", "utf-16-be", "utf-32-le"):
            yield f"{name}, {codec}", text.encode(codec)
        yield f"{name}, base85", base64.b85encode(data)
        yield f"{name}, ascii85", base64.a85encode(data)
        yield f"{name}, base32", base64.b32encode(data).rstrip(b"=")[: len(data) * 8 // 5]
        for shift in range(3):      # base64 at each alignment, without the characters that depend on neighbours
            coded = base64.b64encode(b"\0" * shift + data)
            start = -(-shift * 8 // 6)
            end = len(coded) - (4 if (shift + len(data)) % 3 else 0)
            yield f"{name}, base64+{shift}", coded[start:end]
            yield f"{name}, base64url+{shift}", coded[start:end].replace(b"+", b"-").replace(b"/", b"_")


def _folded_patterns(value: str, *, name_parts: bool) -> Iterator[tuple[str, str]]:
    yield "folded", _fold(value)
    if name_parts:
        for part in _parts(value):
            yield f"part {part}", _fold(part)


def _parts(value: str) -> list[str]:
    return [part for part in re.findall(r"[^\W\d_]+", value) if len(part) >= _SHORTEST]


def _bare(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


class _Folds(dict[str, str]):
    def __missing__(self, char: str) -> str:
        folded = self[char] = "".join(c for c in _bare(char).casefold() if c.isalnum())
        return folded


_FOLDS = _Folds()


def _fold(text: str) -> str:
    """Letters and digits only, without case and accents."""
    return "".join([_FOLDS[char] for char in text])


def _text_views(data: bytes) -> Iterator[tuple[str, str]]:
    """The bytes as text, and the strings of a msgpack value joined."""
    yield "text", data.decode("utf-8", "ignore")
    strings = _msgpack_strings(data)
    if strings:
        yield "msgpack strings", "".join(strings)


def _msgpack_strings(data: bytes) -> list[str]:
    """Strings of the msgpack values in data, with or without a 4-byte length in front of each."""
    for skip in (0, 4):
        try:
            waiting = [msgspec.msgpack.decode(data[skip:])]
        except (msgspec.DecodeError, ValueError, RecursionError):
            continue
        strings = []
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                strings.append(item)
            elif isinstance(item, list):
                waiting += reversed(item)
            elif isinstance(item, dict):
                waiting += [part for pair in reversed(item.items()) for part in reversed(pair)]
        return strings
    return []


def _inner_views(data: bytes) -> Iterator[tuple[str, bytes]]:
    """What is written inside: decoded base64, hex, base32 runs, undone escapes, inflated streams."""
    for match in _BASE64.finditer(data):
        run = match[0].rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
        for shift in range(4):      # a run may begin in the middle of other characters
            piece = run[shift:]
            piece = piece[: len(piece) // 4 * 4] if len(piece) % 4 == 1 else piece
            try:
                yield "base64", base64.b64decode(piece + b"=" * (-len(piece) % 4))
            except binascii.Error:
                continue
    for match in _HEX.finditer(data):
        for shift in range(2):
            run = match[0].decode()[shift:]
            yield "hex", bytes.fromhex(run[: len(run) // 2 * 2])
    for match in _BASE32.finditer(data):
        run = match[0].rstrip(b"=")
        try:
            yield "base32", base64.b32decode(run + b"=" * (-len(run) % 8))
        except binascii.Error:
            continue
    for match in _PRINTABLE.finditer(data):
        if _ESCAPED.search(match[0]):
            text = match[0].decode()
            yield "url", urllib.parse.unquote_to_bytes(text.replace("+", " "))
            yield "html", html.unescape(text).encode("utf-8", "replace")
            yield "quoted-printable", quopri.decodestring(match[0])
            yield "json", _unescape(text).encode("utf-8", "replace")
    yield from _inflated(data)


def _unescape(text: str) -> str:
    text = re.sub(r"\\u([0-9A-Fa-f]{4})", lambda match: chr(int(match[1], 16)), text)
    return re.sub(r"\\x([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)


def _inflated(data: bytes) -> Iterator[tuple[str, bytes]]:
    places = [match.start() for match in _ZLIB_START.finditer(data)][:1000]
    for place, bits in [*((place, 47) for place in places), (0, -15), (4, -15)]:
        try:
            inflated = zlib.decompressobj(bits).decompress(memoryview(data)[place:], _INFLATED_LIMIT)
        except zlib.error:
            continue
        if len(inflated) >= _SHORTEST:
            yield "inflated", inflated
