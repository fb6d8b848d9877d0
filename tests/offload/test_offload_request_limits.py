"""What an engine takes from anyone: every limit at and beyond its edge."""

from typing import Any

import pytest

from offload.errors import BadPrompt, BadRequest
from offload.ports import ChatPrompt, GenerateRequest, Message, PastCall, TextPrompt, TokenPrompt, ToolOffer
from offload.request_limits import check_prompt, check_request

CHAT = ChatPrompt((Message("user", "x"),))
TOOL = ToolOffer("t", "", "{}")


def request(**changes: Any) -> GenerateRequest:
    return GenerateRequest(**({"request_id": "r", "prompt": TextPrompt("x")} | changes))


@pytest.mark.parametrize("changes", [
    {"max_tokens": 1}, {"max_tokens": 32_768}, {"temperature": 5.0}, {"top_p": 1.0}, {"seed": 2**32 - 1},
    {"stop": ("x" * 256,) * 16}, {"grammar": "x" * 65_536}, {"context_limit": 1},
    {"prompt": CHAT, "tools": (TOOL,) * 64, "thinking_tokens": 32_768}, {"calls_so_far": 1, "token_ids_so_far": (1,)},
])
def test_at_the_edge_it_is_taken(changes: dict[str, Any]) -> None:
    check_request(request(**changes))


@pytest.mark.parametrize("changes", [
    {"max_tokens": 0}, {"max_tokens": 32_769}, {"temperature": -0.1}, {"temperature": 5.1},
    {"temperature": float("inf")}, {"temperature": float("nan")}, {"top_p": 0.0}, {"top_p": 1.1}, {"seed": -1},
    {"seed": 2**32}, {"stop": ("",)}, {"stop": ("x" * 257,)}, {"stop": ("x",) * 17}, {"grammar": "x" * 65_537},
    {"context_limit": 0}, {"text_so_far": "x" * 2_000_001}, {"thought_so_far": "x" * 2_000_001}, {"calls_so_far": 1},
    {"calls_so_far": -1, "token_ids_so_far": (1,)}, {"thinking_tokens": -1}, {"thinking_tokens": 32_769},
    {"tools": (TOOL,)}, {"prompt": CHAT, "tools": (TOOL,), "grammar": "x"},
    {"prompt": CHAT, "tools": (TOOL,), "schema": "{}"},
    {"prompt": CHAT, "tools": (TOOL,) * 65}, {"prompt": CHAT, "tools": (ToolOffer("t", "x" * 524_288, "{}"),)},
    {"adapter": "x" * 257},
])
def test_beyond_the_edge_it_is_refused_by_name(changes: dict[str, Any]) -> None:
    with pytest.raises(BadRequest) as refused:
        check_request(request(**changes))
    assert refused.value.code == "bad_request"


@pytest.mark.parametrize("prompt", [
    TextPrompt(""), TextPrompt("x" * 2_000_001), TokenPrompt(()), ChatPrompt(()),
    ChatPrompt((Message("user", "x" * 2_000_001),)),
    ChatPrompt((Message("assistant", "", (PastCall("f", "x" * 2_000_001),)),)),
    ChatPrompt((Message("assistant", "", thought="x" * 2_000_001),)), ChatPrompt((Message("user", "x"),) * 2_001),
])
def test_an_empty_or_huge_prompt_is_refused(prompt: Any) -> None:
    with pytest.raises(BadPrompt):
        check_prompt(prompt)
