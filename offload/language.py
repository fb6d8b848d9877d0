"""Small expressions for the texts that an answer may be, and the same written as GBNF.

Built by schema.py, walked byte by byte by automaton.py. No expression but Row(()) and a Times from zero may match the
empty text. Pure: must not know schemas, tokens or models.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = ["Chars", "Choice", "Node", "Row", "Text", "Times", "Unicode", "optional", "replaced", "to_gbnf"]

_ASCII = 128


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Exactly this text. A lone surrogate U+DC80 to U+DCFF stands for a single byte, which no character holds."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Chars:
    """One of these ASCII characters."""

    chars: str


@dataclass(frozen=True, slots=True, eq=False)
class Unicode:
    """One character, well-formed in UTF-8, other than these ASCII characters."""

    without: str


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One after the other."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Any one of them."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """The part repeated; most None means without end."""

    part: "Node"
    least: int
    most: int | None


Node = Text | Chars | Unicode | Row | Choice | Times


def optional(part: Node) -> Node:
    """The part, or nothing."""
    return Times(part, 0, 1)


def replaced(root: Node, texts: Mapping[str, str]) -> Node:
    """The same language with these texts, wherever one stands whole in a Text, exchanged for others."""
    known: dict[int, Node] = {}

    def change(node: Node) -> Node:
        found = known.get(id(node))
        if found is None:
            found = known[id(node)] = changed(node)
        return found

    def changed(node: Node) -> Node:
        match node:
            case Text(text=text):
                for old, new in texts.items():
                    text = text.replace(old, new)
                return Text(text)
            case Row(parts=parts):
                return Row(tuple(change(part) for part in parts))
            case Choice(options=options):
                return Choice(tuple(change(option) for option in options))
            case Times(part=part, least=least, most=most):
                return Times(change(part), least, most)
            case _:
                return node

    return change(root) if texts else root


def to_gbnf(root: Node) -> str:
    """The same language as a llama.cpp grammar whose first rule is root."""
    writer = _GbnfWriter()
    writer.rules["root"] = ""       # first in the text
    writer.rules["root"] = writer.body(root)
    return "".join(f"{name} ::= {body}\n" for name, body in writer.rules.items())


class _GbnfWriter:
    def __init__(self) -> None:
        self.rules: dict[str, str] = {}
        self._names: dict[int, str] = {}

    def body(self, node: Node) -> str:
        match node:
            case Text(text=text):
                return json.dumps(text, ensure_ascii=False)
            case Chars(chars=chars):
                return f"[{_class(chars)}]"
            case Unicode(without=chars):
                return f"[^{_class(chars)}]"
            case Row(parts=parts):
                return " ".join(self._inner(part) for part in parts) or '""'
            case Choice(options=options):
                return " | ".join(self._inner(option) for option in options)
            case Times(part=part, least=least, most=most):
                return f"{self._inner(part)}{{{least},{'' if most is None else most}}}"

    def _inner(self, node: Node) -> str:
        """The node where one item is wanted: as a rule of its own, once, unless it is short."""
        if isinstance(node, Chars | Unicode) or (isinstance(node, Text) and node.text):
            return self.body(node)
        name = self._names.get(id(node))
        if name is None:
            name = self._names[id(node)] = f"r{len(self._names)}"
            self.rules[name] = ""
            self.rules[name] = self.body(node)
        return name


def _class(chars: Iterable[str]) -> str:
    return "".join(char if char.isalnum() else f"\\x{ord(char):02X}" for char in chars)
