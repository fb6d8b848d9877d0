"""Calls as JSON objects {"name": ..., "arguments": {...}}: where one ends in a stream, and what it says.

Used by the formats that put such objects between tags, in a fence or bare. Must not know which one.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from offload.engine.deltas import Repair
from offload.engine.formats.coercion import RawCall
from offload.engine.formats.loose_values import read_json
from offload.engine.formats.scanner import NOT_A_CALL
from offload.engine.formats.tools import Tool

__all__ = ["JsonBlock", "JsonExtent", "calls_from_json", "name_in_json"]

_NAME_KEYS = ("name", "function", "tool_name", "tool")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
_CALL_KEYS = frozenset({*_NAME_KEYS, *_ARGUMENT_KEYS, "type", "id"})
_NAME_SEARCH_CHARS = 200
_SPACE_LIMIT_CHARS = 256
"""More space than this between two objects ends a block."""
_NAMED = re.compile(r"""\s*\[?\s*\{\s*["']name["']\s*:\s*["']([^"'\\]{1,64})["']\s*[,}]""")


class JsonExtent:
    """Finds the end of one bracketed value. quotes: the characters that begin strings."""

    def __init__(self, quotes: str = '"') -> None:
        self._quotes = quotes
        self._depth = 0
        self._quote = ""
        self._escaped = False
        self._string: list[str] | None = []
        self.first_string: str | None = None
        """The first string in the value, once it is complete."""

    @property
    def in_string(self) -> bool:
        """Whether a string is open."""
        return bool(self._quote)

    @property
    def depth(self) -> int:
        """How many brackets are open."""
        return self._depth

    def step(self, char: str) -> bool:
        """Whether the value ends with this character."""
        if self._quote:
            self._in_string(char)
        elif char in self._quotes:
            self._quote = char
        elif char in "{[(":
            self._depth += 1
        elif char in "}])":
            self._depth -= 1
            return self._depth <= 0
        return False

    def _in_string(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif char == "\\":
            self._escaped = True
        elif char == self._quote:
            self._quote = ""
            if self._string is not None:
                self.first_string, self._string = "".join(self._string), None
            return
        if self._string is not None:
            self._string.append(char)


class JsonBlock:
    """A bare object, several of them apart by a comma, semicolon or space, or a list of them.

    Known names only: any other object is an answer in JSON, not a call.
    """

    def __init__(self, opening: str, tools: Sequence[Tool], *, any_name: bool = False) -> None:
        """opening: what stands before, perhaps the first bracket itself. any_name: a tag says that it is a call."""
        self._known = None if any_name else frozenset(tool.name for tool in tools)
        self._text: list[str] = []
        self._extent: JsonExtent | None = None
        self._spaces = 0                # behind the last complete value
        self._complete = 0              # how long the text was then
        self._name = ""
        self._tagged = any_name
        for char in opening if opening in {"{", "["} else "":
            self.step(char)

    def step(self, char: str) -> int | None:
        """See scanner.Block."""
        if self._extent is None:
            return self._between(char)
        if self._text == ["["] and not char.isspace() and char != "{" and not self._tagged:
            return NOT_A_CALL
        self._text.append(char)
        first_before = self._extent.first_string
        if self._extent.step(char):
            self._extent, self._spaces, self._complete = None, 0, len(self._text)
        elif self._extent.first_string is not first_before and not self._tagged and self._extent.depth == 1 \
                and self._text[0] == "{" and self._extent.first_string not in _CALL_KEYS:
            return NOT_A_CALL
        return None

    def _between(self, char: str) -> int | None:
        if char in "{[" and (char == "{" or not self._complete):
            self._text.append(char)
            self._extent = JsonExtent()
            self._extent.step(char)
            return None
        if not self._complete:
            return None if char.isspace() and self._tagged else NOT_A_CALL
        self._spaces += 1
        self._text.append(char)
        if self._spaces > _SPACE_LIMIT_CHARS:
            return self._spaces
        if char.isspace() or (char in ",;" and not "".join(self._text[self._complete:-1]).strip()):
            return None
        return self._spaces

    @property
    def name(self) -> str:
        """See scanner.Block."""
        if not self._name and 0 < len(self._text) < _NAME_SEARCH_CHARS and self._text[-1] in ",}":
            found = name_in_json("".join(self._text))
            self._name = found if self._known is None or found in self._known else ""
        return self._name

    def calls(self, *, cut: bool) -> tuple[RawCall, ...]:
        """See scanner.Block."""
        if self._extent is not None and (cut or self._extent.in_string):
            return ()
        text = "".join(self._text[:self._complete] if self._extent is None else self._text)
        return calls_from_json(text, self._known)


def name_in_json(text: str) -> str:
    """The tool's name in the beginning of a call, empty when it isn't there yet."""
    found = _NAMED.match(text)
    return found.group(1) if found else ""


def calls_from_json(text: str, known: frozenset[str] | None = None) -> tuple[RawCall, ...]:
    """The calls in one or more objects; none when one of them is no call, or none of the known tools."""
    calls: list[RawCall] = []
    pieces = _pieces(text)
    for piece in pieces:
        loose = read_json(piece)
        objects = loose.value if loose is not None and isinstance(loose.value, list) else [loose and loose.value]
        for one in objects:
            call = _call(one, loose.repairs if loose is not None else ())
            if call is None or (known is not None and call.name not in known):
                return ()
            calls.append(call)
    return tuple(calls)


def _pieces(text: str) -> list[str]:
    """Values that stand one after the other."""
    pieces: list[str] = []
    start = 0
    extent = JsonExtent()
    for at, char in enumerate(text):
        if extent.depth == 0 and not extent.in_string and (char.isspace() or char in ",;"):
            start = at + 1 if not text[start:at].strip(" \t\r\n,;") else start
            continue
        if extent.step(char):
            if extent.depth < 0:        # a bracket too many belongs to the value before
                extent = JsonExtent()
                if pieces:
                    pieces[-1] += char
                    start = at + 1
                continue
            pieces.append(text[start:at + 1])
            start, extent = at + 1, JsonExtent()
    rest = text[start:].strip(" \t\r\n,;")
    return [*pieces, rest] if rest else pieces


def _call(value: Any, repairs: tuple[Repair, ...]) -> RawCall | None:
    if not isinstance(value, Mapping):
        return None
    inner = value.get("function")
    if isinstance(inner, Mapping):
        return _call(inner, (*repairs, "shape"))
    name_key = next((key for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    if name_key is None or not value[name_key]:
        return None
    argument_key = next((key for key in _ARGUMENT_KEYS if key in value), None)
    arguments = value[argument_key] if argument_key else {
        key: item for key, item in value.items() if key not in {name_key, "type", "id"}}
    mended = list(repairs)
    if isinstance(arguments, str):
        loose = read_json(arguments) if arguments.strip() else None
        arguments = loose.value if loose is not None else {} if not arguments.strip() else arguments
        mended += [*(loose.repairs if loose is not None else ()), "shape"]
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping):
        return None
    if name_key != "name" or argument_key not in {"arguments", "parameters"}:
        mended.append("shape")
    return RawCall(str(value[name_key]), {str(key): item for key, item in arguments.items()},
        repairs=tuple(dict.fromkeys(mended)))
