"""A peer's request in the words of an engine. Pure. Must not know streams, grants' signatures or engines."""

import math
import re
from dataclasses import replace

from offload.ports import ChatPrompt, GenerateRequest, Message, ModelInfo, PastCall, TokenPrompt, ToolCall, ToolOffer
from offload.turns import joined_turns
from protocol import limits
from protocol.content import content_texts
from protocol.grants import Grant
from protocol.inference import InferRequest, Output, Part, PromptTokens

__all__ = ["engine_request", "estimate_tokens", "forecast_s", "in_words", "is_sendable", "outputs"]

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")      # protocol.fields.ToolName
_SHOWN_CHARS = 4096
_LONGEST_FORECAST_S = 86_400        # beyond a day it is worth nothing


def forecast_s(expected_s: float | None) -> int | None:
    """When the turn of one who waits may come, as told to a peer: in whole seconds, never more than a day."""
    return None if expected_s is None else min(_LONGEST_FORECAST_S, max(1, math.ceil(expected_s)))


def estimate_tokens(request: InferRequest) -> int:
    """About four characters a token; exact for token ids. The engine's own count decides in the end."""
    if isinstance(request.prompt, PromptTokens):
        return len(request.prompt.token_ids) + len(request.token_ids_so_far)
    chars = sum(len(text) for text in content_texts(request)) - sum(len(stop) for stop in request.stop)
    return chars // 4 + 1


def engine_request(request: InferRequest, peer_id: str, model: ModelInfo, grant: Grant) -> GenerateRequest:
    """The same for an engine, in this peer's name and within its grant."""
    prompt: ChatPrompt | TokenPrompt
    if isinstance(request.prompt, PromptTokens):
        prompt = TokenPrompt(request.prompt.token_ids)
    else:
        prompt = ChatPrompt(joined_turns(_message(part) for part in request.prompt.parts))
    return GenerateRequest(
        request_id=f"{peer_id}/{request.request_id.hex()}",
        prompt=prompt,
        principal=peer_id,
        model=model.digest,
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        seed=request.seed or 0,
        stop=request.stop,
        lane=request.lane,
        text_so_far=request.text_so_far,
        token_ids_so_far=request.token_ids_so_far,
        context_limit=grant.max_context,
        tools=tuple(ToolOffer(tool.name, tool.description, tool.params_json) for tool in request.tools),
        tool_choice=request.tool_choice,
        named_tool=request.named_tool,
        parallel_calls=request.parallel_calls,
        thinking_tokens=request.thinking_tokens,
        thought_so_far=request.thought_so_far,
        calls_so_far=request.calls_so_far,
    )


def outputs(text: str, token_ids: tuple[int, ...], thought: str) -> list[Output]:
    """What a piece of an answer is on the wire: one frame, or several where it is long because it was held back (what
    might have become a call). None for nothing."""
    if max(len(text), len(thought)) <= limits.MAX_TOKEN_TEXT_CHARS:
        return [Output(text, len(token_ids), token_ids, thought)] if text or token_ids or thought else []
    found = [Output("", 0, (), part) for part in _parts(thought)] + [Output(part, 0) for part in _parts(text)]
    return [replace(found[0], tokens=len(token_ids), token_ids=token_ids), *found[1:]]


def _parts(text: str) -> list[str]:
    size = limits.MAX_TOKEN_TEXT_CHARS
    return [text[at:at + size] for at in range(0, len(text), size)]


def is_sendable(call: ToolCall) -> bool:
    """Whether a call fits into a frame."""
    return bool(_NAME.match(call.name)) and len(call.arguments) <= limits.MAX_TOOL_ARGUMENT_CHARS


def in_words(call: ToolCall) -> str:
    """A call that fits into no frame, as text."""
    return f"{call.name}({call.arguments})"[:_SHOWN_CHARS]


def _message(part: Part) -> Message:
    calls = tuple(PastCall(call.name, call.arguments_json, call.call_id) for call in part.calls)
    return Message(part.role, part.text, calls, part.call_id, part.thought)
