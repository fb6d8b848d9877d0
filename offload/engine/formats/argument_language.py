"""What arguments may look like, by their JSON schema, in JSON or Python notation: as json.dumps would write them.

No optional spaces, bounded strings, digits and lists: so as much text as possible is forced, and no value can run on
for ever. Takes schemas as tools in the wild have them: keywords it does not know are left to the check of the finished
call. Must not know tools' formats, tokens or grammars.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from offload.engine.formats.coercion import alternatives, fixed_values
from offload.engine.formats.tools import DEPTH_LIMIT, Schema, Tool, kinds_of
from offload.errors import BadGrammar
from offload.language import Chars, Choice, Node, Row, Text, Times, Unicode, optional
from offload.numerals import decimal, integer

__all__ = [
    "CONTROL_CHARS", "ITEMS_LIMIT", "STRING_LIMIT_CHARS", "Notation", "choice", "lengths", "members", "row",
    "text_without",
]

STRING_LIMIT_CHARS = 512
ITEMS_LIMIT = 16
KEY_LIMIT_CHARS = 32
INTEGER_LIMIT = 10**10 - 1
"""Small models run numbers on to ninety zeros; a schema's own bounds may allow more."""
_FREE_DEPTH = 2
"""How deep values go whose schema says nothing."""
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")

CONTROL_CHARS = "".join(map(chr, range(32))) + "\x7f"
_ESCAPE = Row((Text("\\"), Chars('"\\nt')))
_PLAIN = Choice((Unicode('"\\' + CONTROL_CHARS), _ESCAPE))


@dataclass(frozen=True, slots=True)
class Notation:
    """How values are written.

    words: true, false and null. barred: the two characters that no string may hold in a row, the begin of control
    tokens that the tokenizer would make out of plain text.
    """

    words: tuple[str, str, str] = ("true", "false", "null")
    barred: str = ""

    def value(self, schema: Schema, whole: Schema, depth: int = 0) -> Node:
        """A value. whole: the schema that references point into. Raises BadGrammar for bounds that leave nothing."""
        if depth > DEPTH_LIMIT:
            return self._free(0)
        return choice(*(
            node for option in alternatives(schema, whole) for node in self._option(option, whole, depth)))

    def arguments(self, tool: Tool) -> Node:
        """The arguments of a call as an object: exactly the tool's own parameters. Raises BadGrammar."""
        return self._object(tool.parameters, tool.parameters, 0) if tool.properties else Text("{}")

    def literal(self, value: Any) -> str:
        """A fixed value as it is written."""
        if isinstance(value, bool):
            return self.words[0] if value else self.words[1]
        if value is None:
            return self.words[2]
        if isinstance(value, Mapping):
            pairs = (f"{_quoted(str(key))}: {self.literal(one)}" for key, one in value.items())
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(self.literal(one) for one in value) + "]"
        return _quoted(value)

    def string(self, least: int = 0, most: int = STRING_LIMIT_CHARS) -> Node:
        """A string in double quotes."""
        return _string(self.barred, least, most)

    def _option(self, schema: Schema, whole: Schema, depth: int) -> list[Node]:
        fixed = fixed_values(schema)
        if fixed:
            return [Text(text) for text in dict.fromkeys(self.literal(value) for value in fixed)]
        kinds = kinds_of(schema)
        return [self._kind(kind, schema, whole, depth) for kind in kinds] or [self._free(_FREE_DEPTH)]

    def _kind(self, kind: str, schema: Schema, whole: Schema, depth: int) -> Node:
        match kind:
            case "string":
                return self.string(*lengths(schema, "minLength", "maxLength", STRING_LIMIT_CHARS))
            case "integer" | "number":
                return _number(schema, fraction=kind == "number")
            case "boolean":
                return choice(Text(self.words[0]), Text(self.words[1]))
            case "null":
                return Text(self.words[2])
            case "array":
                items = schema.get("items")
                item = self.value(items, whole, depth + 1) if isinstance(items, Mapping) else self._free(_FREE_DEPTH)
                return _listed(item, *lengths(schema, "minItems", "maxItems", ITEMS_LIMIT))
            case _:
                return self._object(schema, whole, depth)

    def _object(self, schema: Schema, whole: Schema, depth: int) -> Node:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            return self._free_object(_FREE_DEPTH)
        named = schema.get("required")
        wanted = set(named) if isinstance(named, (list, tuple)) else set()
        pairs = [
            (row(Text(f"{_quoted(str(key))}: "), self.value(inner, whole, depth + 1)), key in wanted)
            for key, inner in properties.items() if isinstance(inner, Mapping)]
        return row(Text("{"), members(pairs, ", "), Text("}"))

    def _free(self, depth: int) -> Node:
        """Any value, nested at most this deep."""
        return _free(self, depth)

    def _free_object(self, depth: int) -> Node:
        pair = row(self.string(1, KEY_LIMIT_CHARS), Text(": "), self._free(depth - 1))
        more = Times(row(Text(", "), pair), 0, ITEMS_LIMIT - 1)
        return row(Text("{"), optional(row(pair, more)), Text("}"))


# Equal parts are one object: a grammar writes each object once, and has a limit.
@lru_cache(maxsize=256)
def _string(barred: str, least: int, most: int) -> Node:
    if not barred:
        return Row((Text('"'), Times(_PLAIN, least, most), Text('"')))
    unit, tail = _apart(barred)
    return Row((Text('"'), Times(unit, least, most), tail, Text('"')))


@cache
def _free(notation: Notation, depth: int) -> Node:
    plain: list[Node] = [
        notation.string(), _number({}, fraction=True), *(Text(word) for word in notation.words)]
    if depth:
        plain += [_listed(_free(notation, depth - 1), 0, ITEMS_LIMIT), notation._free_object(depth)]
    return choice(*plain)


@cache
def _apart(barred: str) -> tuple[Node, Node]:
    """A character of a string that never holds the two in a row, and what may stand before its closing quote."""
    first, second = barred[0], barred[1]
    none = '"\\' + CONTROL_CHARS + first
    follows = choice(Unicode(none + second), _ESCAPE)
    return choice(Unicode(none), _ESCAPE, row(Times(Text(first), 1, 8), follows)), optional(Text(first))


def row(*parts: Node) -> Node:
    """Parts one after the other; neighbouring texts become one, empty parts are left out."""
    flat: list[Node] = []
    for part in parts:
        last = flat[-1] if flat else None
        if isinstance(part, Text) and isinstance(last, Text):
            flat[-1] = Text(last.text + part.text)
        elif not (isinstance(part, Row) and not part.parts) and not (isinstance(part, Text) and not part.text):
            flat.append(part)
    return flat[0] if len(flat) == 1 else Row(tuple(flat))


def choice(*options: Node) -> Node:
    """One of these; at least one is needed."""
    return options[0] if len(options) == 1 else Choice(options)


def members(pairs: Sequence[tuple[Node, bool]], separator: str) -> Node:
    """Members in their order, those not required also left out, with separators only between two."""
    first: Node = Row(())       # what follows when nothing was written yet
    later: Node = Row(())       # what follows when something was
    for pair, required in reversed(pairs):
        begun = row(pair, later)
        joined = row(Text(separator), pair) if separator else pair
        first = begun if required else choice(begun, first)
        later = row(joined if required else optional(joined), later)
    return first


def _listed(item: Node, least: int, most: int) -> Node:
    """Values in square brackets."""
    if most == 0:
        return Text("[]")
    full = row(item, Times(row(Text(", "), item), max(least - 1, 0), most - 1))
    return row(Text("["), full if least else optional(full), Text("]"))


def lengths(schema: Schema, low: str, high: str, limit: int) -> tuple[int, int]:
    """Least and most of a schema, both at most the limit."""
    least, most = schema.get(low), schema.get(high)
    top = min(most, limit) if isinstance(most, int) and most >= 0 else limit
    return min(least, top) if isinstance(least, int) and least > 0 else 0, top


def _number(schema: Schema, *, fraction: bool) -> Node:
    """A number of bounded length within the schema's bounds, those that are no whole numbers left to the check."""
    own = {
        name: edge for name in _BOUNDS
        if isinstance(edge := schema.get(name), (int, float)) and not isinstance(edge, bool) and edge == edge // 1}
    bounds: dict[str, Any] = dict(own)
    if not own.keys() & {"maximum", "exclusiveMaximum"}:
        bounds["maximum"] = max([INTEGER_LIMIT, *(edge + INTEGER_LIMIT for edge in own.values() if edge > 0)])
    if not own.keys() & {"minimum", "exclusiveMinimum"}:
        bounds["minimum"] = min([-INTEGER_LIMIT, *(edge - INTEGER_LIMIT for edge in own.values() if edge < 0)])
    try:
        return _bounded(tuple(bounds.items()), fraction)
    except (OverflowError, ValueError) as error:
        raise BadGrammar("A parameter's bounds can't be used.") from error


@lru_cache(maxsize=256)
def _bounded(bounds: tuple[tuple[str, Any], ...], fraction: bool) -> Node:
    return decimal(dict(bounds)) if fraction else integer(dict(bounds))


@lru_cache(maxsize=256)
def text_without(closing: str, least: int, most: int) -> Node:
    """Plain text of bounded length in which the closing text does not occur.

    Counted in characters, save that the beginnings of the closing text count as one with what follows them. The first
    character of closing may not come again inside it.
    """
    unit, tail = _unit_without(closing)
    return row(Times(unit, least, most), tail)


@cache
def _unit_without(closing: str) -> tuple[Node, Node]:
    never = CONTROL_CHARS.replace("\n", "").replace("\t", "") + closing[0]
    begins = [closing[:length] for length in range(len(closing) - 1, 0, -1)]
    broken = [row(Text(begin), Unicode(never + closing[len(begin)])) for begin in begins]
    unit = choice(Unicode(never), row(Times(choice(*map(Text, begins)), 0, 8), choice(*broken)))
    return unit, optional(Text(closing[0]))


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
