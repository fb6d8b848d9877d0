"""The tools a request offers to a model: names, descriptions and parameter schemas, checked and bounded.

They may come from a peer, so nothing is trusted: counts, lengths and depth have limits. Must not know formats,
templates or who runs a tool.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from offload.engine.formats.errors import BadTools

__all__ = ["DEPTH_LIMIT", "Schema", "Tool", "kinds_of", "read_tools"]

TOOLS_LIMIT = 64
SCHEMA_LIMIT_CHARS = 32 * 1024
PARAMETERS_LIMIT = 64
DEPTH_LIMIT = 6
"""How deep schemas are followed; below it any plain value is allowed."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,63}\Z")
_KEY = re.compile(r"[^\s<>\"'\\=,(){}\[\]|\x00-\x1f]{1,64}\Z")
# What tools in the wild call the JSON types.
_KINDS = {
    "dict": "object", "map": "object", "hashmap": "object", "float": "number", "double": "number", "int": "integer",
    "long": "integer", "tuple": "array", "list": "array", "set": "array", "bool": "boolean", "str": "string",
    "char": "string", "text": "string", "none": "null",
}
_JSON_KINDS = frozenset({"object", "number", "integer", "array", "boolean", "string", "null"})

Schema: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. parameters is a JSON schema of an object."""

    name: str
    description: str
    parameters: Schema

    @property
    def properties(self) -> Mapping[str, Schema]:
        """The parameters by name, in the order of the schema."""
        found = self.parameters.get("properties")
        return found if isinstance(found, Mapping) else {}

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the parameters that a call must have, in the order of the schema."""
        named = self.parameters.get("required")
        wanted = set(named) if isinstance(named, (list, tuple)) else set()
        return tuple(name for name in self.properties if name in wanted)

    def offered(self) -> dict[str, Any]:
        """The tool as chat templates expect it."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


def read_tools(offers: Iterable[Mapping[str, Any]]) -> tuple[Tool, ...]:
    """Tools from dicts, either {"name", "description", "parameters"} or wrapped as {"type", "function"}.

    parameters may also be the JSON text of a schema.

    Raises BadTools: no usable name, two of one name, no object schema, or a limit passed (64 tools, 64 parameters each,
    32 Ki characters of schema).
    """
    tools: dict[str, Tool] = {}
    for offer in offers:
        tool = _tool(offer)
        if tool.name in tools:
            raise BadTools(f"Two tools are called {tool.name}.")
        if len(tools) >= TOOLS_LIMIT:
            raise BadTools(f"More than {TOOLS_LIMIT} tools were offered.")
        tools[tool.name] = tool
    return tuple(tools.values())


def kinds_of(schema: Schema) -> tuple[str, ...]:
    """The JSON types a schema allows, in its order; empty for any."""
    named = schema.get("type")
    names = named if isinstance(named, (list, tuple)) else [named]
    kinds = [_KINDS.get(str(name).lower(), str(name).lower()) for name in names if name is not None]
    return tuple(kind for kind in kinds if kind in _JSON_KINDS)


def _parsed(parameters: Any) -> Any:
    if not isinstance(parameters, str):
        return parameters
    try:
        return json.loads(parameters) if len(parameters) <= SCHEMA_LIMIT_CHARS else parameters
    except (ValueError, RecursionError):
        return parameters


def _tool(offer: Mapping[str, Any]) -> Tool:
    function = offer.get("function", offer) if isinstance(offer, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str) or not _NAME.match(name):
        raise BadTools("A tool has no usable name.")
    parameters = _parsed(function.get("parameters")) or {"type": "object", "properties": {}}
    if not isinstance(parameters, Mapping) or kinds_of(parameters) not in ((), ("object",)):
        raise BadTools(f"The parameters of {name} are no object schema.")
    try:
        size = len(json.dumps(parameters))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadTools(f"The schema of {name} is no JSON.") from error
    tool = Tool(name, str(function.get("description") or ""), parameters)
    if size > SCHEMA_LIMIT_CHARS or len(tool.properties) > PARAMETERS_LIMIT:
        raise BadTools(f"The schema of {name} is too large.")
    for key, schema in tool.properties.items():
        if not isinstance(key, str) or not _KEY.match(key) or not isinstance(schema, Mapping):
            raise BadTools(f"A parameter of {name} can't be written in a call.")
    return tool
