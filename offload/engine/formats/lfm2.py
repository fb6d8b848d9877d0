"""Calls in Python's notation between markers: LFM2 and LFM2.5. Must not know other formats."""

import json
from collections.abc import Sequence

from offload.engine.formats.argument_language import Notation, choice, row
from offload.engine.formats.format import CALLS_LIMIT, MessageShape, Trigger, WrittenCall
from offload.engine.formats.python_calls import PythonBlock, bare_openings, call_language, write_call
from offload.engine.formats.scanner import Block, Opening
from offload.engine.formats.tools import Tool
from offload.language import Node, Text, Times

__all__ = ["Lfm2"]

_OPENING, _CLOSING = "<|tool_call_start|>", "<|tool_call_end|>"
_NOTATION = Notation(("True", "False", "None"), barred="<|")


class Lfm2:
    """<|tool_call_start|>[NAME(KEY=VALUE, ...), ...]<|tool_call_end|>"""

    name = "lfm2"
    trigger = Trigger(_OPENING)
    markers: tuple[str, ...] = (_OPENING, _CLOSING, "<think>", "</think>")
    reserved = (
        _OPENING, _CLOSING, "<|tool_response_start|>", "<|tool_response_end|>", "<|tool_list_start|>",
        "<|tool_list_end|>", "<think>", "</think>")
    closing = _CLOSING
    call_ends_thought = False

    def matches(self, template: str) -> bool:
        """See ToolFormat. The markers of a call need not occur in the template."""
        return "<|tool_list_start|>" in template or "List of tools: [" in template

    def message_shape(self, template: str) -> MessageShape:
        """See ToolFormat."""
        return MessageShape(
            tools_by_template=True, calls_by_template="tool_calls" in template,
            reasoning_key="thinking" if "message.thinking" in template else None)

    def describe(self, tools: Sequence[Tool]) -> str:
        """See ToolFormat. The template does it."""
        return "List of tools: " + json.dumps([tool.offered() for tool in tools], ensure_ascii=False)

    def language(self, tools: Sequence[Tool], *, parallel: bool) -> Node:
        """See ToolFormat."""
        call = choice(*(call_language(tool, _NOTATION) for tool in tools))
        more = (Times(row(Text(", "), call), 0, CALLS_LIMIT - 1),) if parallel else ()
        return row(Text(f"{_OPENING}["), call, *more, Text(f"]{_CLOSING}"))

    def write(self, calls: Sequence[WrittenCall]) -> str:
        """See ToolFormat."""
        return f"{_OPENING}[{', '.join(write_call(call, _NOTATION) for call in calls)}]{_CLOSING}"

    def openings(self, tools: Sequence[Tool]) -> tuple[Opening, ...]:
        """See BlockFactory."""
        return (Opening(_OPENING), *bare_openings(tools))

    def block(self, opening: str, tools: Sequence[Tool]) -> Block:
        """See BlockFactory."""
        if opening == _OPENING:
            return PythonBlock("", _CLOSING, tools)
        return PythonBlock(opening, "", tools)
