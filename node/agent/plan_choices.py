"""What a model that plans may choose from, tool by tool: values that code has read are closed choices, and free text is
a copy of words that are there.

Turns readings into a schema, and the model's arguments back into values that know where they came from. A value that
was not offered is not taken. Must not know models, calls or approvals.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from node.agent.copy_grammar import agree
from node.agent.effects import Json, Origin, Span
from node.agent.plan_port import PlanTool
from node.agent.readers.people import Unclear
from node.agent.slots import Reading, SlotReader, SlotValue, text_kind
from node.agent.tools.registry import ReadTool, ToolSpec, WriteTool
from node.privacy.labels import Integrity, Labeled

__all__ = ["Offer", "offer_of"]

_LEAST_COPY_CHARS = 3
_CHOICES_LIMIT = 12
_COPY_CHARS = 400


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool as it is offered for one request."""

    tool: ReadTool | WriteTool
    closed: Mapping[str, Mapping[str, SlotValue]]
    """By parameter: the values that were read, by how they are shown."""
    copied: Mapping[str, tuple[SlotValue, ...]]
    """By parameter that takes words: what the rules would copy."""
    best: Reading
    """The request, or the part of it, that gives this tool the most."""
    missing: tuple[str, ...]
    """Required parameters that nothing was read for."""
    unclear: tuple[Unclear, ...]

    @property
    def spec(self) -> ToolSpec:
        """The tool's word about itself."""
        return self.tool.spec

    def as_tool(self) -> PlanTool:
        """For the model. A parameter that nothing was read for can't be given: it is asked for."""
        properties: dict[str, Json] = {}
        for name, param in self.spec.params.items():
            if values := self.closed.get(name):
                properties[name] = {"type": "string", "description": param.description, "enum": list(values)}
            elif name in self.copied:
                properties[name] = {
                    "type": "string", "maxLength": _COPY_CHARS,
                    "description": f"{param.description}, copied word for word from the request or an answer",
                }
        required = [name for name in self.spec.required if name in properties]
        return PlanTool(self.spec.name, self.spec.description, {
            "type": "object", "properties": properties, "required": required, "additionalProperties": False})

    def values(
        self, arguments: Mapping[str, Json], request: str, results: Sequence[Labeled],
    ) -> dict[str, SlotValue]:
        """The values behind the model's arguments, as far as they were offered or are copies of the request, or of an
        earlier result. A required one that it left out or made up is what the rules read, where that is one thing."""
        found: dict[str, SlotValue] = {}
        for name in self.spec.params:
            given = arguments.get(name)
            said = given.strip() if isinstance(given, str) else ""
            if name in self.copied:
                value = _copy(said, request, results, self.copied[name])
            else:
                value = self.closed.get(name, {}).get(said)
            if value is None and name in self.spec.required:
                options = [*self.copied.get(name, ()), *self.closed.get(name, {}).values()]
                value = options[0] if len(options) == 1 else None
            if value is not None:
                found[name] = value
        return found


async def offer_of(
    reader: SlotReader, tool: ReadTool | WriteTool, readings: Sequence[Reading], request: str,
    choices: Mapping[str, Sequence[str]],
) -> Offer:
    """The tool over these readings of the request, or of its parts. choices: the living values of its closed
    parameters."""
    spec = tool.spec
    filled = [reader.fill(spec, reading, choices) for reading in readings]
    closed: dict[str, dict[str, SlotValue]] = {}
    copied: dict[str, tuple[SlotValue, ...]] = {}
    for name, param in spec.params.items():
        read = [
            _moved(one.values[name], request, reading.text)
            for one, reading in zip(filled, readings, strict=True) if name in one.values
        ]
        if param.reads == "text" and text_kind(spec.name, name) is not None:
            copied[name] = tuple({str(value.value): value for value in read}.values())
            continue
        options = {value.shown: value for value in read}
        for value in read:
            options |= _single(value)
        if options:
            closed[name] = dict(list(options.items())[:_CHOICES_LIMIT])
    most = max(range(len(readings)), key=lambda at: (-len(filled[at].missing), len(filled[at].values)))
    missing = tuple(name for name in spec.required if not closed.get(name) and not copied.get(name))
    return Offer(tool, closed, copied, readings[most], missing, filled[most].unclear)


def _single(value: SlotValue) -> dict[str, SlotValue]:
    """Each of several names by itself."""
    if not isinstance(value.value, tuple) or len(value.value) < 2:
        return {}
    return {name: replace(value, value=(name,), shown=name) for name in value.value if isinstance(name, str)}


def _moved(value: SlotValue, request: str, part: str) -> SlotValue:
    """The value with its span in the whole request instead of in a part of it."""
    at = request.find(part)
    if value.span is None or at < 0:
        return value
    return replace(value, span=Span(value.span.start + at, value.span.end + at))


def _copy(said: str, request: str, results: Sequence[Labeled], read: Sequence[SlotValue]) -> SlotValue | None:
    if len(said) < _LEAST_COPY_CHARS:
        return None
    if span := _where(said, request):
        words = span.of(request)
        if len(read) == 1:
            return agree(read[0], words)
        others = tuple(str(one.value) for one in read if str(one.value) != words)
        return SlotValue(words, words, Origin.COPIED, f'your words, copied by a model: "{words}"', span, others)
    for result in reversed(results):
        if span := _where(said, result.value):
            words = span.of(result.value)
            origin = Origin.UNTRUSTED if result.integrity is Integrity.UNTRUSTED else Origin.SOURCE
            return SlotValue(words, words, origin, f"copied by a model from the answer of {result.source}")
    return None


def _where(said: str, text: str) -> Span | None:
    """Where these words stand in the text, whole and in this order."""
    words = r"\s+".join(re.escape(word) for word in said.split())
    match = re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE)
    return Span(match.start(), match.end()) if match else None
