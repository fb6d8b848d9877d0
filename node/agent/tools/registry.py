"""The contract between the agent and its tools: what a tool says about itself, how it is called, what it hands back.

A tool gets values that readers already understood (moments, windows, minutes, names), never the owner's words for
them. It must not know the loop, a model, a peer's connection or who approves. Reading tools answer; writing tools
plan an effect, which the loop shows and records, then apply exactly that effect, and can undo it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, TypeAlias, runtime_checkable
from zoneinfo import ZoneInfo

from node.agent.ports import Clock, Effect, EffectValue, Interval, Json, Origin, Span
from node.agent.tools.errors import BadArgument
from node.privacy.labels import Labeled

__all__ = [
    "ArgValue", "Args", "Param", "Provenance", "ReadTool", "Reads", "Registry", "Tool", "ToolAnswer", "ToolContext",
    "ToolKind", "ToolSpec", "UndoRecord", "WriteTool", "check_args", "effect_value",
]

TEXT_LIMIT_CHARS = 20_000
NAMES_LIMIT = 50

ToolKind: TypeAlias = Literal["read", "write", "destructive"]
Reads: TypeAlias = Literal["text", "window", "moment", "minutes", "names", "choice", "place"]
"""Which reader fills a parameter, and with what: text -> str; window -> Interval, or a tuple of them; moment ->
aware datetime; minutes -> int; names -> tuple of full names; choice -> one str of the choices; place -> str, an IANA
zone name or a city."""

ArgValue: TypeAlias = str | int | datetime | Interval | tuple[Interval, ...] | tuple[str, ...]
Args: TypeAlias = Mapping[str, ArgValue]
UndoRecord: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a tool."""

    description: str
    reads: Reads
    choices: tuple[str, ...] = ()
    """The fixed choices. A choice parameter without them has living ones: see Tool.choices."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a tool says about itself: for the choice by vectors, for readers, for a model's tool list."""

    name: str
    description: str
    params: Mapping[str, Param]
    required: tuple[str, ...]
    examples: tuple[str, ...]
    """At least 8 sentences that ask for this tool, none of them from a test bank."""
    kind: ToolKind
    cues: tuple[str, ...] = ()
    """Words (lower case) that speak for this tool."""
    sends: bool = False
    """True when something reaches somebody else."""
    objects: tuple[str, ...] = ()
    """For a destructive tool: what it removes. One of these words must be said, or the request is about another thing.
    Empty: anything may be meant."""

    def schema(self) -> dict[str, Json]:
        """The parameters as a JSON schema, for a model that plans freely or a bridge."""
        properties: dict[str, Json] = {}
        for name, param in self.params.items():
            entry: dict[str, Json] = {"type": _JSON_TYPES[param.reads], "description": param.description}
            if param.reads == "names":
                entry["items"] = {"type": "string"}
            if param.choices:
                entry["enum"] = list(param.choices)
            properties[name] = entry
        return {
            "type": "object", "properties": properties, "required": list(self.required), "additionalProperties": False,
        }


_JSON_TYPES: Mapping[Reads, str] = {
    "text": "string", "window": "string", "moment": "string", "minutes": "integer", "names": "array",
    "choice": "string", "place": "string",
}


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where one argument came from; copied into the effect that the owner approves."""

    origin: Origin
    source: str = ""
    span: Span | None = None
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What every call gets besides its arguments."""

    clock: Clock
    zone: ZoneInfo
    """The owner's zone: for showing times and for whole days."""
    request_id: str = ""
    """Stable across retries of one request."""
    provenance: Mapping[str, Provenance] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """A tool's result: a text that is shown as it stands, and the same facts as data for the next step."""

    text: Labeled
    data: Json = None
    """Under the same label as text. Times are ISO 8601 in UTC."""


class Tool(Protocol):
    """What all tools have."""

    @property
    def spec(self) -> ToolSpec:
        """The tool's description of itself; constant for the life of the object."""
        ...

    async def choices(self, param: str) -> tuple[str, ...]:
        """The values that exist right now for a name, title or file parameter; empty where anything goes."""
        ...


@runtime_checkable
class ReadTool(Tool, Protocol):
    """A tool without effect."""

    async def run(self, args: Args, ctx: ToolContext) -> ToolAnswer:
        """The answer. Raises ToolError subclasses, with a text for the owner."""
        ...


@runtime_checkable
class WriteTool(Tool, Protocol):
    """A tool that changes the owner's data. Planning writes nothing."""

    async def plan(self, args: Args, ctx: ToolContext, *, idempotency_key: str) -> Effect:
        """The exact change, complete: applying needs nothing that is not in it. Raises ToolError subclasses."""
        ...

    async def apply(self, effect: Effect, idempotency_key: str) -> UndoRecord:
        """Make exactly this change and return what undoing it takes. A second time under the same key changes
        nothing and returns an equal record, also after a crash at any instant of the first. Raises EffectRefused,
        with nothing written, when the data changed since the plan."""
        ...

    async def undo(self, record: UndoRecord) -> str:
        """Take the change back and say so in one sentence. A second time changes nothing. Raises EffectRefused, with
        nothing changed, when somebody edited the data since."""
        ...


class Registry:
    """The tools of one node, by name, in a fixed order."""

    def __init__(self, tools: Iterable[ReadTool | WriteTool]) -> None:
        self._tools: dict[str, ReadTool | WriteTool] = {}
        for tool in tools:
            if tool.spec.name in self._tools:
                raise ValueError(f"two tools are named {tool.spec.name}")
            self._tools[tool.spec.name] = tool

    def __iter__(self) -> Iterator[ReadTool | WriteTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def get(self, name: str) -> ReadTool | WriteTool | None:
        """The tool, or None."""
        return self._tools.get(name)

    def specs(self) -> tuple[ToolSpec, ...]:
        """What every tool says about itself."""
        return tuple(tool.spec for tool in self)


def check_args(spec: ToolSpec, args: Args) -> None:
    """Return when args fit the spec: known names, all required ones there, right types, sane sizes. Raises
    BadArgument."""
    for name in args:
        if name not in spec.params:
            raise BadArgument(name, f"{spec.name} takes no {name!r}.")
    for name in spec.required:
        if name not in args:
            raise BadArgument(name, f"{spec.name} needs to know: {spec.params[name].description}.")
    for name, value in args.items():
        param = spec.params[name]
        if not _fits(param.reads, value):
            raise BadArgument(name, f"{name} of {spec.name} is not understood as a {param.reads}.")
        if param.choices and value not in param.choices:
            raise BadArgument(name, f"{name} can be: {', '.join(param.choices)}.")


def effect_value(
    name: str, value: Json, shown: str, ctx: ToolContext, *, default: Provenance | None = None,
) -> EffectValue:
    """One value of an effect with the provenance the loop gave for it, or default, or "worked out"."""
    found = ctx.provenance.get(name) or default or Provenance(Origin.COMPUTED)
    return EffectValue(name, value, shown, found.origin, found.source, found.span, found.alternatives)


def _fits(reads: Reads, value: ArgValue) -> bool:
    match reads:
        case "text" | "choice" | "place":
            return isinstance(value, str) and 0 < len(value.strip()) <= TEXT_LIMIT_CHARS
        case "minutes":
            return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 60 * 24 * 31
        case "moment":
            return isinstance(value, datetime) and value.tzinfo is not None
        case "window":
            return isinstance(value, tuple) and bool(value) and (
                _is_interval(value) or all(_is_interval(entry) for entry in value))
        case "names":
            return isinstance(value, tuple) and len(value) <= NAMES_LIMIT and all(
                isinstance(entry, str) and 0 < len(entry.strip()) <= 200 for entry in value)


def _is_interval(value: object) -> bool:
    return (
        isinstance(value, tuple) and len(value) == 2
        and all(isinstance(edge, datetime) and edge.tzinfo is not None for edge in value)
        and value[0] < value[1]
    )
