"""Values as models write them: JSON, Python literals, and the usual slips in either, read without ever failing hard.

What is right is read as it stands; what was put right is named. A text that can't be understood without guessing at
its values gives None. Must not know tools, schemas or formats.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from offload.engine.deltas import Repair

__all__ = ["LooseCall", "LooseValue", "read_json", "read_python_calls", "sound"]

DEPTH_LIMIT = 32
_SPACE = " \t\r\n\f\v\u00a0"
_NAME = re.compile(r"[A-Za-z_][\w.\-]*", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300})(?:[eE][+-]?\d{1,4})?", re.ASCII)
_BARE = re.compile(r"[^\s,{}\[\]()\"'=:;][^,{}\[\]()\"'\n]*")
_WORDS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
          "null": None, "None": None, "none": None, "NULL": None}
_WORD = re.compile(r"(?:true|false|null|none)\b", re.IGNORECASE)
_PYTHON_WORDS = frozenset({"true", "True", "false", "False", "null", "None"})
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'", "\n": ""}
_HEX = {"x": 2, "u": 4, "U": 8}
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class LooseValue:
    """A value and what had to be put right to read it."""

    value: Any
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True)
class LooseCall:
    """A call in Python's notation."""

    name: str
    arguments: dict[str, Any]
    positional: tuple[Any, ...] = ()
    repairs: tuple[Repair, ...] = ()


def read_json(text: str) -> LooseValue | None:
    """The one value that the text is; slips of the kinds in Repair are mended. None when it can't be read."""
    try:
        return LooseValue(sound(json.loads(text, parse_constant=_refuse)))
    except (ValueError, RecursionError):
        pass
    reader = _Reader(text, python=False)
    try:
        value = sound(reader.value())
        reader.rest()
    except (ValueError, RecursionError):
        return None
    return LooseValue(value, tuple(reader.repairs))


def read_python_calls(text: str) -> tuple[LooseCall, ...] | None:
    """The calls in a text such as `[f(a=1), g()]`, `f(a=1)` or `print(f(a=1))`. None when it is anything else."""
    reader = _Reader(text, python=True)
    try:
        calls = reader.calls()
        return tuple(
            LooseCall(call.name, sound(call.arguments), tuple(sound(list(call.positional))), tuple(reader.repairs))
            for call in calls) or None
    except (ValueError, RecursionError):
        return None


def sound(value: Any, depth: int = 0) -> Any:
    """The value with half characters replaced. Raises ValueError when it is too deep or holds no finite number."""
    if depth > DEPTH_LIMIT:
        raise ValueError("too deep")
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not finite")
    if isinstance(value, Mapping):
        return {sound(key): sound(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [sound(item, depth + 1) for item in value]
    return value


def _refuse(_name: str) -> NoReturn:
    raise ValueError("no number of JSON")


@dataclass(slots=True)
class _Reader:
    """Recursive descent; ValueError means that it can't be read."""

    text: str
    python: bool
    at: int = 0
    repairs: dict[Repair, None] = field(default_factory=dict)

    def value(self, depth: int = 0) -> Any:
        if depth > DEPTH_LIMIT:
            raise ValueError("too deep")
        char = self._peek()
        if char in "\"'":
            return self._string()
        if char == "{":
            return self._object(depth)
        if char == "[" or (char == "(" and self.python):
            return self._list("]" if char == "[" else ")", depth)
        value = self._bare()
        if depth and not self._peek(end=True):
            raise ValueError("perhaps not all of it")
        return value

    def rest(self) -> None:
        """Nothing may follow but brackets too many."""
        while self._peek(end=True):
            if self.text[self.at] not in "}])":
                raise ValueError("more than one value")
            self.at += 1
            self._repair("closing")

    def calls(self) -> list[LooseCall]:
        listed = self._take("[")
        found: list[LooseCall] = []
        while self._peek(end=True):
            if self._take("]"):
                listed = False
                break
            if found and not (self._take(",") or self._take(";")) and listed:
                self._repair("comma")
            if self._peek(end=True) and self.text[self.at] != "]":
                found.append(self._call())
        if listed:
            self._repair("closing")
        self.rest()
        return found

    def _call(self) -> LooseCall:
        name = self._match(_NAME)
        if not self._take("("):
            raise ValueError("no call")
        if name == "print":
            inner = self._call()
            if not self._take(")"):
                self._repair("closing")
            return inner
        named: dict[str, Any] = {}
        positional: list[Any] = []
        while not self._closed(")"):
            if (named or positional) and not self._take(","):
                self._repair("comma")
            if self._closed(")", look=True):
                continue
            key = self._key()
            if key is None:
                if not (self._peek() in "\"'{[(+-." or self._peek().isdigit() or _WORD.match(self.text, self.at)):
                    raise ValueError("no value")
                positional.append(self.value(1))
            else:
                named[key] = self.value(1)
        return LooseCall(name, named, tuple(positional))

    def _key(self) -> str | None:
        """The name in front of `=`, or of `:` as a slip; None for an argument without one."""
        start = self.at
        self._peek()
        quoted = self.text[self.at] in "\"'"
        try:
            name = self._string() if quoted else self._match(_NAME)
        except ValueError:
            name = ""
        mark = self._peek(end=True)
        if name and mark in {"=", ":"}:
            self.at += 1
            if quoted or mark == ":":
                self._repair("shape")
            return name
        self.at = start
        return None

    def _object(self, depth: int) -> dict[str, Any]:
        self.at += 1
        found: dict[str, Any] = {}
        while not self._closed("}"):
            if found and not self._take(","):
                self._repair("comma")
            if self._closed("}", look=True):
                self._repair("comma")
                continue
            char = self._peek()
            if char in "\"'":
                key = self._string()
            else:
                key = self._match(_NAME)
                self._repair("quotes")
            if not self._take(":"):
                raise ValueError("no value")
            found[key] = self.value(depth + 1)
        return found

    def _list(self, closer: str, depth: int) -> list[Any]:
        self.at += 1
        found: list[Any] = []
        while not self._closed(closer):
            if found and not self._take(","):
                self._repair("comma")
            if self._closed(closer, look=True):
                if not self.python:
                    self._repair("comma")
                continue
            found.append(self.value(depth + 1))
        return found

    def _closed(self, closer: str, *, look: bool = False) -> bool:
        """Whether the bracket closes here; at the end of the text it does too, as a slip."""
        char = self._peek(end=True)
        if not char:
            if not look:
                self._repair("closing")
            return True
        if char == closer:
            self.at += 0 if look else 1
            return True
        if char in ")]}" and not look:          # another bracket closes in its place
            self._repair("closing")
            return True
        return False

    def _string(self) -> str:
        quote = self.text[self.at]
        if quote == "'" and not self.python:
            self._repair("quotes")
        if self.text.startswith(quote * 3, self.at):
            return self._long_string(quote * 3)
        self.at += 1
        found: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                found.append(self._escape())
                continue
            self.at += 1
            if char == quote and self._ends_string():
                return "".join(found).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            if char == quote or char < " ":
                self._repair("quotes")
            found.append(char)
        raise ValueError("a string without an end")

    def _long_string(self, quotes: str) -> str:
        end = self.text.find(quotes, self.at + 3)
        if end < 0:
            raise ValueError("a string without an end")
        start, self.at = self.at + 3, end + 3
        if not self.python:
            self._repair("quotes")
        return self.text[start:end]

    def _ends_string(self) -> bool:
        """A quote in mid-text that nobody escaped is followed by more text."""
        rest = self.at
        while rest < len(self.text) and self.text[rest] in _SPACE:
            rest += 1
        return rest == len(self.text) or self.text[rest] in ",:)]};="

    def _escape(self) -> str:
        code = self.text[self.at + 1:self.at + 2]
        digits = _HEX.get(code, 0)
        number = self.text[self.at + 2:self.at + 2 + digits]
        if digits and len(number) == digits and all(char in "0123456789abcdefABCDEF" for char in number):
            self.at += 2 + digits
            return chr(int(number, 16)) if int(number, 16) <= 0x10FFFF else "\ufffd"
        self.at += 2
        if code in _ESCAPES:
            return _ESCAPES[code]
        self._repair("quotes")
        return "\\" + code

    def _bare(self) -> Any:
        """A number, a word of JSON or Python, or a text without quotes."""
        number = _NUMBER.match(self.text, self.at)
        if number and self._ends_bare(number.end()):
            self.at = number.end()
            text = number.group()
            if text[0] in "+." or text.endswith("."):
                self._repair("shape")
            return int(text) if text.lstrip("+-").isdigit() else float(text)
        text = self._match(_BARE).rstrip(_SPACE)
        if text in _WORDS:
            if not (self.python and text in _PYTHON_WORDS):
                self._repair("shape")
            return _WORDS[text]
        self._repair("quotes")
        return text

    def _ends_bare(self, at: int) -> bool:
        return at == len(self.text) or self.text[at] in _SPACE or self.text[at] in ",)]};"

    def _match(self, pattern: re.Pattern[str]) -> str:
        self._peek()
        found = pattern.match(self.text, self.at)
        if found is None:
            raise ValueError("unreadable")
        self.at = found.end()
        return found.group()

    def _take(self, char: str) -> bool:
        if self._peek(end=True) != char:
            return False
        self.at += 1
        return True

    def _peek(self, *, end: bool = False) -> str:
        """The next character that is no space; empty at the end when that is allowed."""
        while self.at < len(self.text) and self.text[self.at] in _SPACE:
            self.at += 1
        if self.at < len(self.text):
            return self.text[self.at]
        if end:
            return ""
        raise ValueError("incomplete")

    def _repair(self, repair: Repair) -> None:
        self.repairs[repair] = None
