"""The shape of an output as a small tree, and that tree as a GBNF grammar.

One tree serves the sampler's grammar, and whoever wants to know which text is forced next: it is regular, without
recursion, so a byte automaton can be built from it. Must not know tools, formats or llama.cpp's types.
"""

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Chars", "Choice", "Literal", "Repeat", "Row", "Shape", "choice", "gbnf", "optional", "row"]


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character inside these ranges (both ends included), or outside all of them."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def holds(self, char: str) -> bool:
        """Whether this character is one of them."""
        return any(low <= char <= high for low, high in self.ranges) != self.negated


@dataclass(frozen=True, slots=True)
class Row:
    """One part after the other."""

    parts: tuple["Shape", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    options: tuple["Shape", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part several times; most None is without end."""

    part: "Shape"
    least: int
    most: int | None


Shape: TypeAlias = Literal | Chars | Row | Choice | Repeat


def row(*parts: Shape | str) -> Shape:
    """Parts one after the other; neighbouring literals become one, nested rows are laid flat."""
    flat: list[Shape] = []
    for part in parts:
        shape = Literal(part) if isinstance(part, str) else part
        for piece in shape.parts if isinstance(shape, Row) else (shape,):
            if isinstance(piece, Literal) and flat and isinstance(flat[-1], Literal):
                flat[-1] = Literal(flat[-1].text + piece.text)
            elif piece != Literal(""):
                flat.append(piece)
    return flat[0] if len(flat) == 1 else Row(tuple(flat))


def choice(*options: Shape | str) -> Shape:
    """One of these; the same one twice counts once. At least one is needed."""
    shapes = tuple(dict.fromkeys(Literal(option) if isinstance(option, str) else option for option in options))
    return shapes[0] if len(shapes) == 1 else Choice(shapes)


def optional(part: Shape | str) -> Shape:
    """The part or nothing."""
    return Repeat(Literal(part) if isinstance(part, str) else part, 0, 1)


def gbnf(shape: Shape) -> str:
    """The grammar whose sentences are exactly those of the shape; its first rule is `root`."""
    return _Writer().grammar(shape)


class _Writer:
    """Gives every repeated part and inner choice a rule of its own, equal ones the same.

    llama.cpp multiplies the sizes of nested repetitions and refuses above 2,000; a reference to a rule counts as one.
    """

    def __init__(self) -> None:
        self._names: dict[Shape, str] = {}
        self._rules: list[str] = []

    def grammar(self, shape: Shape) -> str:
        root = self._alternatives(shape)
        return "\n".join([f"root ::= {root}", *self._rules]) + "\n"

    def _alternatives(self, shape: Shape) -> str:
        options = shape.options if isinstance(shape, Choice) else (shape,)
        return " | ".join(self._sequence(option) for option in options)

    def _sequence(self, shape: Shape) -> str:
        parts = shape.parts if isinstance(shape, Row) else (shape,)
        return " ".join(self._item(part) for part in parts) or '""'

    def _item(self, shape: Shape) -> str:
        match shape:
            case Literal(text):
                return _quoted(text)
            case Chars(ranges, negated):
                return f"[{'^' if negated else ''}{''.join(_range(low, high) for low, high in ranges)}]"
            case Repeat(part, least, most):
                body = self._item(part) if isinstance(part, Chars) else self._rule(part)
                return body + _times(least, most)
            case _:
                return self._rule(shape)

    def _rule(self, shape: Shape) -> str:
        if shape not in self._names:
            self._names[shape] = name = f"r{len(self._names) + 1}"
            self._rules.append(f"{name} ::= {self._alternatives(shape)}")
        return self._names[shape]


def _times(least: int, most: int | None) -> str:
    if most is None:
        return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
    return "?" if (least, most) == (0, 1) else f"{{{least},{most}}}"


def _range(low: str, high: str) -> str:
    return _escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}"


def _escaped(char: str) -> str:
    """A character inside a class, written by its number where it could mean something else."""
    code = ord(char)
    if char.isascii() and char.isalnum():
        return char
    return f"\\x{code:02X}" if code < 0x80 else f"\\U{code:08X}"


def _quoted(text: str) -> str:
    names = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(
        names.get(char, char if char.isprintable() else f"\\U{ord(char):08X}") for char in text) + '"'
