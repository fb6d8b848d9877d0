"""The port to a model that may choose steps itself: what it is told, what it may call, what it proposes.

A proposal is no more than that: nothing was run, and nothing in it is trusted. Must not know who implements the port,
nor what becomes of a proposal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from node.agent.effects import Json

__all__ = ["PlanMessage", "PlanTool", "PlannedCall", "Planner"]


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that the model would like to make."""

    tool: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class PlanTool:
    """What may be called. schema: of an object; values that code has read stand in it as closed choices."""

    name: str
    description: str
    schema: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class PlanMessage:
    """One turn of the talk with the model. call: of an assistant's turn; the tool's answer is the turn behind it."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    call: PlannedCall | None = None


class Planner(Protocol):
    """A model on this device that may plan. Nothing given to it leaves the device."""

    async def permitted(self, model: str | None) -> str | None:
        """The digest of the model that may plan, of the one called so or of the default one; None when it may not.
        It may only by its own measured figures."""
        ...

    async def propose(
        self, digest: str, messages: Sequence[PlanMessage], tools: Sequence[PlanTool],
    ) -> PlannedCall | None:
        """The next call; None when the model answers in words. Raises when it can't answer."""
        ...
