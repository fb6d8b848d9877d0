"""A JSON schema as the language of the JSON texts that are allowed: written as json.dumps writes them, keys in order.

There is no optional white space, and everything has an end, so that much of a text is forced and none runs away. Every
text of the language is valid under the schema; not every valid text is in it (further properties and unbounded lengths
are left out). Pure: must not know tokens, models or requests.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from offload.errors import BadGrammar
from offload.language import Chars, Choice, Node, Row, Text, Times, Unicode, optional
from offload.numerals import decimal, integer

__all__ = ["SCHEMA_LIMIT_BYTES", "BeyondAutomaton", "read_schema", "schema_language"]

SCHEMA_LIMIT_BYTES = 64 * 1024
_DEEPEST = 16
_LONGEST_STRING_CHARS = 2000    # where the schema sets no bound: a small model may never close its quotes
_MOST_ITEMS = 64
_MOST_REPEATS = 100_000
_MOST_PROPERTIES = 128

_HEX = "0123456789abcdefABCDEF"
_ESCAPE = Row((Text("\\"), Choice((
    Chars('"\\/bfnrt'),
    Row((Text("u"), Choice((
        Row((Chars("012345678abcefABCEF9"), Times(Chars(_HEX), 3, 3))),
        Row((Chars("dD"), Chars("01234567"), Times(Chars(_HEX), 2, 2))),
        # a pair of surrogates; half a pair would be no character
        Row((Chars("dD"), Chars("89abAB"), Times(Chars(_HEX), 2, 2), Text("\\u"), Chars("dD"), Chars("cdefCDEF"),
             Times(Chars(_HEX), 2, 2))),
    )))),
))))
_CHARACTER = Choice((Unicode('"\\\x7f' + "".join(map(chr, range(32)))), _ESCAPE))

_NOTES = frozenset({
    "title", "description", "default", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly",
    "format", "contentEncoding", "contentMediaType", "$defs", "definitions", "strict",
})
_EVERYWHERE = frozenset({"type", "enum", "const", "nullable"})
_USED = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "boolean": frozenset[str](),
    "null": frozenset[str](),
}
_FOR_GRAMMAR = frozenset({"$ref", "pattern", "allOf", "prefixItems"})
"""What llama.cpp's converter to GBNF knows and this module does not."""

Schema = Mapping[str, Any]


class BeyondAutomaton(Exception):
    """This module can't write the schema down; a grammar may still hold an answer to it."""


def read_schema(text: str) -> dict[str, Any]:
    """The schema in a JSON text. Raises BadGrammar."""
    if len(text.encode("utf-8", errors="replace")) > SCHEMA_LIMIT_BYTES:
        raise BadGrammar("The schema is too long.")
    try:
        schema = json.loads(text)
        _refuse_foreign(schema)
    except (ValueError, RecursionError) as error:
        raise BadGrammar("The schema is no JSON, or nested too deep.") from error
    if not isinstance(schema, dict):
        raise BadGrammar("The schema is no JSON object.")
    return schema


def schema_language(schema: Schema) -> Node:
    """The language of the schema.

    Raises BeyondAutomaton for $ref, pattern, allOf, prefixItems and values of any shape; BadGrammar for what no grammar
    could keep (multipleOf, not, ...) and for schemas that contradict themselves.
    """
    return _value(schema, 0)


def _refuse_foreign(part: Any) -> None:
    """A schema elsewhere is never fetched."""
    if isinstance(part, dict):
        if not str(part.get("$ref", "#/")).startswith("#/"):
            raise BadGrammar("The schema refers to another document.")
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        _refuse_foreign(inner)


def _value(schema: Any, depth: int) -> Node:
    if schema is True or schema == {}:
        raise BeyondAutomaton("a value of any shape")
    if not isinstance(schema, Mapping):
        raise BadGrammar("A part of the schema is no object.")
    if depth > _DEEPEST:
        raise BadGrammar(f"The schema is nested more than {_DEEPEST} deep.")
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            _only(schema, frozenset({keyword}))
            options = _list(schema, keyword)
            return Choice(tuple(_value(option, depth + 1) for option in options))
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else _list(schema, "enum")
        return Choice(tuple(Text(_dumped(value)) for value in values))
    kinds = _kinds(schema)
    _only(schema, _EVERYWHERE.union(*(_USED[kind] for kind in kinds)))
    nodes = [_of_kind(kind, schema, depth) for kind in kinds]
    if schema.get("nullable") is True and "null" not in kinds:
        nodes.append(Text("null"))
    return nodes[0] if len(nodes) == 1 else Choice(tuple(nodes))


def _kinds(schema: Schema) -> list[str]:
    kind = schema.get("type")
    if kind is None:
        kind = "object" if "properties" in schema else "array" if "items" in schema else None
    if kind is None:
        _only(schema, _EVERYWHERE)
        raise BeyondAutomaton("a value of any shape")
    kinds = list(kind) if isinstance(kind, list) else [kind]
    unknown = [name for name in kinds if not isinstance(name, str) or name not in _USED]
    if unknown or not kinds:
        raise BadGrammar(f"The schema names an unknown type: {str(unknown)[:40]}.")
    return kinds


def _of_kind(kind: str, schema: Schema, depth: int) -> Node:
    match kind:
        case "object":
            return _object(schema, depth)
        case "array":
            return _array(schema, depth)
        case "string":
            least, most = _counts(schema, "minLength", "maxLength", _LONGEST_STRING_CHARS)
            return Row((Text('"'), Times(_CHARACTER, least, most), Text('"')))
        case "integer":
            return integer(schema)
        case "number":
            return decimal(schema)
        case "boolean":
            return Choice((Text("true"), Text("false")))
        case _:
            return Text("null")


def _object(schema: Schema, depth: int) -> Node:
    """The properties in the order of the schema; those not required may be left out."""
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, Sequence) or isinstance(required, str):
        raise BadGrammar("An object's properties or required keys can't be read.")
    if any(key not in properties for key in required):
        raise BadGrammar("The schema requires a property that it does not describe.")
    if not properties:
        if schema.get("additionalProperties") is not False:
            raise BeyondAutomaton("an object of any shape")
        return Text("{}")
    if len(properties) > _MOST_PROPERTIES:
        raise BadGrammar(f"The schema has an object with more than {_MOST_PROPERTIES} properties.")
    first: tuple[Node, ...] = (Text("}"),)      # what may follow when nothing was written yet, and when something was
    later: tuple[Node, ...] = first
    for key, described in reversed(list(properties.items())):
        value = _value(described, depth + 1)
        name = _dumped(key) + ": "
        rest = _either(later)
        begun, gone_on = Row((Text(name), value, rest)), Row((Text(", " + name), value, rest))
        needed = key in required
        first, later = (begun, *(() if needed else first)), (gone_on, *(() if needed else later))
    return Row((Text("{"), _either(first)))


def _either(options: tuple[Node, ...]) -> Node:
    return options[0] if len(options) == 1 else Choice(options)


def _array(schema: Schema, depth: int) -> Node:
    if "items" not in schema:
        raise BeyondAutomaton("an array of any items")
    item = _value(schema["items"], depth + 1)
    least, most = _counts(schema, "minItems", "maxItems", _MOST_ITEMS)
    if most == 0:
        return Text("[]")
    items: Node = Row((item, Times(Row((Text(", "), item)), max(0, least - 1), most - 1)))
    return Row((Text("["), items if least else optional(items), Text("]")))


def _counts(schema: Schema, low: str, high: str, default: int) -> tuple[int, int]:
    least = schema.get(low, 0)
    most = schema.get(high, max(default, least) if isinstance(least, int) else default)
    whole = all(isinstance(count, int) and not isinstance(count, bool) for count in (least, most))
    if not whole or not 0 <= least <= most or most > _MOST_REPEATS:
        raise BadGrammar(f"The schema's {low} or {high} can't be used.")
    return least, most


def _only(schema: Schema, used: frozenset[str]) -> None:
    unknown = [key for key in schema if key not in used and key not in _NOTES]
    if any(key in _FOR_GRAMMAR for key in unknown):
        raise BeyondAutomaton(unknown[0])
    if unknown:
        raise BadGrammar(f"An answer can't be held to the schema's {str(unknown[0])[:40]!r} here.")


def _list(schema: Schema, keyword: str) -> list[Any]:
    values = schema[keyword]
    if not isinstance(values, list) or not values:
        raise BadGrammar(f"The schema's {keyword} is no list or empty.")
    return values


def _dumped(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError as error:
        raise BadGrammar("The schema holds a value that no JSON text can have.") from error
    return text
