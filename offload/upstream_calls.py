"""What is asked of an OpenAI-compatible server, as paths and JSON. Pure.

Differences between servers stand here: who can go on from a half-written answer and how, and under which name a grammar
is given. Measured with llama.cpp's own server: it repeats a half-written assistant message in its answer, so an answer
that goes on is asked for as plain text behind the rendered prompt; and its own reading of a schema allows white space,
which a small model writes until its tokens are used up, so it gets our grammar, which has none. Must not know sockets,
keys or model files.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from offload.errors import BadGrammar, BadPrompt, BadRequest, LaneUnsupported
from offload.language import to_gbnf
from offload.ports import ChatPrompt, GenerateRequest, TokenPrompt
from offload.schema import BeyondAutomaton, read_schema, schema_language

__all__ = ["Call", "ServerKind", "chat_call", "rendered_call", "text_call", "tokens_call"]

ServerKind = Literal["llama.cpp", "vllm", "ollama", "other"]

_THINKERS = frozenset({"llama.cpp", "vllm"})     # these take arguments for the model's template
_MOST_STOPS_ELSEWHERE = 4       # the interface's own limit; llama.cpp's server and vLLM take any number


class Call(msgspec.Struct, frozen=True):
    """One request to the server: its path behind the prefix, and its JSON."""

    path: str
    body: bytes


def chat_call(request: GenerateRequest, model: str, kind: ServerKind) -> Call:
    """A chat. Raises RequestRefused leaves for what this server or interface can't do, BadGrammar for a bad schema."""
    assert isinstance(request.prompt, ChatPrompt)
    messages = _messages(request.prompt, kind)
    more = {**_tools(request), **_thinking(request, kind)}
    if request.schema:
        schema = read_schema(request.schema)
        grammar = _grammar_of(schema) if kind == "llama.cpp" else None
        wanted = {"name": "answer", "schema": schema, "strict": True}
        more = {"grammar": grammar} if grammar else {
            "response_format": {"type": "json_schema", "json_schema": wanted}}
    if request.text_so_far:
        if request.tools:
            raise BadRequest("An upstream engine can't go on from the middle of an answer that may call tools.")
        if kind not in ("vllm", "ollama"):
            raise BadRequest("This upstream engine can't go on from the middle of an answer.")
        messages.append({"role": "assistant", "content": request.text_so_far})
        if kind == "vllm":
            more |= {"add_generation_prompt": False, "continue_final_message": True}
    return Call("/v1/chat/completions", _encode({**_common(request, model, kind), "messages": messages, **more}))


def text_call(request: GenerateRequest, prompt: str, model: str, kind: ServerKind) -> Call:
    """Text to continue: the prompt as rendered, and the answer so far behind it."""
    body = {**_common(request, model, kind), "prompt": prompt + request.text_so_far}
    if request.schema:
        if kind not in ("llama.cpp", "vllm"):
            raise BadGrammar("This upstream engine takes no schema for plain text.")
        schema = read_schema(request.schema)
        grammar = _grammar_of(schema) if kind == "llama.cpp" else None
        body |= {"grammar": grammar} if grammar else {"json_schema": schema} if kind == "llama.cpp" else {
            "structured_outputs": {"json": schema}}
    return Call("/v1/completions", _encode(body))


def rendered_call(prompt: ChatPrompt, model: str) -> Call:
    """Ask llama.cpp's server to render a chat with the model's template."""
    messages = _messages(prompt, "llama.cpp")
    return Call("/apply-template", _encode({"model": model, "messages": messages}))


def tokens_call(prompt: str | ChatPrompt, model: str, kind: ServerKind) -> Call:
    """Ask for a token count. Raises BadPrompt when this kind of server can't count."""
    if isinstance(prompt, str):
        if kind == "vllm":
            return Call("/tokenize", _encode({"model": model, "prompt": prompt}))
        if kind == "llama.cpp":
            asked = {"model": model, "content": prompt, "add_special": True, "parse_special": True}
            return Call("/tokenize", _encode(asked))
    elif kind == "vllm":
        return Call("/tokenize", _encode({"model": model, "messages": _messages(prompt, kind)}))
    raise BadPrompt("This upstream engine can't count tokens.")


def _messages(prompt: ChatPrompt, kind: ServerKind) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for one in prompt.messages:
        message: dict[str, Any] = {"role": one.role, "content": one.content}
        if one.calls:
            message["tool_calls"] = [
                {"id": call.call_id or f"call_{place}", "type": "function",
                 "function": {"name": call.name, "arguments": _sound(call.arguments)}}
                for place, call in enumerate(one.calls)]
        if one.thought and kind in _THINKERS:
            message["reasoning_content"] = one.thought
        if one.role == "tool":
            message["tool_call_id"] = one.call_id or "call_0"
        found.append(message)
    return found


def _sound(arguments: str) -> str:
    """Arguments as an object: some servers refuse a whole conversation for a bad call in it."""
    try:
        msgspec.json.decode(arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return _encode({"text": arguments}).decode()
    return arguments


def _tools(request: GenerateRequest) -> dict[str, Any]:
    if not request.tools or (request.tool_choice == "none" and request.named_tool is None):
        return {}
    offered = []
    for tool in request.tools:
        try:
            schema = msgspec.json.decode(tool.parameters or "{}", type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise BadRequest(f"The parameters of {tool.name} are no JSON schema.") from error
        function = {"name": tool.name, "description": tool.description, "parameters": schema}
        offered.append({"type": "function", "function": function})
    choice: Any = request.tool_choice
    if request.named_tool is not None:
        choice = {"type": "function", "function": {"name": request.named_tool}}
    return {"tools": offered, "tool_choice": choice, "parallel_tool_calls": request.parallel_calls}


def _thinking(request: GenerateRequest, kind: ServerKind) -> dict[str, Any]:
    """Whether to think, where a server can be told so. How long is up to the server."""
    if kind not in _THINKERS:
        return {}
    return {"chat_template_kwargs": {"enable_thinking": request.thinking_tokens > 0}}


def _common(request: GenerateRequest, model: str, kind: ServerKind) -> dict[str, Any]:
    if request.lane == "exact":
        raise LaneUnsupported("An upstream engine can't continue exactly.")
    if request.adapter is not None:
        raise BadRequest("An upstream engine takes no adapter.")
    if request.calls_so_far or request.thought_so_far:
        raise BadRequest("An upstream engine can't go on from a thought or a call.")
    if isinstance(request.prompt, TokenPrompt):
        raise BadPrompt("An upstream engine takes no token ids.")
    if len(request.stop) > _MOST_STOPS_ELSEWHERE and kind in ("ollama", "other"):
        raise BadRequest(f"This upstream engine takes at most {_MOST_STOPS_ELSEWHERE} stop texts.")
    body: dict[str, Any] = {
        "model": model, "stream": True, "stream_options": {"include_usage": True}, "max_tokens": request.max_tokens,
        "temperature": request.temperature,
    }
    if request.temperature > 0:
        body |= {"top_p": request.top_p, "seed": request.seed}
    if request.stop:
        body["stop"] = list(request.stop)
    if request.grammar:
        if kind not in ("llama.cpp", "vllm"):
            raise BadGrammar("This upstream engine takes no grammar.")
        body |= {"grammar": request.grammar} if kind == "llama.cpp" else {
            "structured_outputs": {"grammar": request.grammar}}
    return body


def _grammar_of(schema: Mapping[str, Any]) -> str | None:
    """The schema as a grammar without white space; None when only the server's own reading may hold it."""
    try:
        return to_gbnf(schema_language(schema))
    except RecursionError as error:
        raise BadGrammar("The schema is nested too deep.") from error
    except BeyondAutomaton:
        return None


def _encode(body: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(body)
