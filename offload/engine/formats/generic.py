"""Calls as bare JSON, for models whose template says nothing of tools: best forced by the grammar.

Must not know other formats.
"""

import json
from collections.abc import Sequence

from offload.engine.formats.argument_language import Notation, choice, row
from offload.engine.formats.format import CALLS_LIMIT, MessageShape, Trigger, WrittenCall
from offload.engine.formats.json_calls import JsonBlock
from offload.engine.formats.scanner import Block, Opening
from offload.engine.formats.tools import Tool
from offload.language import Node, Text, Times

__all__ = ["Generic"]


class Generic:
    """{"name": NAME, "arguments": {...}}, or a list of such."""

    name = "generic"
    trigger = Trigger('{"name": "', only_first=True)
    markers: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ("<think>", "</think>")
    closing = ""
    call_ends_thought = False

    def matches(self, template: str) -> bool:
        """See ToolFormat. Any template will do."""
        return True

    def message_shape(self, template: str) -> MessageShape:
        """See ToolFormat."""
        return MessageShape(tools_by_template=False, calls_by_template=False, tool_role=False)

    def describe(self, tools: Sequence[Tool]) -> str:
        """See ToolFormat."""
        functions = [json.dumps(tool.offered()["function"], ensure_ascii=False) for tool in tools]
        return "\n".join((
            # no form to fill in: the smallest models copy its words into the arguments
            "Answer with one function call in JSON, or in words when none fits.", "Functions:", *functions,
        ))

    def language(self, tools: Sequence[Tool], *, parallel: bool) -> Node:
        """See ToolFormat."""
        notation = Notation(barred="<|")
        call = choice(*(
            row(Text(f'{{"name": "{tool.name}", "arguments": '), notation.arguments(tool), Text("}"))
            for tool in tools))
        if not parallel:
            return call
        more = Times(row(Text(", "), call), 0, CALLS_LIMIT - 1)
        return choice(call, row(Text("["), call, more, Text("]")))

    def write(self, calls: Sequence[WrittenCall]) -> str:
        """See ToolFormat."""
        written = [
            json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False) for call in calls]
        return written[0] if len(written) == 1 else f"[{', '.join(written)}]"

    def openings(self, tools: Sequence[Tool]) -> tuple[Opening, ...]:
        """See BlockFactory."""
        return (Opening("{", only_first=True), Opening("[", only_first=True))

    def block(self, opening: str, tools: Sequence[Tool]) -> Block:
        """See BlockFactory."""
        return JsonBlock(opening, tools)
