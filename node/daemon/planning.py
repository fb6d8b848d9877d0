"""A model of this node's engine as the agent's planner, if its measured figures allow it. Implements
node.agent.plan_port.Planner.

The tools go to the engine as tools, so that a call comes in the model's own format, held to the schema. Must not know
what a call leads to.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from node.agent.plan_port import PlanMessage, PlannedCall, PlanTool
from node.daemon.plan_permission import Permissions
from node.errors import KithError, ModelMissing
from offload.ports import ChatPrompt, Engine, Failed, GenerateRequest, Message, PastCall, ToolCall, ToolOffer

__all__ = ["EnginePlanner"]

_MOST_TOKENS = 320


class EnginePlanner:
    """Proposals of one engine's models."""

    def __init__(self, engine: Engine, permissions: Permissions, new_id: Callable[[], str]) -> None:
        self._engine = engine
        self._permissions = permissions
        self._new_id = new_id

    async def permitted(self, model: str | None) -> str | None:
        """The digest of the model called so, or of the default one, when its last kith eval lets it plan."""
        for one in await self._engine.models():
            if model in (None, one.name, one.digest):
                allowed = not one.broken and await self._permissions.why_not(one.digest) is None
                return one.digest if allowed else None
        return None

    async def propose(
        self, digest: str, messages: Sequence[PlanMessage], tools: Sequence[PlanTool],
    ) -> PlannedCall | None:
        """The first call of the model's answer; None for one in words, or a call that can't be read.

        Raises ModelMissing or KithError when no model can answer.
        """
        request = GenerateRequest(
            request_id=self._new_id(), prompt=ChatPrompt(_turns(messages)), model=digest, max_tokens=_MOST_TOKENS,
            tools=tuple(
                ToolOffer(tool.name, tool.description, json.dumps(tool.schema, ensure_ascii=False)) for tool in tools),
            tool_choice="required",
        )
        async with self._engine.stream(request) as events:
            async for event in events:
                match event:
                    case ToolCall() as call:
                        return _read(call)
                    case Failed(code="no_model", message=message):
                        raise ModelMissing(message)
                    case Failed(message=message, hint=hint):
                        raise KithError(f"The model could not answer: {message}", hint=hint or None)
        return None


def _turns(messages: Sequence[PlanMessage]) -> tuple[Message, ...]:
    """The talk as the engine takes it; a call and its answer are tied by the call's place in it."""
    turns: list[Message] = []
    for number, one in enumerate(messages):
        if one.role == "assistant" and one.call is not None:
            arguments = json.dumps(dict(one.call.arguments), ensure_ascii=False)
            turns.append(Message("assistant", one.text, (PastCall(one.call.tool, arguments, f"c{number}"),)))
        elif one.role == "tool":
            turns.append(Message("tool", one.text, call_id=f"c{number - 1}"))
        else:
            turns.append(Message(one.role, one.text))
    return tuple(turns)


def _read(call: ToolCall) -> PlannedCall | None:
    try:
        arguments: Any = json.loads(call.arguments)
    except ValueError:
        return None
    return PlannedCall(call.name, arguments) if isinstance(arguments, Mapping) else None
