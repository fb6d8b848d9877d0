"""A planner that proposes what a test wrote, and keeps what it was told and offered."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from node.agent.plan_port import PlanMessage, PlannedCall, PlanTool

__all__ = ["FakePlanner", "call"]

Step = PlannedCall | Exception | Callable[[Mapping[str, PlanTool]], PlannedCall] | None


def call(tool: str, **arguments: Any) -> PlannedCall:
    return PlannedCall(tool, arguments)


class FakePlanner:
    """Goes through its steps, and is done when they are over."""

    def __init__(self, *steps: Step, allowed: bool = True) -> None:
        self.steps = list(steps)
        self.allowed = allowed
        self.asked: list[Sequence[PlanMessage]] = []
        self.offered: list[dict[str, PlanTool]] = []

    async def permitted(self, model: str | None) -> str | None:
        return "d" * 64 if self.allowed else None

    async def propose(
        self, digest: str, messages: Sequence[PlanMessage], tools: Sequence[PlanTool],
    ) -> PlannedCall | None:
        self.asked.append(tuple(messages))
        self.offered.append({tool.name: tool for tool in tools})
        step = self.steps.pop(0) if self.steps else call("no_suitable_tool")
        if isinstance(step, Exception):
            raise step
        return step(self.offered[-1]) if callable(step) else step

    def choices(self, tool: str, name: str) -> list[str]:
        """What the model could choose for one argument."""
        properties: Any = self.offered[0][tool].schema["properties"]
        return list(properties[name]["enum"])
