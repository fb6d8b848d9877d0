"""BFCL's parameter descriptions as JSON schemas that an engine can hold an answer to. Pure.

Its types are Python's and Java's words; what a schema can't say is left out, and depth and size are bounded. Must not
know engines.
"""

from collections.abc import Mapping
from typing import Any

from offload.evaluation.cases import Tool

__all__ = ["ASK", "NONE", "calls_schema", "parameter_schema"]

NONE = "no_suitable_function"
ASK = "ask_user"

_TYPES = {
    "dict": "object", "object": "object", "hashmap": "object", "float": "number", "double": "number",
    "number": "number", "integer": "integer", "int": "integer", "long": "integer", "short": "integer",
    "byte": "integer", "bigint": "integer", "boolean": "boolean", "bool": "boolean", "array": "array",
    "tuple": "array", "list": "array", "arraylist": "array", "string": "string", "char": "string", "any": "string",
}
_DEEPEST = 6
_LONGEST_TEXT_CHARS = 200
_MOST_ITEMS = 16


def parameter_schema(described: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """The schema of one described value; a text where nothing else is said."""
    choices = described.get("enum")
    if isinstance(choices, list) and choices:
        return {"enum": choices}
    kind = _TYPES.get(str(described.get("type", "string")).lower(), "string")
    if kind == "array":
        items = described.get("items")
        one = parameter_schema(items if isinstance(items, dict) and depth < _DEEPEST else {}, depth + 1)
        return {"type": "array", "items": one, "maxItems": _MOST_ITEMS}
    if kind == "object":
        properties = described.get("properties")
        if not isinstance(properties, dict) or not properties or depth >= _DEEPEST:
            return {"type": "object", "properties": {}, "additionalProperties": False}
        inner = {name: parameter_schema(one, depth + 1) for name, one in properties.items() if isinstance(one, dict)}
        required = described.get("required")
        kept = [name for name in required if name in inner] if isinstance(required, list) else []
        return {"type": "object", "properties": inner, "required": kept, "additionalProperties": False}
    return {"type": "string", "maxLength": _LONGEST_TEXT_CHARS} if kind == "string" else {"type": kind}


def calls_schema(tools: list[Tool], *, may_decline: bool = True, may_ask: bool = True) -> dict[str, Any]:
    """One call of one of the tools, or a call that stands for none, or for a question back."""
    options = [_call(tool.name, parameter_schema({"type": "dict", **tool.parameters})) for tool in tools]
    if may_decline:
        options.append(_call(NONE, {"type": "object", "properties": {}, "additionalProperties": False}))
    if may_ask:
        question = {"type": "string", "minLength": 1, "maxLength": _LONGEST_TEXT_CHARS}
        options.append(_call(ASK, {
            "type": "object", "properties": {"question": question}, "required": ["question"],
            "additionalProperties": False}))
    return {"anyOf": options}


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object", "properties": {"name": {"const": name}, "arguments": arguments},
        "required": ["name", "arguments"], "additionalProperties": False,
    }
