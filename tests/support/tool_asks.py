"""Tools, calls and templates for tests with a scripted model, and what is read off an answer's events."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine_asks import asked, collect, running_engine
from scripted_model import write_scripts

from offload.model_host import HostLimits
from offload.ports import Event, Finished, GenerateRequest, Piece, ToolCall, ToolOffer

__all__ = [
    "CLOCK", "CLOCK_CALL", "HERMES", "LIMITS", "MARKERS", "NOTE", "NOTE_CALL", "QWEN", "TOOLS", "answers", "calls_of",
    "end_of", "ids_of", "thought_of", "tool_request",
]

LIMITS = HostLimits(context_tokens=4096, slots=1)
# The marks and the shape of Qwen3.5's template, in as few words as possible.
QWEN = (
    "{% if tools %}<|im_start|>system\n<tool_call> <function= <parameter=\n"
    "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n<function={{ c.function.name }}>\n"
    "{% for k, v in c.function.arguments | items %}<parameter={{ k }}>\n{{ v }}\n</parameter>\n{% endfor %}"
    "</function>\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n<think>\n{% if not enable_thinking %}\n</think>\n\n{% endif %}"
)
HERMES = (
    "{% if tools %}<tool_call>{{ tools | tojson }}{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
MARKERS = ("<tool_call>", "</tool_call>", "<think>", "</think>")
CLOCK = ToolOffer("clock_now", "The time", '{"type": "object", "properties": {}}')
NOTE = ToolOffer("note_write", "Write a note", json.dumps({
    "type": "object", "required": ["text"],
    "properties": {
        "text": {"type": "string", "maxLength": 40}, "pages": {"type": "integer"}, "loud": {"type": "boolean"}},
}))
TOOLS = (CLOCK, NOTE)
CLOCK_CALL = "<tool_call>\n<function=clock_now>\n</function>\n</tool_call>"
NOTE_CALL = (
    "<tool_call>\n<function=note_write>\n<parameter=text>\nbuy <b>milk</b>\nand eggs ☕\n</parameter>\n"
    "<parameter=pages>\n2\n</parameter>\n<parameter=loud>\ntrue\n</parameter>\n</function>\n</tool_call>")


def tool_request(**more: Any) -> GenerateRequest:
    return asked("What time is it?", **({"tools": TOOLS, "max_tokens": 400} | more))


async def answers(
    folder: Path, *pairs: tuple[GenerateRequest, str], template: str = QWEN,
    limits: HostLimits = LIMITS, **tokens: Sequence[str],
) -> list[list[Event]]:
    """What a model that would write these scripts makes of these requests, one after the other."""
    requests = write_scripts(folder / "model.gguf", pairs, template=template, **tokens)
    async with running_engine([folder], limits=limits) as engine:
        return [await collect(engine, request) for request in requests]


def calls_of(events: Sequence[Event]) -> list[ToolCall]:
    return [event for event in events if isinstance(event, ToolCall)]


def thought_of(events: Sequence[Event]) -> str:
    return "".join(event.thought for event in events if isinstance(event, Piece))


def ids_of(events: Sequence[Event]) -> tuple[int, ...]:
    return tuple(token for event in events if isinstance(event, Piece) for token in event.token_ids)


def end_of(events: Sequence[Event]) -> Finished:
    finished = events[-1]
    assert isinstance(finished, Finished), finished
    return finished
