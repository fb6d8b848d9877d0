"""The shapes of argument values by their JSON schema, in JSON or Python notation, written as json.dumps would.

No optional spaces, bounded strings, digits and lists: so as much text as possible is forced, and no value can run on
for ever. Keys come in the order of the schema. Must not know tools, formats or grammars' notation.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offload.engine.formats.coercion import alternatives, fixed_values
from offload.engine.formats.shape import Chars, Choice, Literal, Repeat, Row, Shape, choice, optional, row
from offload.engine.formats.tools import DEPTH_LIMIT, Schema, Tool, kinds_of

__all__ = ["ITEMS_LIMIT", "STRING_LIMIT_CHARS", "Notation", "members", "number", "text_without"]

STRING_LIMIT_CHARS = 512
ITEMS_LIMIT = 16
KEY_LIMIT_CHARS = 32
INTEGER_DIGITS = 10
"""Small models run numbers on to ninety zeros; a schema's own maximum may allow more."""
FRACTION_DIGITS = 6
_RANGE_LISTED = 64
_FREE_DEPTH = 2
"""How deep values go whose schema says nothing."""

_CONTROL = (("\x00", "\x1f"), ("\x7f", "\x7f"))
_ESCAPE = Row((Literal("\\"), Chars((("\"", "\""), ("\\", "\\"), ("n", "n"), ("t", "t")))))
_DIGIT = Chars((("0", "9"),))
_FIRST_DIGIT = Chars((("1", "9"),))


@dataclass(frozen=True, slots=True)
class Notation:
    """How values are written.

    words: true, false and null. barred: the two characters that no string may hold in a row, the begin of control
    tokens that the tokenizer would make out of plain text.
    """

    words: tuple[str, str, str] = ("true", "false", "null")
    barred: str = ""

    def value(self, schema: Schema, whole: Schema, depth: int = 0) -> Shape:
        """The shape of a value. whole: the schema that references point into."""
        if depth > DEPTH_LIMIT:
            return self._free(0)
        return choice(*(
            shape for option in alternatives(schema, whole) for shape in self._option(option, whole, depth)))

    def members_of(self, tool: Tool) -> Shape:
        """The arguments of a call as an object: exactly the tool's own parameters."""
        if not tool.properties:
            return Literal("{}")
        return self._object(tool.parameters, tool.parameters, 0)

    def literal(self, value: Any) -> str:
        """A fixed value as it is written."""
        if isinstance(value, bool):
            return self.words[0] if value else self.words[1]
        if value is None:
            return self.words[2]
        if isinstance(value, Mapping):
            pairs = (f"{json.dumps(str(key), ensure_ascii=False)}: {self.literal(one)}" for key, one in value.items())
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(self.literal(one) for one in value) + "]"
        return json.dumps(value, ensure_ascii=False)

    def string(self, least: int = 0, most: int = STRING_LIMIT_CHARS) -> Shape:
        """A string in double quotes."""
        plain = Chars((*_CONTROL, ("\"", "\""), ("\\", "\\")), negated=True)
        unit: Shape = choice(plain, _ESCAPE)
        tail: Shape = Literal("")
        if self.barred:
            first, second = self.barred[0], self.barred[1]
            apart = Chars((*_CONTROL, ("\"", "\""), ("\\", "\\"), (first, first)), negated=True)
            safe = Chars((*_CONTROL, ("\"", "\""), ("\\", "\\"), (first, first), (second, second)), negated=True)
            unit = choice(apart, _ESCAPE, row(Repeat(Literal(first), 1, 8), choice(safe, _ESCAPE)))
            tail = Repeat(Literal(first), 0, 1)
        return row('"', Repeat(unit, least, most), tail, '"')

    def _option(self, schema: Schema, whole: Schema, depth: int) -> list[Shape]:
        fixed = fixed_values(schema)
        if fixed:
            return [Literal(self.literal(value)) for value in fixed]
        kinds = kinds_of(schema)
        return [self._kind(kind, schema, whole, depth) for kind in kinds] or [self._free(_FREE_DEPTH)]

    def _kind(self, kind: str, schema: Schema, whole: Schema, depth: int) -> Shape:
        match kind:
            case "string":
                least, most = bounds(schema, "minLength", "maxLength", STRING_LIMIT_CHARS)
                return self.string(least, most)
            case "integer" | "number":
                return number(schema, fraction=kind == "number")
            case "boolean":
                return choice(self.words[0], self.words[1])
            case "null":
                return Literal(self.words[2])
            case "array":
                items = schema.get("items")
                item = self.value(items, whole, depth + 1) if isinstance(items, Mapping) else self._free(_FREE_DEPTH)
                return listed(item, *bounds(schema, "minItems", "maxItems", ITEMS_LIMIT))
            case _:
                return self._object(schema, whole, depth)

    def _object(self, schema: Schema, whole: Schema, depth: int) -> Shape:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            return self._free_object(_FREE_DEPTH)
        named = schema.get("required")
        wanted = set(named) if isinstance(named, (list, tuple)) else set()
        pairs = [
            (row(f"{json.dumps(str(key), ensure_ascii=False)}: ", self.value(inner, whole, depth + 1)), key in wanted)
            for key, inner in properties.items() if isinstance(inner, Mapping)]
        return row("{", members(pairs, ", "), "}")

    def _free(self, depth: int) -> Shape:
        """Any value, nested at most this deep."""
        plain = [self.string(), number({}, fraction=True), *(Literal(word) for word in self.words)]
        if depth == 0:
            return choice(*plain)
        return choice(*plain, listed(self._free(depth - 1), 0, ITEMS_LIMIT), self._free_object(depth))

    def _free_object(self, depth: int) -> Shape:
        pair = row(self.string(1, KEY_LIMIT_CHARS), ": ", self._free(depth - 1))
        return row("{", optional(row(pair, Repeat(row(", ", pair), 0, ITEMS_LIMIT - 1))), "}")


def members(pairs: Sequence[tuple[Shape, bool]], separator: str) -> Shape:
    """Members in their order, those not required also left out, with separators only between two."""
    empty: Shape | None = Literal("")       # what may follow when nothing was written yet; None for nothing at all
    rest: Shape = Literal("")               # what may follow when something was
    for pair, required in reversed(pairs):
        following = row(pair, rest)
        empty = following if required else choice(following, empty if empty is not None else Literal(""))
        joined = row(separator, pair)
        rest = row(joined if required else optional(joined), rest)
    return empty if empty is not None else Literal("")


def listed(item: Shape, least: int, most: int) -> Shape:
    """Values in square brackets."""
    if most == 0:
        return Literal("[]")
    full = row(item, Repeat(row(", ", item), max(least - 1, 0), most - 1))
    return row("[", full if least else optional(full), "]")


def bounds(schema: Schema, low: str, high: str, limit: int) -> tuple[int, int]:
    """Least and most of a schema, both at most the limit."""
    least, most = schema.get(low), schema.get(high)
    top = min(most, limit) if isinstance(most, int) and most >= 0 else limit
    return min(least, top) if isinstance(least, int) and least > 0 else 0, top


def number(schema: Schema, *, fraction: bool) -> Shape:
    """A number of bounded length; a small range of integers is written out."""
    low, high = _edge(schema, "minimum", 1), _edge(schema, "maximum", -1)
    if not fraction and low is not None and high is not None and 0 <= high - low < _RANGE_LISTED:
        return choice(*(str(value) for value in range(low, high + 1)))
    digits = max([INTEGER_DIGITS, *(len(str(abs(edge))) for edge in (low, high) if edge is not None)])
    if low is not None and high is not None:
        digits = max(len(str(abs(low))), len(str(abs(high))))
    digits = min(digits, 2 * INTEGER_DIGITS)
    whole = row(_FIRST_DIGIT, Repeat(_DIGIT, 0, digits - 1))
    if fraction or low is None or low < 1:
        whole = choice("0", whole)
    sign = () if low is not None and low >= 0 else (optional("-"),)
    tail = (optional(row(".", Repeat(_DIGIT, 1, FRACTION_DIGITS))),) if fraction else ()
    return row(*sign, whole, *tail)


def _edge(schema: Schema, name: str, inward: int) -> int | None:
    edge = schema.get(name)
    outside = schema.get("exclusiveMinimum" if inward > 0 else "exclusiveMaximum")
    if isinstance(outside, int) and not isinstance(outside, bool):
        return outside + inward
    if isinstance(edge, float) and edge.is_integer():
        edge = int(edge)
    return edge if isinstance(edge, int) and not isinstance(edge, bool) else None


def text_without(closing: str, least: int, most: int, *, barred: str = "") -> Shape:
    """Plain text of bounded length in which the closing text does not occur; barred characters neither.

    Counted in characters, save that the beginnings of the closing text count as one with what follows them. The first
    character of closing may not come again inside it.
    """
    never = (("\x00", "\x08"), ("\x0b", "\x1f"), ("\x7f", "\x7f"), *((char, char) for char in barred))
    first = (closing[0], closing[0])
    begins = [closing[:length] for length in range(len(closing) - 1, 0, -1)]
    broken = [
        row(begin, Chars((*never, first, (closing[len(begin)], closing[len(begin)])), negated=True))
        for begin in begins]
    unit = Choice((
        Chars((*never, first), negated=True),
        row(Repeat(choice(*begins), 0, 8), choice(*broken)),
    ))
    return row(Repeat(unit, least, most), optional(first[0]))
