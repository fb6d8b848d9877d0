"""A llama.cpp grammar read as a language for the automaton, where it is regular and plain enough.

Only for grammars that llama.cpp itself has parsed: what is not understood here is not an error, it just keeps the
slower way. Pure: must not know tokens, models or requests.
"""

import re
from dataclasses import dataclass, field

from offload.language import Chars, Choice, Node, Row, Text, Times, Unicode
from offload.schema import BeyondAutomaton

__all__ = ["language_of_grammar"]

_NAME = re.compile(r"[A-Za-z0-9-]+")
_DEFINITION = re.compile(r"[A-Za-z0-9-]+[ \t]*::=")
_COUNTS = re.compile(r"\{\s*(\d+)\s*(,?)\s*(\d*)\s*\}")
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]"}
_CODES = {"x": 2, "u": 4, "U": 8}
_POSTFIX: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_ASCII = 128
_MOST_REPEATS = 100_000


def language_of_grammar(grammar: str) -> Node:
    """The language of the rule `root`. Raises BeyondAutomaton: recursive, or with a part that is not known here."""
    reader = _Reader(grammar)
    reader.read_rules()
    return reader.resolve("root")


@dataclass
class _Reference:
    name: str


@dataclass
class _Group:
    """Alternatives of rows, with names in them still open."""

    rows: list[list["_Item"]] = field(default_factory=lambda: [[]])


@dataclass
class _Repeated:
    item: "_Item"
    least: int
    most: int | None


_Item = _Reference | _Group | _Repeated | Text | Chars | Unicode


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._rules: dict[str, _Group] = {}
        self._nodes: dict[str, Node | None] = {}      # None while it is being worked out
        self._empty: dict[int, bool] = {}             # by id, of the nodes kept below
        self._kept: list[Node] = []

    # -- reading

    def read_rules(self) -> None:
        """All rules."""
        self._skip(lines=True)
        while self._at < len(self._text):
            if not _DEFINITION.match(self._text, self._at):
                raise BeyondAutomaton("a rule that is not understood")
            name = self._match(_NAME)
            self._skip(lines=False)
            self._at += len("::=")
            self._skip(lines=True)
            if name in self._rules:
                raise BeyondAutomaton("a rule that is defined twice")
            self._rules[name] = self._group(nested=False)
            self._skip(lines=True)

    def _group(self, *, nested: bool) -> _Group:
        group = _Group()
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "|":
                self._at += 1
                self._skip(lines=True)
                group.rows.append([])
                continue
            if char in "\r\n" and not nested:
                break
            if char == ")" and nested:
                break
            group.rows[-1].append(self._postfixed(self._item(), nested=nested))
        return group

    def _item(self) -> _Item:
        char = self._text[self._at]
        if char == '"':
            self._at += 1
            text = ""
            while self._peek() != '"':
                text += self._char()
            self._at += 1
            return Text(text)
        if char == "[":
            return self._class()
        if char == ".":
            self._at += 1
            return Unicode("")
        if char == "(":
            self._at += 1
            self._skip(lines=True)
            group = self._group(nested=True)
            if self._peek() != ")":
                raise BeyondAutomaton("a bracket that is not understood")
            self._at += 1
            return group
        return _Reference(self._match(_NAME))

    def _class(self) -> Chars | Unicode:
        self._at += 1
        negated = self._peek() == "^"
        self._at += negated
        found: set[str] = set()
        while self._peek() != "]":
            first = last = self._char()
            if self._peek() == "-" and self._text[self._at + 1:self._at + 2] != "]":
                self._at += 1
                last = self._char()
            if ord(last) >= _ASCII or ord(first) > ord(last):
                raise BeyondAutomaton("a class of other characters")
            found.update(map(chr, range(ord(first), ord(last) + 1)))
        self._at += 1
        chars = "".join(sorted(found))
        if not negated and not chars:
            raise BeyondAutomaton("an empty class")
        return Unicode(chars) if negated else Chars(chars)

    def _postfixed(self, item: _Item, *, nested: bool) -> _Item:
        self._skip(lines=nested)
        while self._at < len(self._text) and self._text[self._at] in "*+?{":
            if self._text[self._at] == "{":
                counts = _COUNTS.match(self._text, self._at)
                if counts is None:
                    raise BeyondAutomaton("counts that are not understood")
                least = int(counts[1])
                most = int(counts[3]) if counts[3] else None if counts[2] else least
                self._at = counts.end()
            else:
                least, most = _POSTFIX[self._text[self._at]]
                self._at += 1
            if max(least, most or 0) > _MOST_REPEATS:
                raise BeyondAutomaton("too many repetitions")
            item = _Repeated(item, least, most)
            self._skip(lines=nested)
        return item

    def _char(self) -> str:
        char = self._peek()
        self._at += 1
        if char != "\\":
            return char
        kind = self._peek()
        self._at += 1
        if kind in _CODES:
            digits = self._text[self._at:self._at + _CODES[kind]]
            self._at += len(digits)
            try:
                found = chr(int(digits, 16))
                found.encode()
            except (ValueError, OverflowError) as error:
                raise BeyondAutomaton("a character that is not understood") from error
            return found
        if kind not in _ESCAPES:
            raise BeyondAutomaton("an escape that is not understood")
        return _ESCAPES[kind]

    def _peek(self) -> str:
        if self._at >= len(self._text):
            raise BeyondAutomaton("an end that is not understood")
        return self._text[self._at]

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise BeyondAutomaton("a part that is not understood")
        self._at = found.end()
        return found[0]

    def _skip(self, *, lines: bool) -> None:
        """White space and comments."""
        blank = " \t\r\n" if lines else " \t"
        while self._at < len(self._text):
            if self._text[self._at] == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif self._text[self._at] in blank:
                self._at += 1
            else:
                break

    # -- names to rules

    def resolve(self, name: str) -> Node:
        """The rule with all names in it replaced; rules used twice stay shared."""
        if name not in self._rules:
            raise BeyondAutomaton("a rule that is missing")
        if name not in self._nodes:
            self._nodes[name] = None
            self._nodes[name] = self._node(self._rules[name])
        node = self._nodes[name]
        if node is None:
            raise BeyondAutomaton("a rule within itself")
        return node

    def _node(self, item: _Item) -> Node:
        match item:
            case _Reference(name=name):
                return self.resolve(name)
            case _Group(rows=rows):
                options = tuple(_row(tuple(self._node(part) for part in row)) for row in rows)
                return options[0] if len(options) == 1 else Choice(options)
            case _Repeated(item=inner, least=least, most=most):
                part = self._node(inner)
                if self._may_be_empty(part):
                    raise BeyondAutomaton("nothing, repeated")
                if most is not None and least > most:
                    raise BeyondAutomaton("counts that are not understood")
                return Times(part, least, most)
            case _:
                return item

    def _may_be_empty(self, node: Node) -> bool:
        known = self._empty.get(id(node))
        if known is None:
            match node:
                case Text(text=text):
                    known = not text
                case Row(parts=parts):
                    known = all(map(self._may_be_empty, parts))
                case Choice(options=options):
                    known = any(map(self._may_be_empty, options))
                case Times(least=least):
                    known = not least
                case _:
                    known = False
            self._kept.append(node)
            self._empty[id(node)] = known
        return known


def _row(parts: tuple[Node, ...]) -> Node:
    return parts[0] if len(parts) == 1 else Row(parts)
