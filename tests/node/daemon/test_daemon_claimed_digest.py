"""What a digest allows here is allowed to the model of this device that has it, never to a peer that names it."""

from typing import Any

from node.daemon.planning import EnginePlanner
from offload.ports import ModelInfo

CLAIMED = "c" * 64


class Here:
    """The engine of this device, with these models."""

    def __init__(self, *digests: str) -> None:
        self._models = [ModelInfo(name=f"m{digest[:2]}", digest=digest, size_bytes=1) for digest in digests]

    async def models(self) -> list[ModelInfo]:
        return self._models


class Measured:
    """The figures of an earlier kith eval let one digest plan."""

    async def why_not(self, digest: str) -> str | None:
        return None if digest == CLAIMED else "not measured"


def planner(*digests: str) -> EnginePlanner:
    engine: Any = Here(*digests)
    permissions: Any = Measured()
    return EnginePlanner(engine, permissions, lambda: "id")


async def test_leave_to_choose_steps_is_not_had_by_naming_a_digest() -> None:
    for model in (None, CLAIMED):
        assert await planner("a" * 64).permitted(model) is None     # only a peer says that it has it
        assert await planner().permitted(model) is None
        assert await planner(CLAIMED).permitted(model) == CLAIMED   # the control: the file is here, and was hashed here
