"""Which style a model keeps better is tried with real tasks: brackets unless invented names come back more often."""

import re
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from itertools import count

import pytest
import trio
from embedded_model import model_path

from node.daemon.style_trial import StyleTrial
from offload.local_engine import LocalEngine
from offload.ports import Failed, Finished, Piece


class Model:
    """Says its prompt again, bent in some way."""

    def __init__(self, bend, *, failing: bool = False, silent: bool = False) -> None:
        self.bend = bend
        self.failing = failing
        self.silent = silent
        self.models: set[str | None] = set()

    @asynccontextmanager
    async def stream(self, request) -> AsyncIterator:
        self.models.add(request.model)

        async def events():
            if self.silent:
                await trio.sleep_forever()
            if self.failing:
                yield Failed("worker_died", "it died")
                return
            yield Piece(self.bend(request.prompt.messages[0].content), ())
            yield Finished("stop", 1, 1)

        async with aclosing(events()) as given:
            yield given


def trial(model: Model) -> StyleTrial:
    numbers = count()
    return StyleTrial(model, lambda: f"r{next(numbers)}")  # type: ignore[arg-type]


async def test_a_model_that_copies_both_gets_brackets() -> None:
    model = Model(lambda text: text)
    assert await trial(model).choose("ab" * 32) == "brackets"
    assert model.models == {"ab" * 32}


async def test_a_model_that_loses_brackets_gets_invented_names() -> None:
    assert await trial(Model(lambda text: re.sub(r"\[\w+\]", "someone", text))).choose("m") == "surrogates"


async def test_a_model_that_loses_everything_gets_brackets() -> None:
    assert await trial(Model(lambda text: "I am a language model.")).choose("m") == "brackets"


async def test_a_failing_or_hanging_model_tells_nothing(autojump_clock: trio.testing.MockClock) -> None:
    assert await trial(Model(str, failing=True)).choose("m") is None
    assert await trial(Model(str, silent=True)).choose("m") is None
    assert trio.current_time() <= 121


@pytest.mark.model
async def test_the_embedded_model_can_be_tried() -> None:
    numbers = count()
    engine = LocalEngine([model_path().parent])
    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            await nursery.start(engine.run)
            (info,) = await engine.models()
            chosen = await StyleTrial(engine, lambda: f"r{next(numbers)}", deadline_s=250).choose(info.digest)
            nursery.cancel_scope.cancel()
    assert chosen in ("brackets", "surrogates")
