"""Calls as JSON between tags: Qwen2.5, Qwen3, Hermes, Granite 4 and others. Must not know other formats."""

import json
from collections.abc import Sequence

from offload.engine.formats.argument_language import Notation, choice, row
from offload.engine.formats.format import CALLS_LIMIT, MessageShape, Trigger, WrittenCall
from offload.engine.formats.scanner import Block, Opening
from offload.engine.formats.tagged_calls import CLOSING, FUNCTION, OPENING, TaggedBlock
from offload.engine.formats.tools import Tool
from offload.language import Node, Text, Times

__all__ = ["HermesJson"]

# Formats with the same outer tag and something else inside.
_OTHERS = (FUNCTION, "<arg_key>", "<invoke name=", "<tool_calls>")


class HermesJson:
    """<tool_call>\\n{"name": NAME, "arguments": {...}}\\n</tool_call>"""

    name = "hermes-json"
    trigger = Trigger(OPENING)
    markers: tuple[str, ...] = (OPENING, CLOSING, "<think>", "</think>")
    reserved = (OPENING, CLOSING, "<tool_response>", "</tool_response>", "<think>", "</think>")
    closing = CLOSING
    call_ends_thought = True

    def matches(self, template: str) -> bool:
        """See ToolFormat."""
        return OPENING in template and not any(mark in template for mark in _OTHERS)

    def message_shape(self, template: str) -> MessageShape:
        """See ToolFormat."""
        key = "reasoning_content" if "reasoning_content" in template else None
        return MessageShape(
            tools_by_template=True, calls_by_template="tool_calls" in template, reasoning_key=key)

    def describe(self, tools: Sequence[Tool]) -> str:
        """See ToolFormat. The template does it."""
        return "\n".join(json.dumps(tool.offered(), ensure_ascii=False) for tool in tools)

    def language(self, tools: Sequence[Tool], *, parallel: bool) -> Node:
        """See ToolFormat."""
        notation = Notation()
        call = choice(*(
            row(Text(f'{OPENING}\n{{"name": "{tool.name}", "arguments": '), notation.arguments(tool),
                Text(f"}}\n{CLOSING}")) for tool in tools))
        return row(call, Times(row(Text("\n"), call), 0, CALLS_LIMIT - 1)) if parallel else call

    def write(self, calls: Sequence[WrittenCall]) -> str:
        """See ToolFormat."""
        return "\n".join(
            f"{OPENING}\n{json.dumps({'name': call.name, 'arguments': dict(call.arguments)}, ensure_ascii=False)}"
            f"\n{CLOSING}" for call in calls)

    def openings(self, tools: Sequence[Tool]) -> tuple[Opening, ...]:
        """See BlockFactory."""
        return (Opening(OPENING),)

    def block(self, opening: str, tools: Sequence[Tool]) -> Block:
        """See BlockFactory."""
        return TaggedBlock("json")
