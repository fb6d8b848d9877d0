"""What kith doctor says of the models: broken ones by name and reason, beside the one in use or in its place."""

from types import SimpleNamespace
from typing import Any

import pytest

from node.daemon.doctor import Doctor
from offload.ports import EngineHealth, ModelInfo

GOOD = ModelInfo(name="good", digest="1" * 64, size_bytes=1)
BROKEN = ModelInfo(name="a", digest="2" * 64, size_bytes=1, broken="It is cut off.")


def doctor(health: EngineHealth, *models: ModelInfo) -> Doctor:
    async def listed() -> list[ModelInfo]:
        return list(models)

    async def healthy() -> EngineHealth:
        return health

    unused: Any = None
    engine: Any = SimpleNamespace(models=listed, health=healthy)
    scan: Any = SimpleNamespace(box={})
    return Doctor(
        paths=unused, clock=unused, database=unused, ledger=unused, engine=engine, scan=scan, detecting=scan,
        calendars=unused, contacts=unused, vault=unused, unknown_env=())


@pytest.mark.parametrize(("health", "models", "said"), [
    (EngineHealth(state="ready", model=GOOD, threads=2), [GOOD], [("ok", "good ready, 2 threads")]),
    (EngineHealth(state="ready", model=GOOD, threads=2), [GOOD, BROKEN],
     [("ok", "good ready, 2 threads"), ("warning", "a is broken: It is cut off.")]),
    (EngineHealth(state="no_model"), [BROKEN], [("warning", "a is broken: It is cut off.")]),
    (EngineHealth(state="no_model"), [], [("warning", "no model on this device")]),
])
async def test_broken_models_are_named(health: EngineHealth, models: list[ModelInfo], said: list[Any]) -> None:
    checks = await doctor(health, *models)._look_at_engine()
    assert [(check.state, check.text) for check in checks] == said
