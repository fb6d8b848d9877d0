"""Calls as bare JSON with "parameters": Llama 3.1, 3.2 and 3.3. Must not know other formats."""

import json
from collections.abc import Sequence

from offload.engine.formats.argument_language import Notation, choice, row
from offload.engine.formats.format import MessageShape, Trigger, WrittenCall
from offload.engine.formats.json_calls import JsonBlock
from offload.engine.formats.scanner import Block, Opening
from offload.engine.formats.tools import Tool
from offload.language import Node, Text

__all__ = ["Llama3"]

_PYTHON_TAG = "<|python_tag|>"


class Llama3:
    """{"name": NAME, "parameters": {...}}, one in a turn."""

    name = "llama-3"
    trigger = Trigger('{"name": "', only_first=True)
    markers: tuple[str, ...] = (_PYTHON_TAG,)
    reserved = (_PYTHON_TAG,)
    closing = ""
    call_ends_thought = False

    def matches(self, template: str) -> bool:
        """See ToolFormat."""
        asks = '{"name": function name, "parameters":' in template or _PYTHON_TAG in template
        return "<|start_header_id|>" in template and asks and "<function=" not in template

    def message_shape(self, template: str) -> MessageShape:
        """See ToolFormat. The template takes one call in a turn and puts the tools into the first user message."""
        return MessageShape(tools_by_template=True, calls_by_template=True, one_call=True)

    def describe(self, tools: Sequence[Tool]) -> str:
        """See ToolFormat. The template does it."""
        return "\n\n".join(json.dumps(tool.offered(), ensure_ascii=False, indent=4) for tool in tools)

    def language(self, tools: Sequence[Tool], *, parallel: bool) -> Node:
        """See ToolFormat. There are no parallel calls in this format."""
        notation = Notation(barred="<|")
        return choice(*(
            row(Text(f'{{"name": "{tool.name}", "parameters": '), notation.arguments(tool), Text("}"))
            for tool in tools))

    def write(self, calls: Sequence[WrittenCall]) -> str:
        """See ToolFormat."""
        return "; ".join(
            json.dumps({"name": call.name, "parameters": dict(call.arguments)}, ensure_ascii=False) for call in calls)

    def openings(self, tools: Sequence[Tool]) -> tuple[Opening, ...]:
        """See BlockFactory."""
        return (Opening(_PYTHON_TAG), Opening("{", only_first=True))

    def block(self, opening: str, tools: Sequence[Tool]) -> Block:
        """See BlockFactory."""
        return JsonBlock(opening, tools, any_name=opening == _PYTHON_TAG)
