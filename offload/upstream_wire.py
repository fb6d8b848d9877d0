"""What an OpenAI-compatible server sends back, as events and facts. Pure.

Lenient in what it ignores (every field that is not used), strict in the types of those that are. Must not know sockets
or what was asked.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from offload.ports import FinishReason, Usage
from offload.upstream_errors import UpstreamBroken, UpstreamRefused

__all__ = [
    "CallPart", "Chunk", "Listed", "decode_chunk", "decode_models", "decode_rendered", "decode_tokens", "finish_word",
    "refusal",
]

T = TypeVar("T")

_REASON_LIMIT_CHARS = 200
_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop", "eos": "stop", "end_turn": "stop", "tool_calls": "tool_calls", "function_call": "tool_calls",
    "length": "length", "max_tokens": "length",
}


class _Cached(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Cached | None = None


class _Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct, frozen=True):
    index: int = 0
    function: _Function | None = None


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None        # llama.cpp, vLLM
    reasoning: str | None = None                # vLLM's newer name, Ollama
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct, frozen=True):
    delta: _Delta | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Line(msgspec.Struct, frozen=True):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None


class CallPart(msgspec.Struct, frozen=True):
    """More of the call with this number: its name comes once, its arguments as pieces of JSON."""

    index: int
    name: str
    arguments: str


class Chunk(msgspec.Struct, frozen=True):
    """One step of an answer: new text and thought, parts of calls, and at its end the server's word for why, and the
    counts."""

    text: str
    finish: str | None
    usage: Usage | None
    thought: str = ""
    calls: tuple[CallPart, ...] = ()


class Listed(msgspec.Struct, frozen=True):
    """A model as the server names it; 0 and "" for what it does not say."""

    name: str
    context_tokens: int = 0
    size_bytes: int = 0
    quantisation: str = ""


class _Model(msgspec.Struct, frozen=True):
    id: str
    max_model_len: int | None = None                # vLLM
    meta: dict[str, Any] | None = None              # llama.cpp: n_ctx, size, ftype


class _Models(msgspec.Struct, frozen=True):
    data: list[_Model]


class _Prompt(msgspec.Struct, frozen=True):
    prompt: str


class _Tokens(msgspec.Struct, frozen=True):
    count: int | None = None
    tokens: list[int] | None = None


_line_decoder = msgspec.json.Decoder(_Line)


def decode_chunk(data: bytes) -> Chunk:
    """One event of a streamed answer. Raises UpstreamBroken, or UpstreamRefused for an error in it."""
    try:
        line = _line_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UpstreamBroken("The upstream engine sent an event that is not understood.") from error
    if line.error is not None:
        raise UpstreamRefused(f"The upstream engine failed: {_reason(line.error)}")
    usage = None
    if line.usage is not None:
        details = line.usage.prompt_tokens_details
        cached = (details.cached_tokens if details else None) or 0
        usage = Usage(max(0, line.usage.prompt_tokens), max(0, cached), max(0, line.usage.completion_tokens))
    if not line.choices:
        return Chunk("", None, usage)
    first = line.choices[0]
    delta = first.delta
    if delta is None:
        return Chunk(first.text or "", first.finish_reason, usage)
    calls = tuple(
        CallPart(call.index, call.function.name or "", call.function.arguments or "")
        for call in delta.tool_calls or () if call.function is not None)
    thought = delta.reasoning_content or delta.reasoning or ""
    return Chunk(delta.content or "", first.finish_reason, usage, thought, calls)


def finish_word(word: str) -> FinishReason:
    """Their finish reason in our words. Raises UpstreamRefused when the answer was withheld or given up."""
    found = _FINISH.get(word)
    if found is None:
        raise UpstreamRefused(f"The upstream engine gave the answer up: {_reason(word)}")
    return found


def refusal(status: int, body: bytes) -> UpstreamRefused:
    """The error for a reply that is no answer. Never quotes more than a line of it."""
    if status in (401, 403):
        return UpstreamRefused(f"The upstream engine does not accept the key (HTTP {status}).")
    if 300 <= status < 400:
        return UpstreamRefused(f"The upstream engine points elsewhere (HTTP {status}), which is not followed.")
    try:
        said: Any = msgspec.json.decode(body)
        reason = _reason(said.get("error", said.get("detail", said)) if isinstance(said, dict) else said)
    except (msgspec.DecodeError, UnicodeDecodeError):
        reason = "no reason given"
    return UpstreamRefused(f"The upstream engine refused the request (HTTP {status}): {reason}")


def decode_models(body: bytes) -> list[Listed]:
    """The models it has. Raises UpstreamBroken."""
    return [
        Listed(
            model.id, max(0, model.max_model_len or _number(model.meta, "n_ctx")), _number(model.meta, "size"),
            str((model.meta or {}).get("ftype", "")))
        for model in _decode(body, _Models).data if model.id
    ]


def decode_rendered(body: bytes) -> str:
    """The rendered prompt."""
    return _decode(body, _Prompt).prompt


def decode_tokens(body: bytes) -> int:
    """The count."""
    found = _decode(body, _Tokens)
    return found.count if found.count is not None else len(found.tokens or [])


def _decode(body: bytes, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UpstreamBroken("The upstream engine's reply is not understood.") from error


def _number(meta: Mapping[str, Any] | None, key: str) -> int:
    value = (meta or {}).get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _reason(said: Any) -> str:
    """A short line out of an error object; control characters made visible."""
    if isinstance(said, dict):
        said = said.get("message", said)
    line = "".join(one if one.isprintable() else " " for one in str(said))
    return line[:_REASON_LIMIT_CHARS]
