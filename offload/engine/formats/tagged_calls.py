"""Blocks between <tool_call> tags, with either a JSON object or functions and parameters as tags inside.

Models of one habit now and then write the other: both are read, the other one as a repair. Must not know grammars.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

from offload.engine.deltas import Repair
from offload.engine.formats.coercion import RawCall
from offload.engine.formats.json_calls import JsonExtent, calls_from_json, name_in_json
from offload.engine.formats.loose_values import read_json
from offload.engine.formats.scanner import NOT_A_CALL, Block

__all__ = ["CLOSING", "FUNCTION", "OPENING", "FunctionBlock", "JsonTagBlock", "TaggedBlock"]

OPENING, CLOSING = "<tool_call>", "</tool_call>"
FUNCTION = "<function="
_TAIL_CHARS = 96
_NAME_CHARS = 96
_NAME_SEARCH_CHARS = 200
_SPACE_LIMIT_CHARS = 256
"""More space than this between tags ends a block."""
_UNCLOSED = re.compile(r"</function>\s{0,16}</tool_call>\Z")


class TaggedBlock:
    """Behind <tool_call>: waits for what comes inside, then lets the right reader go on."""

    def __init__(self, usual: Literal["json", "function"]) -> None:
        self._usual = usual
        self._inner: Block | None = None
        self._lead = ""
        self._repairs: list[Repair] = []

    def step(self, char: str) -> int | None:
        """See scanner.Block."""
        if self._inner is not None:
            return self._inner.step(char)
        if not self._lead and char.isspace():
            return None
        self._lead += char
        if self._lead in {"{", "["}:
            self._inner = JsonTagBlock()
            self._note("json")
            return self._inner.step(char)
        if self._lead == OPENING:
            self._lead = ""
            self._repairs.append("opening")
            return None
        if self._lead == FUNCTION:
            self._inner = FunctionBlock()
            self._note("function")
            return None
        return None if FUNCTION.startswith(self._lead) or OPENING.startswith(self._lead) else NOT_A_CALL

    def _note(self, found: str) -> None:
        if found != self._usual:
            self._repairs.append("shape")

    @property
    def name(self) -> str:
        """See scanner.Block."""
        return self._inner.name if self._inner is not None else ""

    def calls(self, *, cut: bool) -> tuple[RawCall, ...]:
        """See scanner.Block."""
        inner = self._inner.calls(cut=cut) if self._inner is not None else ()
        return with_repairs(inner, self._repairs)


class JsonTagBlock:
    """JSON up to </tool_call>; several objects in one block, or a bracket too many, are repairs."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._extent = JsonExtent()
        self._values = 0
        self._after = ""                # behind a complete value
        self._tail = ""
        self._closed = False
        self._name = ""

    def step(self, char: str) -> int | None:
        """See scanner.Block."""
        self._tail = (self._tail + char)[-len(CLOSING):]
        if self._after or (self._values and self._extent.depth == 0):
            return self._behind(char)
        self._text.append(char)
        if self._extent.step(char):
            self._values += 1
            self._extent = JsonExtent()
        elif self._tail == CLOSING and not self._extent.in_string:
            del self._text[-len(CLOSING):]
            self._closed = True
            return 0
        return None

    def _behind(self, char: str) -> int | None:
        """White space and the closing tag; another object, or a bracket too many, as a slip."""
        self._after += char
        rest = self._after.lstrip()
        if rest != CLOSING and CLOSING.startswith(rest) and len(self._after) <= _SPACE_LIMIT_CHARS:
            return None
        if rest == CLOSING:
            self._closed = True
            return 0
        if rest in {"{", "[", ",", ";", "}", "]"}:
            self._text += self._after
            self._after = ""
            if rest in {"{", "["}:
                self._extent.step(char)
            return None
        return len(self._after)

    @property
    def name(self) -> str:
        """See scanner.Block."""
        if not self._name and 0 < len(self._text) < _NAME_SEARCH_CHARS and self._text[-1] in ",}":
            self._name = name_in_json("".join(self._text))
        return self._name

    def calls(self, *, cut: bool) -> tuple[RawCall, ...]:
        """See scanner.Block."""
        open_value = self._extent.depth > 0 or self._extent.in_string or not self._values
        if open_value and not self._closed and (cut or self._extent.in_string):
            return ()
        repairs: list[Repair] = [] if self._closed else ["closing"]
        calls = calls_from_json("".join(self._text))
        return with_repairs(calls, repairs if len(calls) < 2 else [*repairs, "shape"])


class FunctionBlock:
    """Functions with parameters as tags, from behind `<function=` on.

    <function=NAME>\\n<parameter=KEY>\\nVALUE\\n</parameter>\\n</function>, any number of parameters and functions, then
    </tool_call>. A value is raw text over any number of lines; a closing tag inside it counts only when the call's
    next tag, or its end, follows.
    """

    def __init__(self, *, wrapped: bool = True) -> None:
        """wrapped: whether <tool_call> stood before."""
        self._state: Literal["function", "body", "parameter", "value", "behind_value", "behind_function"] = "function"
        self._mark: list[str] = []      # the name being read
        self._value: list[str] = []
        self._after = ""
        self._tail = ""
        self._key = ""
        self._body: list[str] = []      # between tags, where nothing should be
        self._functions: list[tuple[str, dict[str, Any]]] = []
        self._typed: set[int] = set()   # functions whose arguments came as JSON
        self._repairs: list[Repair] = [] if wrapped else ["opening"]
        self._closed = False

    def step(self, char: str) -> int | None:
        """See scanner.Block."""
        self._tail = (self._tail + char)[-_TAIL_CHARS:]
        match self._state:
            case "function" | "parameter":
                return self._in_mark(char)
            case "body":
                return self._in_body(char)
            case "value":
                return self._in_value(char)
            case "behind_value":
                return self._behind_value(char)
            case _:
                return self._behind_function(char)

    def _in_mark(self, char: str) -> int | None:
        if char != ">":
            self._mark.append(char)
            return NOT_A_CALL if len(self._mark) > _NAME_CHARS or char == "\n" else None
        name = "".join(self._mark).strip().strip("\"'")
        self._mark.clear()
        if self._state == "function":
            self._functions.append((name, {}))
            self._state = "body"
            self._body.clear()
        else:
            self._key, self._state = name, "value"
            self._value.clear()
        return None if name else NOT_A_CALL

    def _in_body(self, char: str) -> int | None:
        self._body.append(char)
        tag = next((tag for tag in ("<parameter=", "</function>", CLOSING) if self._tail.endswith(tag)), None)
        if char not in "=>" or tag is None:
            return None
        self._read_stray("".join(self._body)[:-len(tag)])
        self._state = "parameter" if tag == "<parameter=" else "behind_function"
        return self._end("closing") if tag == CLOSING else None

    def _read_stray(self, text: str) -> None:
        """Arguments as a JSON object where parameters should be; anything else is passed over."""
        self._body.clear()
        if not text.strip():
            return
        self._repairs.append("shape")
        loose = read_json(text)
        if loose is not None and isinstance(loose.value, dict) and not self._functions[-1][1]:
            self._functions[-1][1].update(loose.value)
            self._typed.add(len(self._functions) - 1)

    def _in_value(self, char: str) -> int | None:
        self._value.append(char)
        if char != ">":
            return None
        if self._tail.endswith("</parameter>"):
            self._state, self._after = "behind_value", ""
        elif unclosed := _UNCLOSED.search(self._tail):
            del self._value[-len(unclosed.group()):]
            self._keep()
            return self._end("closing")
        return None

    def _behind_value(self, char: str) -> int | None:
        self._after += char
        rest = self._after.lstrip()
        if rest in {"<parameter=", "</function>", CLOSING}:
            del self._value[-len("</parameter>"):]
            self._keep()
            self._state = "parameter" if rest == "<parameter=" else "behind_function"
            self._after = ""
            return self._end("closing") if rest == CLOSING else None
        awaited = any(tag.startswith(rest) for tag in ("<parameter=", "</function>", CLOSING))
        if awaited and len(self._after) <= _SPACE_LIMIT_CHARS:
            return None
        self._value += self._after      # the closing tag was part of the value
        self._state, self._after = "value", ""
        return None

    def _behind_function(self, char: str) -> int | None:
        self._after += char
        rest = self._after.lstrip()
        if rest == CLOSING:
            return self._end(None)
        if rest == FUNCTION:
            self._repairs.append("shape")
            self._state, self._after = "function", ""
            return None
        awaited = CLOSING.startswith(rest) or FUNCTION.startswith(rest)
        return None if awaited and len(self._after) <= _SPACE_LIMIT_CHARS else len(self._after)

    def _keep(self) -> None:
        """The template puts one line break on either side of a value."""
        value = "".join(self._value)
        self._functions[-1][1][self._key] = value.removeprefix("\n").removesuffix("\n")
        self._value.clear()

    def _end(self, repair: Repair | None) -> int:
        self._closed = True
        if repair:
            self._repairs.append(repair)
        return 0

    @property
    def name(self) -> str:
        """See scanner.Block."""
        return self._functions[0][0] if self._functions else ""

    def calls(self, *, cut: bool) -> tuple[RawCall, ...]:
        """See scanner.Block."""
        repairs = list(self._repairs)
        if self._state in {"function", "parameter", "value"} and not self._closed:
            return ()
        if self._state == "behind_value" and not self._closed:
            if cut:
                return ()
            del self._value[-len("</parameter>"):]
            self._keep()
        if self._state == "body" and cut and not self._closed:
            return ()
        if not self._closed:
            repairs.append("closing")
        raw = [
            RawCall(name, values, written=number not in self._typed)
            for number, (name, values) in enumerate(self._functions)]
        return with_repairs(tuple(raw), repairs)


def with_repairs(calls: Sequence[RawCall], repairs: Sequence[Repair]) -> tuple[RawCall, ...]:
    """The calls with more repairs named."""
    return tuple(
        RawCall(call.name, call.arguments, call.positional, call.written,
            tuple(dict.fromkeys((*call.repairs, *repairs))))
        for call in calls)
