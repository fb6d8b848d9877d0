"""Calls as tags with name attributes: MiniCPM5. Must not know other formats."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from offload.engine.deltas import Repair
from offload.engine.formats.argument_language import (
    CONTROL_CHARS,
    STRING_LIMIT_CHARS,
    choice,
    lengths,
    members,
    row,
)
from offload.engine.formats.coercion import RawCall
from offload.engine.formats.format import CALLS_LIMIT, MessageShape, Trigger, WrittenCall
from offload.engine.formats.qwen_xml import written_value
from offload.engine.formats.scanner import NOT_A_CALL, Block, Opening
from offload.engine.formats.tools import Tool
from offload.language import Node, Text, Times, Unicode

__all__ = ["MiniCpm5"]

_OPENING, _CLOSING = '<function name="', "</function>"
_PARAMETER, _END_OF_VALUE = '<param name="', "</param>"
_RAW, _END_OF_RAW = "<![CDATA[", "]]>"
_NAME_CHARS = 96
_TAIL_CHARS = 32
_NEVER = CONTROL_CHARS.replace("\n", "").replace("\t", "")
_PLAIN = Unicode(_NEVER + "\n<&")
_IN_RAW = choice(Unicode(_NEVER + "]"), row(Times(Text("]"), 1, 8), Unicode(_NEVER + "]>")))
_NEEDS_RAW = re.compile(r"[<&\n]")


class MiniCpm5:
    """<function name="NAME"><param name="KEY">VALUE</param></function>, values with markup as CDATA."""

    name = "minicpm5"
    trigger = Trigger(_OPENING)
    markers: tuple[str, ...] = ("<function", "<param", _CLOSING, _END_OF_VALUE, "<think>", "</think>")
    reserved = (
        "<function", _CLOSING, "<param", _END_OF_VALUE, "<tool_response>", "</tool_response>", "<tool_sep>",
        "<tool_def_sep>", "<think>", "</think>")
    closing = _CLOSING
    call_ends_thought = False

    def matches(self, template: str) -> bool:
        """See ToolFormat."""
        return all(mark in template for mark in ("Tool usage guidelines:", _OPENING, _PARAMETER))

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
        return "\n".join(
            f'{_OPENING}{call.name}">'
            + "".join(f'{_PARAMETER}{key}">{_text(value)}{_END_OF_VALUE}' for key, value in call.arguments.items())
            + _CLOSING for call in calls)

    def openings(self, tools: Sequence[Tool]) -> tuple[Opening, ...]:
        """See BlockFactory."""
        return (Opening(_OPENING),)

    def block(self, opening: str, tools: Sequence[Tool]) -> Block:
        """See BlockFactory."""
        return _ParamBlock()


def _call(tool: Tool) -> Node:
    pairs = []
    for key, schema in tool.properties.items():
        text = _plain_or_raw(*lengths(schema, "minLength", "maxLength", STRING_LIMIT_CHARS))
        value = written_value(schema, tool.parameters, text)
        pairs.append((row(Text(f'{_PARAMETER}{key}">'), value, Text(_END_OF_VALUE)), key in tool.required))
    return row(Text(f'{_OPENING}{tool.name}">'), members(pairs, ""), Text(_CLOSING))


@lru_cache(maxsize=256)
def _plain_or_raw(least: int, most: int) -> Node:
    return choice(Times(_PLAIN, least, most), row(Text(_RAW), Times(_IN_RAW, least, most), Text(_END_OF_RAW)))


def _text(value: Any) -> str:
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(value, ensure_ascii=False)
    text = str(value)
    return f"{_RAW}{text}{_END_OF_RAW}" if isinstance(value, str) and _NEEDS_RAW.search(text) else text


class _ParamBlock:
    """One function, from behind `<function name="` on."""

    def __init__(self) -> None:
        self._state: Literal["function", "body", "parameter", "value", "ended"] = "function"
        self._mark: list[str] = []
        self._body: list[str] = []
        self._value: list[str] = []
        self._tail = ""
        self._key = ""
        self._name = ""
        self._arguments: dict[str, Any] = {}
        self._repairs: list[Repair] = []

    def step(self, char: str) -> int | None:
        """See scanner.Block."""
        self._tail = (self._tail + char)[-_TAIL_CHARS:]
        match self._state:
            case "function" | "parameter":
                return self._in_mark(char)
            case "body":
                return self._in_body(char)
            case _:
                return self._in_value(char)

    def _in_mark(self, char: str) -> int | None:
        if not self._tail.endswith('">'):
            self._mark.append(char)
            return NOT_A_CALL if len(self._mark) > _NAME_CHARS or char in "\n<" else None
        name = "".join(self._mark).removesuffix('"').strip()
        self._mark.clear()
        if self._state == "function":
            self._name, self._state = name, "body"
        else:
            self._key, self._state = name, "value"
            self._value.clear()
        return None if name else NOT_A_CALL

    def _in_body(self, char: str) -> int | None:
        self._body.append(char)
        tag = next((tag for tag in (_PARAMETER, _CLOSING) if self._tail.endswith(tag)), None)
        if tag is None:
            return None
        if "".join(self._body)[:-len(tag)].strip():
            self._repairs.append("shape")
        self._body.clear()
        self._state = "parameter" if tag == _PARAMETER else "ended"
        return 0 if tag == _CLOSING else None

    def _in_value(self, char: str) -> int | None:
        self._value.append(char)
        if char != ">":
            return None
        raw = "".join(self._value[:len(_RAW)]) == _RAW
        if self._tail.endswith(_END_OF_RAW + _END_OF_VALUE if raw else _END_OF_VALUE):
            self._keep(_END_OF_VALUE, raw=raw)
            self._state = "body"
        elif not raw and self._tail.endswith(_CLOSING):
            self._keep(_CLOSING, raw=False)
            self._repairs.append("closing")
            self._state = "ended"
            return 0
        return None

    def _keep(self, tag: str, *, raw: bool) -> None:
        value = "".join(self._value)[:-len(tag)]
        self._arguments[self._key] = value[len(_RAW):-len(_END_OF_RAW)] if raw else value

    @property
    def name(self) -> str:
        """See scanner.Block."""
        return self._name

    def calls(self, *, cut: bool) -> tuple[RawCall, ...]:
        """See scanner.Block."""
        if self._state not in {"ended", "body"} or (self._state == "body" and cut):
            return ()
        repairs = self._repairs if self._state == "ended" else [*self._repairs, "closing"]
        return (RawCall(self._name, self._arguments, written=True, repairs=tuple(dict.fromkeys(repairs))),)
