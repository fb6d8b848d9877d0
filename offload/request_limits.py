"""What an engine takes from anyone: the sizes and ranges of a request, checked before it goes further.

Must not know grants or quotas: those are narrower and belong to the server.
"""

import math
from collections.abc import Sequence

from offload.errors import BadPrompt, BadRequest
from offload.ports import ChatPrompt, GenerateRequest, Prompt, TextPrompt

__all__ = ["MOST_NEW_TOKENS", "check_prompt", "check_request", "check_texts"]

MOST_NEW_TOKENS = 32_768
_MOST_TEXT_CHARS = 2_000_000
_MOST_IDS = 1_000_000
_MOST_MESSAGES = 2_000
_MOST_STOPS = 16
_LONGEST_STOP_CHARS = 256
_LONGEST_GRAMMAR_CHARS = 64 * 1024
_LONGEST_NAME_CHARS = 256
_MOST_TOOLS = 64
_MOST_TOOL_CHARS = 512 * 1024
_HOTTEST = 5.0
_MOST_EMBEDDED = 128
_LONGEST_EMBEDDED_CHARS = 16_384


def check_request(request: GenerateRequest) -> None:
    """Raises BadRequest or BadPrompt, naming the first value outside its limits."""
    check_prompt(request.prompt)
    for wrong, what in (
        (not 1 <= request.max_tokens <= MOST_NEW_TOKENS, f"max_tokens is not within 1 to {MOST_NEW_TOKENS}"),
        (not (math.isfinite(request.temperature) and 0 <= request.temperature <= _HOTTEST),
         f"temperature is not within 0 to {_HOTTEST:g}"),
        (not 0 < request.top_p <= 1, "top_p is not within 0 to 1"),
        (not 0 <= request.seed < 2**32, "seed is not within 32 bits"),
        (len(request.stop) > _MOST_STOPS, f"more than {_MOST_STOPS} stop texts"),
        (any(not 1 <= len(stop) <= _LONGEST_STOP_CHARS for stop in request.stop),
         f"a stop text is empty or longer than {_LONGEST_STOP_CHARS} characters"),
        (len(request.grammar or "") > _LONGEST_GRAMMAR_CHARS, "the grammar is too long"),
        (len(request.schema or "") > _LONGEST_GRAMMAR_CHARS, "the schema is too long"),
        (len(request.text_so_far) > _MOST_TEXT_CHARS, "the text so far is too long"),
        (len(request.token_ids_so_far) > _MOST_IDS, "the ids so far are too many"),
        (request.context_limit is not None and request.context_limit < 1, "context_limit is below 1"),
        (not 0 <= request.thinking_tokens <= MOST_NEW_TOKENS, f"thinking_tokens is not within 0 to {MOST_NEW_TOKENS}"),
        (len(request.thought_so_far) > _MOST_TEXT_CHARS, "the thought so far is too long"),
        (request.calls_so_far < 0 or (request.calls_so_far > 0 and not request.token_ids_so_far),
         "calls so far need their token ids"),
        (len(request.adapter or "") > _LONGEST_NAME_CHARS, "the adapter's name is too long"),
        *_tool_troubles(request),
    ):
        if wrong:
            raise BadRequest(f"The request can't be used: {what}.")


def _tool_troubles(request: GenerateRequest) -> list[tuple[bool, str]]:
    held = request.grammar is not None or request.schema is not None
    size = sum(len(tool.name) + len(tool.description) + len(tool.parameters) for tool in request.tools)
    return [
        (bool(request.tools) and held, "tools come with a grammar or schema of their own"),
        (bool(request.tools) and not isinstance(request.prompt, ChatPrompt), "tools need a chat"),
        (len(request.tools) > _MOST_TOOLS or size > _MOST_TOOL_CHARS, "the tools are too many or too long"),
    ]


def check_prompt(prompt: Prompt) -> None:
    """Raises BadPrompt when it is empty or beyond any model."""
    match prompt:
        case ChatPrompt(messages=messages):
            size = sum(
                len(message.content) + len(message.role) + len(message.thought)
                + sum(len(call.name) + len(call.arguments) for call in message.calls) for message in messages)
            fits = 0 < len(messages) <= _MOST_MESSAGES and size <= _MOST_TEXT_CHARS
        case TextPrompt(text=text):
            fits = 0 < len(text) <= _MOST_TEXT_CHARS
        case _:
            fits = 0 < len(prompt.ids) <= _MOST_IDS
    if not fits:
        raise BadPrompt("The prompt is empty or too long.")


def check_texts(texts: Sequence[str]) -> None:
    """Raises BadRequest for too many or too long texts to embed."""
    if len(texts) > _MOST_EMBEDDED or any(len(text) > _LONGEST_EMBEDDED_CHARS for text in texts):
        raise BadRequest(
            f"At most {_MOST_EMBEDDED} texts of {_LONGEST_EMBEDDED_CHARS} characters can be embedded at once.")
