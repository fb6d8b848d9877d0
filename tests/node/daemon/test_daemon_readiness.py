"""Ready means that a token was produced, or that no model is here; an engine that only lives is not enough."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from fixed import FixedClock

from node.daemon.control import Control
from node.daemon.readiness import PROBE_S, STUCK_S, Readiness
from offload.errors import WorkerStalled
from offload.ports import EngineHealth, Failed, Finished, GenerateRequest, ModelInfo, Piece, Started, Usage

MODEL = ModelInfo(name="smollm2", digest="d" * 64, size_bytes=1)


class Engine:
    """As healthy as a test says; its answers are a script."""

    def __init__(self, state: str = "ready", *script: Any) -> None:
        self.now = EngineHealth(state=state, model=None if state == "no_model" else MODEL)  # type: ignore[arg-type]
        self.script = script
        self.requests: list[GenerateRequest] = []

    async def health(self) -> EngineHealth:
        if self.now.state == "starting":
            raise WorkerStalled
        return self.now

    @asynccontextmanager
    async def stream(self, request: GenerateRequest) -> AsyncIterator[Any]:
        self.requests.append(request)

        async def play() -> AsyncIterator[Any]:
            for item in self.script:
                if item is None:
                    await trio.sleep_forever()
                await trio.lowlevel.checkpoint()
                yield item

        events = play()
        try:
            yield events
        finally:
            await events.aclose()

    def say(self, **changes: Any) -> None:
        given = {"state": "ready", "model": MODEL, **changes}
        self.now = EngineHealth(**given)


TOKEN = (Started(5, 0, MODEL.digest), Piece("H", (1,)), Finished("length", Usage(5, 0, 1)))


def readiness(engine: Engine) -> tuple[Readiness, FixedClock]:
    clock = FixedClock()
    return Readiness(engine, clock, lambda: "id"), clock  # type: ignore[arg-type]


async def test_an_engine_that_lives_and_wrote_nothing_is_not_ready() -> None:
    engine = Engine("ready", *TOKEN)
    ready, clock = readiness(engine)
    view = await ready.look(probe=False)
    assert (view.state, view.ready, view.last_token_age_s, view.model) == ("untried", False, None, "smollm2")
    assert engine.requests == []  # looking costs nothing
    view = await ready.look(probe=True)
    assert (view.state, view.ready, view.last_token_age_s) == ("ready", True, 0.0)
    assert [request.max_tokens for request in engine.requests] == [1]
    clock.advance(30)
    view = await ready.look(probe=True)
    assert (view.ready, view.last_token_age_s) == (True, 30.0)
    assert len(engine.requests) == 1  # one token is enough


async def test_any_answers_token_counts_and_is_remembered_when_the_model_is_unloaded() -> None:
    engine = Engine()
    ready, clock = readiness(engine)
    engine.say(last_token_age_s=2.0)
    assert (await ready.look(probe=False)).last_token_age_s == 2.0
    engine.say(state="idle")
    clock.advance(5)
    view = await ready.look(probe=False)
    assert (view.ready, view.last_token_age_s) == (True, 7.0)


async def test_no_model_is_ready_for_what_needs_none() -> None:
    engine = Engine("no_model", *TOKEN)
    view = await readiness(engine)[0].look(probe=True)
    assert (view.state, view.ready, view.model) == ("no_model", True, None)
    assert engine.requests == []


@pytest.mark.parametrize("script", [
    (Failed("worker_died", "text that stays in the engine"),), (Started(5, 0, "d"), Piece("", ()), None), (),
])
async def test_a_probe_that_brings_no_token_is_not_ready(autojump_clock: Any, script: Any) -> None:
    engine = Engine("ready", *script)
    ready, _ = readiness(engine)
    begun_s = trio.current_time()
    view = await ready.look(probe=True)
    assert (view.ready, view.last_token_age_s) == (False, None)
    assert "stays in the engine" not in view.detail
    assert trio.current_time() - begun_s <= PROBE_S
    engine.script = TOKEN
    assert (await ready.look(probe=True)).ready  # it is tried anew, and a success ends the trouble


@pytest.mark.parametrize("state", ["quarantined", "restarting", "stopped", "starting"])
async def test_an_engine_in_trouble_is_failing_though_it_once_wrote(state: str) -> None:
    engine = Engine()
    ready, _ = readiness(engine)
    engine.say(last_token_age_s=1.0)
    assert (await ready.look(probe=False)).ready
    engine.say(state=state, detail="died of signal 9")
    view = await ready.look(probe=True)
    assert (view.state, view.ready) == ("failing", False)
    assert view.detail


async def test_a_request_that_runs_without_a_token_is_stuck_after_a_while() -> None:
    engine = Engine()
    ready, clock = readiness(engine)
    engine.say(last_token_age_s=0.0)
    assert (await ready.look(probe=False)).ready
    clock.advance(STUCK_S * 2)
    engine.say(last_token_age_s=STUCK_S * 2, running=1)
    assert (await ready.look(probe=False)).ready  # it has just begun
    clock.advance(STUCK_S + 1)
    engine.say(last_token_age_s=STUCK_S * 3 + 1, running=1)
    view = await ready.look(probe=False)
    assert (view.state, view.ready, view.running) == ("stuck", False, 1)
    engine.say(last_token_age_s=0.5, running=1)
    assert (await ready.look(probe=False)).state == "ready"


async def test_many_who_ask_at_once_cost_one_token() -> None:
    engine = Engine("ready", *TOKEN)
    ready, _ = readiness(engine)
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(lambda: ready.look(probe=True))
    assert len(engine.requests) == 1


async def test_a_node_that_starts_or_stops_says_so() -> None:
    control = Control("n", "p", "lan", FixedClock(), lambda: None)
    assert (await control.health(probe=True)).state == "starting"
    control.readiness, _ = readiness(Engine("no_model"))
    assert (await control.health(probe=True)).state == "starting"  # the network is not there yet
    control.stage = lambda: "ready"
    assert (await control.health(probe=True)).state == "no_model"
    control.stopping = lambda: True
    view = await control.health(probe=True)
    assert (view.state, view.ready) == ("stopping", False)
