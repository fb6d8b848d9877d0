"""Calls in a code fence, as Python or JSON: Gemma 2 and 3, whose template knows no tools. Must not know others."""

import json
from collections.abc import Sequence

from offload.engine.formats.argument_language import Notation, choice, row
from offload.engine.formats.coercion import RawCall
from offload.engine.formats.format import CALLS_LIMIT, MessageShape, Trigger, WrittenCall
from offload.engine.formats.json_calls import JsonBlock, JsonExtent, calls_from_json
from offload.engine.formats.python_calls import (
    PythonBlock,
    bare_openings,
    call_language,
    calls_from_python,
    write_call,
)
from offload.engine.formats.scanner import Block, Opening
from offload.engine.formats.tools import Tool
from offload.language import Node, Text, Times

__all__ = ["Gemma"]

_FENCE = "```"
_OPENING, _CLOSING = "```tool_code", "\n```"
_JSON_OPENING = "```json"
_NOTATION = Notation(("True", "False", "None"), barred="<|")


class Gemma:
    """```tool_code\\nNAME(KEY=VALUE, ...)\\n```, several in a list."""

    name = "gemma"
    trigger = Trigger(_OPENING)
    markers: tuple[str, ...] = ()
    reserved = (_OPENING, "```tool_output")
    closing = _CLOSING
    call_ends_thought = False

    def matches(self, template: str) -> bool:
        """See ToolFormat."""
        return "<start_of_turn>" in template

    def message_shape(self, template: str) -> MessageShape:
        """See ToolFormat."""
        return MessageShape(
            tools_by_template=False, calls_by_template=False, tool_role=False, alternating=True,
            system_role="System role not supported" not in template and "system" in template)

    def describe(self, tools: Sequence[Tool]) -> str:
        """See ToolFormat."""
        functions = [json.dumps(tool.offered()["function"], ensure_ascii=False) for tool in tools]
        return "\n".join((
            "You can call these functions:", *functions,
            f"To call one, answer with nothing but its call, such as:\n{_OPENING}\nname(argument=\"value\"){_CLOSING}",
        ))

    def language(self, tools: Sequence[Tool], *, parallel: bool) -> Node:
        """See ToolFormat."""
        call = choice(*(call_language(tool, _NOTATION) for tool in tools))
        listed = row(Text("["), call, Times(row(Text(", "), call), 0, CALLS_LIMIT - 1), Text("]"))
        return row(Text(f"{_OPENING}\n"), choice(call, listed) if parallel else call, Text(_CLOSING))

    def write(self, calls: Sequence[WrittenCall]) -> str:
        """See ToolFormat."""
        written = ", ".join(write_call(call, _NOTATION) for call in calls)
        return f"{_OPENING}\n{written if len(calls) == 1 else f'[{written}]'}{_CLOSING}"

    def openings(self, tools: Sequence[Tool]) -> tuple[Opening, ...]:
        """See BlockFactory."""
        return (
            Opening(_OPENING), Opening(_JSON_OPENING, only_first=True), Opening("{", only_first=True),
            *bare_openings(tools))

    def block(self, opening: str, tools: Sequence[Tool]) -> Block:
        """See BlockFactory."""
        if opening in {_OPENING, _JSON_OPENING}:
            return _FenceBlock(tools, any_name=opening == _OPENING)
        return JsonBlock(opening, tools) if opening == "{" else PythonBlock(opening, "", tools)


class _FenceBlock:
    """Up to the closing fence: Python's notation or JSON."""

    def __init__(self, tools: Sequence[Tool], *, any_name: bool) -> None:
        self._known = frozenset(tool.name for tool in tools)
        self._any_name = any_name
        self._text: list[str] = []
        self._extent = JsonExtent("\"'")
        self._tail = ""
        self._ended = False

    def step(self, char: str) -> int | None:
        """See scanner.Block."""
        self._text.append(char)
        self._tail = (self._tail + char)[-len(_CLOSING):]
        self._extent.step(char)
        plain = not self._extent.in_string and self._extent.depth <= 0
        if self._tail == _CLOSING or (self._tail.endswith(_FENCE) and plain):
            self._ended = True
            return 0
        return None

    @property
    def name(self) -> str:
        """See scanner.Block. Known at the end only."""
        return ""

    def calls(self, *, cut: bool) -> tuple[RawCall, ...]:
        """See scanner.Block."""
        if not self._ended and (cut or self._extent.in_string or self._extent.depth > 0):
            return ()
        text = "".join(self._text)
        text = text.removesuffix(_FENCE).strip() if self._ended else text.strip()
        calls = calls_from_python(text) if self._any_name else calls_from_json(text)
        if not self._any_name and any(call.name not in self._known for call in calls):
            return ()
        if self._ended:
            return calls
        return tuple(
            RawCall(call.name, call.arguments, call.positional, False, (*call.repairs, "closing")) for call in calls)
