"""A chooser that lets a model call tools in its own format, as the template in its file teaches it.

What is measured with it is the model as an application would use it through the engine's tools. Must not know what is
right, or any format.
"""

import json
from collections.abc import Mapping
from typing import Any

from offload.errors import EngineError
from offload.evaluation.cases import Case, Tool
from offload.evaluation.chooser import Choice
from offload.ports import (
    ChatPrompt,
    Engine,
    Failed,
    Finished,
    FinishReason,
    GenerateRequest,
    Message,
    Piece,
    ToolCall,
    ToolOffer,
    Usage,
)

__all__ = ["NativeChooser"]

_FIRST_TOKENS = 192
_MOST_TRIES = 2
_GROWTH = 4
_BEYOND = ("bad_tools", "bad_grammar", "prompt_too_long")     # this case is beyond the engine; others may not be


class NativeChooser:
    """Chooses through one engine and model, greedily. An answer cut off by its length is tried once more with room."""

    def __init__(self, engine: Engine, model: str | None, *, may_decline: bool = True, may_ask: bool = False) -> None:
        """may_decline: a call is the model's choice; else one must come. may_ask: an answer that is a question counts
        as asking back, and not as declining."""
        self._engine = engine
        self._model = model
        self._may_decline = may_decline
        self._may_ask = may_ask

    async def choose(self, case: Case) -> Choice:
        """One choice. Raises EngineError when the model can't answer at all."""
        messages = tuple(
            Message(role if role in ("system", "assistant") else "user", text) for role, text in case.messages)
        prompt_tokens = output_tokens = tries = 0
        most_tokens = _FIRST_TOKENS
        choice = Choice(kind="broken")
        while tries < _MOST_TRIES:
            tries += 1
            choice, usage = await self._answer(GenerateRequest(
                request_id=f"eval {case.case_id} {tries}", prompt=ChatPrompt(messages), model=self._model,
                max_tokens=most_tokens, tools=tuple(map(_offer, case.tools)),
                tool_choice="auto" if self._may_decline else "required"))
            prompt_tokens += usage.prompt_tokens
            output_tokens += usage.output_tokens
            if choice.kind != "broken":
                break
            most_tokens *= _GROWTH
        return Choice(
            kind=choice.kind, name=choice.name, arguments=choice.arguments, text=choice.text, tries=tries,
            prompt_tokens=prompt_tokens, output_tokens=output_tokens)

    async def _answer(self, request: GenerateRequest) -> tuple[Choice, Usage]:
        pieces: list[str] = []
        calls: list[ToolCall] = []
        usage, reason = Usage(0, 0, 0), "stop"
        async with self._engine.stream(request) as events:
            async for event in events:
                match event:
                    case Piece(text=text):
                        pieces.append(text)
                    case ToolCall() as call:
                        calls.append(call)
                    case Finished(finish_reason=reason, usage=usage):
                        pass
                    case Failed(code=code) if code in _BEYOND:
                        return Choice(kind="broken", text=code), usage
                    case Failed(code=code, message=message):
                        raise EngineError(f"{message} ({code})")
        return self._read(calls, "".join(pieces).strip(), reason), usage

    def _read(self, calls: list[ToolCall], text: str, reason: FinishReason | str) -> Choice:
        if calls:
            arguments: Mapping[str, Any] = json.loads(calls[0].arguments)
            return Choice(kind="call", name=calls[0].name, arguments=dict(arguments))
        if not text or not self._may_decline or (reason != "stop" and text.startswith(("<", "{", "["))):
            return Choice(kind="broken", text=text)
        return Choice(kind="ask" if self._may_ask and text.endswith("?") else "none", text=text)


def _offer(tool: Tool) -> ToolOffer:
    return ToolOffer(tool.name, tool.description, json.dumps({**tool.parameters, "type": "object"}, ensure_ascii=False))
