"""Which fields of which frames hold free text, so that the egress guard can cover every one of them.

A text field that is bounded by a pattern or an enumeration is no free text. A test walks every frame type and fails on
a free text that stands in no mapping here. Must not know how the guard decides.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from protocol.frames.inference import InferRequest, PromptParts, PromptTokens, TokenFrame, ToolCallFrame
from protocol.frames.mail import Mail
from protocol.frames.query import Answer, Query

__all__ = ["FREE_TEXT_FIELDS", "content_texts", "has_opaque_content"]

FREE_TEXT_FIELDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "PastCall": ("arguments_json",),
    "Part": ("text", "thought"),
    "ToolOffer": ("description", "params_json"),
    "InferRequest": ("text_so_far", "stop", "thought_so_far"),
    "TokenFrame": ("text", "thought"),
    "ToolCallFrame": ("arguments_json",),
    "Query": ("text",),
    "Passage": ("title", "text", "folder"),
    "Mail": ("body",),
})
"""Struct name -> its free-text fields. The functions below return exactly these."""


def content_texts(frame: msgspec.Struct) -> tuple[str, ...]:
    """Every non-empty free text of a frame, in the order of its fields; () for control frames.

    For an InferRequest: the prompt's parts (text, arguments of calls, thought), then text so far, then stop strings,
    then each tool's description and schema, then the thought so far.
    """
    read = _READERS.get(type(frame))
    return tuple(text for text in read(frame) if text) if read else ()


def has_opaque_content(frame: msgspec.Struct) -> bool:
    """True for a request that carries words as token ids, which no text scan can read. The guard must know their text
    itself.
    """
    return isinstance(frame, InferRequest) and (isinstance(frame.prompt, PromptTokens) or bool(frame.token_ids_so_far))


def _infer_request(frame: InferRequest) -> tuple[str, ...]:
    prompt = frame.prompt.parts if isinstance(frame.prompt, PromptParts) else ()
    parts = tuple(
        text for part in prompt for text in (part.text, *(call.arguments_json for call in part.calls), part.thought))
    tools = tuple(text for tool in frame.tools for text in (tool.description, tool.params_json))
    return (*parts, frame.text_so_far, *frame.stop, *tools, frame.thought_so_far)


def _answer(frame: Answer) -> tuple[str, ...]:
    return tuple(text for passage in frame.passages for text in (passage.title, passage.text, passage.folder))


def _token(frame: TokenFrame) -> tuple[str, ...]:
    return (frame.text, frame.thought)


def _tool_call(frame: ToolCallFrame) -> tuple[str, ...]:
    return (frame.arguments_json,)


def _query(frame: Query) -> tuple[str, ...]:
    return (frame.text,)


def _mail(frame: Mail) -> tuple[str, ...]:
    return (frame.body,)


_READERS: Final[Mapping[type[msgspec.Struct], Callable[[Any], tuple[str, ...]]]] = MappingProxyType({
    InferRequest: _infer_request,
    TokenFrame: _token,
    ToolCallFrame: _tool_call,
    Query: _query,
    Answer: _answer,
    Mail: _mail,
})
