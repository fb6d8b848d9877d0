"""Calls as tags with raw values: Qwen3.5 and Qwen3-Coder, and models built on them. Must not know other formats."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from offload.engine.formats.argument_language import (
    STRING_LIMIT_CHARS,
    Notation,
    choice,
    lengths,
    members,
    row,
    text_without,
)
from offload.engine.formats.coercion import alternatives, fixed_values
from offload.engine.formats.format import CALLS_LIMIT, MessageShape, Trigger, WrittenCall
from offload.engine.formats.scanner import Block, Opening
from offload.engine.formats.tagged_calls import CLOSING, FUNCTION, OPENING, FunctionBlock, TaggedBlock
from offload.engine.formats.tools import Schema, Tool, kinds_of
from offload.language import Node, Text, Times

__all__ = ["QwenXml", "written_value"]

_END_OF_VALUE = "</parameter>"


class QwenXml:
    """<tool_call>\\n<function=NAME>\\n<parameter=KEY>\\nVALUE\\n</parameter>\\n</function>\\n</tool_call>"""

    name = "qwen-xml"
    trigger = Trigger(OPENING)
    markers: tuple[str, ...] = (OPENING, CLOSING, "<think>", "</think>")
    reserved = (
        OPENING, CLOSING, FUNCTION, "</function>", "<parameter=", _END_OF_VALUE, "<tool_response>", "</tool_response>",
        "<think>", "</think>")
    closing = CLOSING
    call_ends_thought = True

    def matches(self, template: str) -> bool:
        """See ToolFormat."""
        return all(mark in template for mark in (OPENING, FUNCTION, "<parameter="))

    def message_shape(self, template: str) -> MessageShape:
        """See ToolFormat."""
        key = "reasoning_content" if "reasoning_content" in template else None
        return MessageShape(tools_by_template=True, calls_by_template=True, reasoning_key=key)

    def describe(self, tools: Sequence[Tool]) -> str:
        """See ToolFormat. The template does it."""
        return "\n".join(json.dumps(tool.offered(), ensure_ascii=False) for tool in tools)

    def language(self, tools: Sequence[Tool], *, parallel: bool) -> Node:
        """See ToolFormat."""
        call = choice(*(_call(tool) for tool in tools))
        return row(call, Times(row(Text("\n"), call), 0, CALLS_LIMIT - 1)) if parallel else call

    def write(self, calls: Sequence[WrittenCall]) -> str:
        """See ToolFormat."""
        return "\n".join(_written(call) for call in calls)

    def openings(self, tools: Sequence[Tool]) -> tuple[Opening, ...]:
        """See BlockFactory. Small models tend to forget the outer tag."""
        return (Opening(OPENING), Opening(FUNCTION))

    def block(self, opening: str, tools: Sequence[Tool]) -> Block:
        """See BlockFactory."""
        return FunctionBlock(wrapped=False) if opening == FUNCTION else TaggedBlock("function")


def written_value(schema: Schema, whole: Schema, text: Node) -> Node:
    """A raw value: JSON for what is no text, the given language for texts of any kind."""
    notation = Notation()
    options: list[Node] = []
    for option in alternatives(schema, whole):
        fixed = fixed_values(option)
        if fixed:
            options += [Text(one if isinstance(one, str) else notation.literal(one)) for one in fixed]
        elif "string" in kinds_of(option) or not kinds_of(option):
            options.append(text)
        else:
            options.append(notation.value(option, whole))
    return choice(*options)


def _call(tool: Tool) -> Node:
    pairs = []
    for key, schema in tool.properties.items():
        text = text_without(_END_OF_VALUE, *lengths(schema, "minLength", "maxLength", STRING_LIMIT_CHARS))
        value = written_value(schema, tool.parameters, text)
        pairs.append((row(Text(f"<parameter={key}>\n"), value, Text(f"\n{_END_OF_VALUE}\n")), key in tool.required))
    return row(Text(f"{OPENING}\n{FUNCTION}{tool.name}>\n"), members(pairs, ""), Text(f"</function>\n{CLOSING}"))


def _written(call: WrittenCall) -> str:
    values = "".join(
        f"<parameter={key}>\n{_text(value)}\n{_END_OF_VALUE}\n" for key, value in call.arguments.items())
    return f"{OPENING}\n{FUNCTION}{call.name}>\n{values}</function>\n{CLOSING}"


def _text(value: Any) -> str:
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
