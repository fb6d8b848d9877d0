"""A scripted server on loopback, an engine that asks it, and what it answers."""

from scripted_http import events, reply

from offload.ports import (
    ChatPrompt,
    GenerateRequest,
    Message,
    Piece,
)

__all__ = ["ANSWER", "CHAT", "MODELS", "all_of", "answering", "ask", "text_of"]


MODELS = {"data": [{"id": "qwen", "meta": {"n_ctx": 4096, "size": 7}}, {"id": "tiny"}]}
CHAT = ChatPrompt((Message("system", "Be kind to Bea Long."), Message("user", "grüße 🎉?")))
ANSWER = events(
    {"choices": [{"delta": {"role": "assistant", "content": None}}]},
    {"choices": [{"delta": {"content": "Grüße, "}}]}, {"choices": [{"delta": {"content": "🎉"}}]},
    {"choices": [{"delta": {"content": " ok"}, "finish_reason": None}]},
    {"choices": [{"delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4,
                              "prompt_tokens_details": {"cached_tokens": 2}}},
    "[DONE]")


def ask(prompt=CHAT, **more):
    return GenerateRequest(request_id="r1", prompt=prompt, max_tokens=32, **more)


def answering(*pieces):
    def script(asked):
        return [reply(MODELS)] if asked.path.endswith("/v1/models") else pieces or [ANSWER]
    return script


async def all_of(engine, request):
    async with engine.stream(request) as stream:
        return [event async for event in stream]


def text_of(found):
    return "".join(event.text for event in found if isinstance(event, Piece))
