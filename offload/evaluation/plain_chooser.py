"""A chooser that knows nothing of a model's own format: the tools in the prompt, one call in JSON under a schema.

What is measured with it is the model itself, as a floor: better choosers (a gate before, the model's own format) come
through the same port. Must not know what is right.
"""

import json

from offload.errors import EngineError
from offload.evaluation.cases import Case, Tool
from offload.evaluation.chooser import Choice
from offload.evaluation.schemas import ASK, NONE, calls_schema
from offload.ports import ChatPrompt, Engine, Failed, Finished, GenerateRequest, Message, Piece, Usage

__all__ = ["PlainChooser"]

_FIRST_TOKENS = 128
_MOST_TRIES = 2
_GROWTH = 4


class PlainChooser:
    """Chooses through one engine and model, greedily. An answer cut off by its length is tried once more with room."""

    def __init__(
        self, engine: Engine, model: str | None, *, may_decline: bool = True, may_ask: bool = False,
        shortcuts: bool = True,
    ) -> None:
        """shortcuts: as in a GenerateRequest; what they cost in accuracy is measured by turning them off."""
        self._engine = engine
        self._model = model
        self._may_decline = may_decline
        self._may_ask = may_ask
        self._shortcuts = shortcuts

    async def choose(self, case: Case) -> Choice:
        """One choice. Raises EngineError when the model can't answer at all."""
        schema = json.dumps(calls_schema(case.tools, may_decline=self._may_decline, may_ask=self._may_ask))
        messages = self._messages(case)
        prompt_tokens = output_tokens = 0
        most_tokens, text, tries = _FIRST_TOKENS, "", 0
        while tries < _MOST_TRIES:
            tries += 1
            text, usage = await self._answer(GenerateRequest(
                request_id=f"eval {case.case_id} {tries}", prompt=ChatPrompt(messages), model=self._model,
                max_tokens=most_tokens, schema=schema, shortcuts=self._shortcuts))
            prompt_tokens += usage.prompt_tokens
            output_tokens += usage.output_tokens
            choice = _read(text)
            if choice.kind != "broken":
                break
            most_tokens *= _GROWTH
        return Choice(
            kind=choice.kind, name=choice.name, arguments=choice.arguments, text=choice.text, tries=tries,
            prompt_tokens=prompt_tokens, output_tokens=output_tokens)

    def _messages(self, case: Case) -> tuple[Message, ...]:
        lines = ["Answer with one function call in JSON.", "Functions:", *map(_described, case.tools)]
        if self._may_decline:
            lines.append(json.dumps({"name": NONE, "description": "Use this when none of the other functions fits."}))
        if self._may_ask:
            lines.append(json.dumps({
                "name": ASK, "description": "Use this when a needed value is missing.",
                "parameters": {"question": {"type": "string"}}}))
        own = [Message(role if role in ("system", "assistant") else "user", text) for role, text in case.messages]
        return (Message("system", "\n".join(lines)), *own)

    async def _answer(self, request: GenerateRequest) -> tuple[str, Usage]:
        pieces: list[str] = []
        usage = Usage(0, 0, 0)
        async with self._engine.stream(request) as events:
            async for event in events:
                match event:
                    case Piece(text=text):
                        pieces.append(text)
                    case Finished(usage=usage):
                        pass
                    case Failed(code="bad_grammar" | "prompt_too_long"):
                        return "", usage      # this case is beyond this model or engine; others may not be
                    case Failed(code=code, message=message):
                        raise EngineError(f"{message} ({code})")
        return "".join(pieces), usage


def _described(tool: Tool) -> str:
    properties = tool.parameters.get("properties", {})
    return json.dumps(
        {"name": tool.name, "description": tool.description, "parameters": properties,
         "required": tool.parameters.get("required", [])}, ensure_ascii=False)


def _read(text: str) -> Choice:
    """The call in a text; broken when there is none."""
    try:
        found = json.loads(text)
        name, arguments = found["name"], found["arguments"]
    except (ValueError, KeyError, TypeError):
        return Choice(kind="broken", text=text)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return Choice(kind="broken", text=text)
    if name == NONE:
        return Choice(kind="none")
    if name == ASK:
        return Choice(kind="ask", text=str(arguments.get("question", "")))
    return Choice(kind="call", name=name, arguments=arguments)
