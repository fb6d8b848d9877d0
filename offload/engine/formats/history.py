"""A conversation with calls as messages that a model's template can take, whatever went wrong in it before.

Bad calls of the past are mended or become text, results without a call stay readable, and no content can forge a call,
a result or a thought. Must not know how a template is rendered.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from offload.engine.formats.format import MessageShape, ToolFormat, WrittenCall
from offload.engine.formats.loose_values import read_json, sound
from offload.engine.formats.tools import Tool

__all__ = ["PastCall", "Rendering", "Turn", "prepare_messages"]

_ZERO_WIDTH_SPACE = "\u200b"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,63}\Z")
_NOTHING_SAID = "(...)"
_ROLES = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool",
    "function": "tool", "ipython": "tool",
}


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call of an earlier turn; arguments as they were kept, a mapping or the text of one."""

    name: str
    arguments: Mapping[str, Any] | str | None = None
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. call_id: for a tool's result, the call that it answers."""

    role: str
    content: str | None = ""
    reasoning: str = ""
    calls: tuple[PastCall, ...] = ()
    call_id: str = ""
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Rendering:
    """The arguments of a template: messages=, tools= (None for none) and more by name."""

    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn whose calls are all sound."""

    role: str
    content: str
    reasoning: str = ""
    calls: tuple[WrittenCall, ...] = ()
    ids: tuple[str, ...] = ()
    call_id: str = ""
    tool: str = ""


def prepare_messages(
    turns: Iterable[Turn], source: ToolFormat, template: str, tools: Sequence[Tool] = (), *,
    control_texts: Sequence[str] = (), thinking: bool = False,
) -> Rendering:
    """What to give the template. control_texts: the model's control tokens, broken up in every content.

    Never raises for what a history holds.
    """
    shape = source.message_shape(template)
    guard = _Guard((*control_texts, *source.reserved))
    safe_tools = tuple(
        replace(tool, description=guard.text(tool.description), parameters=guard.value(dict(tool.parameters)))
        for tool in tools)
    known = [_sound(turn, guard) for turn in turns]
    if shape.one_call:
        known = _one_call_each(known)
    known = [_lowered(turn, source, shape, known) for turn in known]
    if safe_tools and not shape.tools_by_template:
        known.insert(0, _Turn("system", source.describe(safe_tools)))
    known = _with_one_system(known, shape)
    if shape.alternating:
        known = _alternating(known)
    offered = tuple(tool.offered() for tool in safe_tools) if safe_tools and shape.tools_by_template else None
    options = {**shape.options, "enable_thinking": thinking}
    return Rendering(tuple(_message(turn, shape) for turn in known), offered, options)


class _Guard:
    """Breaks up what could be taken for a control token or for the markup of a call, result or thought."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = sorted({text for text in texts if len(text) > 1}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text, harmless."""
        for one in self._texts:
            if one in text:
                text = text.replace(one, one[0] + _ZERO_WIDTH_SPACE + one[1:])
        return text

    def value(self, value: Any) -> Any:
        """A value of JSON with every text in it harmless."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        return value


def _sound(turn: Turn, guard: _Guard) -> _Turn:
    """The turn with calls that any template can print; a call that can't be mended becomes text."""
    calls: list[WrittenCall] = []
    ids: list[str] = []
    content = turn.content if isinstance(turn.content, str) else ""
    for past in turn.calls:
        arguments = _arguments(past.arguments)
        if arguments is None or not _NAME.match(str(past.name)):
            content = f"{content}\n{past.name}({past.arguments})".strip()
        else:
            calls.append(WrittenCall(past.name, guard.value(arguments)))
            ids.append(past.call_id)
    role = _ROLES.get(turn.role, "user")
    return _Turn(role, guard.text(content), guard.text(turn.reasoning), tuple(calls) if role == "assistant" else (),
        tuple(ids), turn.call_id, turn.tool)


def _arguments(kept: Mapping[str, Any] | str | None) -> dict[str, Any] | None:
    if isinstance(kept, str) and kept.strip():
        loose = read_json(kept)
        kept = loose.value if loose is not None else None
        if not isinstance(kept, Mapping):
            return None
    try:
        value = sound(kept or {})
        json.dumps(value)
    except (ValueError, TypeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _one_call_each(turns: Sequence[_Turn]) -> list[_Turn]:
    """Turns with several calls as one turn for each, every call followed by its result."""
    found: list[_Turn] = []
    waiting = list(turns)
    while waiting:
        turn = waiting.pop(0)
        if len(turn.calls) < 2:
            found.append(turn)
            continue
        results: list[_Turn] = []
        while waiting and waiting[0].role == "tool":
            results.append(waiting.pop(0))
        for number, (call, call_id) in enumerate(zip(turn.calls, turn.ids, strict=True)):
            found.append(replace(turn, content="" if number else turn.content, calls=(call,), ids=(call_id,)))
            match = next((one for one in results if one.call_id == call_id), None)
            if match is not None:
                results.remove(match)
                found.append(match)
        found += results
    return found


def _lowered(turn: _Turn, source: ToolFormat, shape: MessageShape, turns: Sequence[_Turn]) -> _Turn:
    """Calls as content and results as a user's words, where the template knows neither."""
    if turn.role == "tool" and not shape.tool_role:
        name = turn.tool or next((
            call.name for one in turns for call, call_id in zip(one.calls, one.ids, strict=False)
            if call_id and call_id == turn.call_id), "")
        return replace(turn, role="user", content=f"Result of {name or 'the call'}:\n{turn.content}")
    if turn.calls and not shape.calls_by_template:
        written = source.write(turn.calls)
        return replace(turn, content=f"{turn.content}\n{written}".strip(), calls=(), ids=())
    return turn


def _with_one_system(turns: Sequence[_Turn], shape: MessageShape) -> list[_Turn]:
    """All system turns as one in front; in front of the first user turn's words where there is no such role."""
    texts = [turn.content for turn in turns if turn.role == "system" and turn.content]
    rest = [turn for turn in turns if turn.role != "system"]
    if not texts:
        return rest
    text = "\n\n".join(texts)
    if shape.system_role:
        return [_Turn("system", text), *rest]
    if rest and rest[0].role == "user":
        return [replace(rest[0], content=f"{text}\n\n{rest[0].content}"), *rest[1:]]
    return [_Turn("user", text), *rest]


def _alternating(turns: Sequence[_Turn]) -> list[_Turn]:
    """User and assistant in turn, the user first."""
    found: list[_Turn] = []
    for turn in turns:
        speaks = [one for one in found if one.role != "system"]
        if speaks and speaks[-1].role == turn.role:
            found[-1] = replace(turn, content=f"{found[-1].content}\n\n{turn.content}")
        elif not speaks and turn.role == "assistant":
            found += [_Turn("user", _NOTHING_SAID), turn]
        else:
            found.append(turn)
    return found


def _message(turn: _Turn, shape: MessageShape) -> dict[str, Any]:
    message: dict[str, Any] = {"role": turn.role, "content": turn.content}
    if turn.reasoning and turn.role == "assistant" and shape.reasoning_key:
        message[shape.reasoning_key] = turn.reasoning
    if turn.calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": dict(call.arguments)}}
            for call, call_id in zip(turn.calls, turn.ids, strict=True)]
    if turn.role == "tool":
        message["tool_call_id"] = turn.call_id
        if turn.tool:
            message["name"] = turn.tool
    return message
