"""What kith doctor says of the models: those broken or in trouble by name and reason, and how far their box holds."""

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
    (EngineHealth(state="ready", model=GOOD, threads=2, troubles=("b quarantined; it ended 4 times",)), [GOOD],
     [("ok", "good ready, 2 threads"), ("warning", "b quarantined; it ended 4 times")]),
    (EngineHealth(state="ready", model=GOOD, threads=2, detail="No decode has finished for 12 s"), [GOOD],
     [("warning", "good ready, 2 threads; No decode has finished for 12 s")]),
    (EngineHealth(state="quarantined", model=GOOD, threads=2, detail="it ended 5 times"), [GOOD],
     [("problem", "good quarantined, 2 threads; it ended 5 times")]),
    (EngineHealth(state="ready", model=GOOD, threads=2, box={"landlock": "held"}, probe={"run_program": "refused"}),
     [GOOD], [("ok", "good ready, 2 threads"), ("ok", "landlock")]),
    (EngineHealth(state="ready", model=GOOD, threads=2, box={"landlock": "missing: not Linux", "seccomp": "held"}),
     [GOOD], [("ok", "good ready, 2 threads"), ("warning", "not all layers hold: landlock: missing: not Linux")]),
    (EngineHealth(state="ready", model=GOOD, threads=2, box={"landlock": "held"},
                  probe={"open_socket": "possible", "read_outside": "refused", "run_program": "possible"}),
     [GOOD], [("ok", "good ready, 2 threads"), ("warning", "not all layers hold: it could open socket, run program")]),
])
async def test_trouble_is_named(health: EngineHealth, models: list[ModelInfo], said: list[Any]) -> None:
    checks = await doctor(health, *models)._look_at_engine()
    assert [(check.state, check.text) for check in checks] == said


async def test_a_model_that_is_left_alone_has_a_way_back() -> None:
    health = EngineHealth(state="quarantined", model=GOOD, threads=2, detail="it ended 5 times")
    (check,) = await doctor(health, GOOD)._look_at_engine()
    assert check.hint.endswith("kith models use good")
