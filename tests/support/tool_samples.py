"""Tools and calls that all formats are tried with, and how to run a parser over an output."""

from collections.abc import Iterable, Sequence
from itertools import cycle

from offload.engine.deltas import CallFinished, Delta, ReasoningDelta, TextDelta, ToolCall, joined
from offload.engine.formats.detection import FORMATS
from offload.engine.formats.format import ToolFormat
from offload.engine.formats.parser import AnswerParser
from offload.engine.formats.tools import Tool, read_tools

__all__ = ["TOOLS", "VALUES", "answer_of", "by_name", "calls_of", "parse", "raw_of", "thought_of"]

TOOLS: tuple[Tool, ...] = read_tools([
    {
        "name": "note_write", "description": "Write a note",
        "parameters": {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "pages": {"type": "integer", "minimum": 1},
                "share": {"type": "number"},
                "loud": {"type": "boolean"},
                "kind": {"type": "string", "enum": ["list", "plain text"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                "place": {
                    "type": "object",
                    "properties": {"room": {"type": "string"}, "floor": {"type": ["integer", "null"]}},
                    "required": ["room"],
                },
            },
            "required": ["text"],
        },
    },
    {"type": "function", "function": {"name": "clock_now", "description": "The time", "parameters": {}}},
    {
        "name": "calendar_list", "description": "Appointments",
        "parameters": {"type": "object", "properties": {"when": {"type": "string"}}, "required": ["when"]},
    },
])

VALUES: tuple[str, ...] = (
    "plain", "", "a < b", "<b>bold</b>", "two\nlines\n", "\n\nlead", 'say "hi"', "it's", "back\\slash", "tab\there",
    "größer ÄÖÜ ß", "漢字 🙂👩‍👧", "{not json}", "[1, 2", "12", "True", "null", "a, b; c)", "x=1", "```", "]]>", "a&b",
    "</b>", "<tool_call>", "</parameter>x", "trailing <",
)


def by_name(name: str) -> ToolFormat:
    """The format of this name."""
    return next(one for one in FORMATS if one.name == name)


def parse(parser: AnswerParser, text: str, sizes: Iterable[int] = (), *, cut: bool = False) -> list[Delta]:
    """The joined deltas of an output, fed whole or in pieces of these sizes over and over."""
    found: list[Delta] = []
    steps = cycle(tuple(sizes) or (len(text) or 1,))
    at = 0
    while at < len(text):
        size = next(steps)
        found += parser.feed(text[at:at + size])
        at += size
    return joined([*found, *parser.end(cut=cut)])


def raw_of(deltas: Sequence[Delta]) -> str:
    """All characters that the deltas account for."""
    return "".join(delta.raw for delta in deltas)


def answer_of(deltas: Sequence[Delta]) -> str:
    """The text of the answer."""
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def thought_of(deltas: Sequence[Delta]) -> str:
    """The text of the thoughts."""
    return "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))


def calls_of(deltas: Sequence[Delta]) -> list[ToolCall]:
    """The calls."""
    return [delta.call for delta in deltas if isinstance(delta, CallFinished)]
