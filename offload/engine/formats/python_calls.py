"""Calls in Python's notation: where a list of them ends in a stream, what it says, and how it is written.

Used by the formats that put such lists between markers, in a fence or bare. Must not know which one.
"""

import re
from collections.abc import Sequence

from offload.engine.formats.argument_language import Notation, members, row
from offload.engine.formats.coercion import RawCall
from offload.engine.formats.format import WrittenCall
from offload.engine.formats.json_calls import JsonExtent, calls_from_json
from offload.engine.formats.loose_values import read_python_calls
from offload.engine.formats.scanner import Opening
from offload.engine.formats.tools import Tool
from offload.language import Node, Text

__all__ = ["PythonBlock", "bare_openings", "call_language", "calls_from_python", "write_call"]

_NAME_SEARCH_CHARS = 160
_NAMED = re.compile(r"\s*\[?\s*(?:print\()?([A-Za-z_][\w.\-]*)\(", re.ASCII)
_QUOTES = "\"'"


class PythonBlock:
    """A list of calls: up to an ending text, or bare up to its last bracket."""

    def __init__(self, opening: str, ending: str, tools: Sequence[Tool]) -> None:
        """opening: what already stands of a bare list; ending: what closes the block, empty for a bare one."""
        self._ending = ending
        self._known = frozenset(tool.name for tool in tools)
        self._text: list[str] = []
        self._extent = JsonExtent(_QUOTES)
        self._ended = False
        self._tail = ""
        self._name = ""
        for char in opening:
            self.step(char)

    def step(self, char: str) -> int | None:
        """See scanner.Block."""
        self._text.append(char)
        self._tail = (self._tail + char)[-max(len(self._ending), 1):]
        closed = self._extent.step(char)
        if (self._tail == self._ending) if self._ending else closed:
            self._ended = True
            return 0
        return None

    @property
    def name(self) -> str:
        """See scanner.Block."""
        if not self._name and 0 < len(self._text) < _NAME_SEARCH_CHARS and self._text[-1] == "(":
            found = _NAMED.match("".join(self._text))
            name = found.group(1) if found else ""
            self._name = name if name in self._known else ""
        return self._name

    def calls(self, *, cut: bool) -> tuple[RawCall, ...]:
        """See scanner.Block."""
        complete = self._ended or (self._extent.depth <= 0 and not self._extent.in_string)
        if cut and not complete:
            return ()
        text = "".join(self._text)
        calls = calls_from_python(text.removesuffix(self._ending) if self._ending else text)
        if not self._ended:
            return tuple(
                RawCall(call.name, call.arguments, call.positional, False, (*call.repairs, "closing"))
                for call in calls)
        return calls


def calls_from_python(text: str) -> tuple[RawCall, ...]:
    """The calls in a text; JSON objects in their place are a repair."""
    found = read_python_calls(text)
    if found is not None:
        return tuple(
            RawCall(call.name, call.arguments, call.positional, repairs=call.repairs) for call in found)
    return tuple(
        RawCall(call.name, call.arguments, repairs=(*call.repairs, "shape"))
        for call in calls_from_json(text.strip()))


def bare_openings(tools: Sequence[Tool]) -> tuple[Opening, ...]:
    """The beginnings of a list without markers, only as the first thing of an answer."""
    return tuple(Opening(f"[{tool.name}(", only_first=True) for tool in tools)


def call_language(tool: Tool, notation: Notation) -> Node:
    """One call with named arguments."""
    pairs = [
        (row(Text(f"{key}="), notation.value(schema, tool.parameters)), key in tool.required)
        for key, schema in tool.properties.items()]
    return row(Text(f"{tool.name}("), members(pairs, ", "), Text(")"))


def write_call(call: WrittenCall, notation: Notation) -> str:
    """One call as text."""
    return f"{call.name}({', '.join(f'{key}={notation.literal(value)}' for key, value in call.arguments.items())})"
