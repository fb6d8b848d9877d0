"""A sequence that left the context and came back goes on bit for bit as one that stayed, on real models."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest
from embedded_model import model_path
from tiny_hybrid import make_hybrid

from offload.engine.context import Context
from offload.engine.library import Model

pytestmark = pytest.mark.model

TEXT = "The harbour was quiet when Marta tied up the boat. Two gulls stood on the wall and watched her. "
STEPS = 24
Meanwhile = Callable[[Context, list[int]], None]


@pytest.fixture(scope="module", params=["attention", "hybrid"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    path = model_path()
    if request.param == "hybrid":
        path = make_hybrid(path, tmp_path_factory.mktemp("hybrid") / "tiny.gguf")
    opened = Model(str(path), extra_buffers=True)
    yield opened
    opened.close()


def decoded(context: Context, sequence: int, position: int, tokens: list[int]) -> npt.NDArray[np.float32]:
    context.begin_batch()
    row = context.add(sequence, position, tokens, want_last=1)
    assert context.decode() == 0
    return context.logits(row).copy()


def nothing(_context: Context, _tokens: list[int]) -> None:
    """The cells are free again."""


def its_place_is_taken(context: Context, tokens: list[int]) -> None:
    decoded(context, 1, 0, tokens[:40])


def only_gaps_are_left(context: Context, tokens: list[int]) -> None:
    for sequence, count in ((1, 19), (2, 7), (3, 30), (4, 5)):
        decoded(context, sequence, 0, tokens[:count])
    context.forget(1)
    context.forget(3)


def went_on(model: Model, *, parked: Meanwhile | None, beyond: int = 0) -> npt.NDArray[np.float32]:
    """The logits of some greedy steps behind a prompt.

    parked: what happens while the sequence is away; None: it stays. beyond: so many tokens too many are read before
    that and taken back after it.
    """
    context = Context(model, context_tokens=1024, sequences=6, threads=1)
    prompt = model.tokenise(TEXT * 3, begin=True, control=False)
    last = decoded(context, 0, 0, prompt)
    if beyond:
        checkpoint = context.checkpoint(0) if model.keeps_state_per_sequence else b""
        decoded(context, 0, len(prompt), prompt[1:1 + beyond])
    if parked is not None:
        state = context.save(0)
        context.forget(0)
        parked(context, prompt)
        assert context.load(0, state)
    if beyond:
        assert not checkpoint or context.restore(0, checkpoint)
        assert context.cut(0, len(prompt))
    steps = []
    for step in range(STEPS):
        last = decoded(context, 0, len(prompt) + step, [int(last.argmax())])
        steps.append(last)
    context.close()
    return np.array(steps)


@pytest.mark.parametrize("beyond", [0, 9], ids=["whole", "cut"])
def test_coming_back_changes_no_bit(model: Model, beyond: int) -> None:
    stayed = went_on(model, parked=None, beyond=beyond)
    for meanwhile in (nothing, its_place_is_taken, only_gaps_are_left):
        assert np.array_equal(stayed, went_on(model, parked=meanwhile, beyond=beyond)), meanwhile.__name__


def test_negative_control_one_other_token_changes_them(model: Model) -> None:
    def spoilt(context: Context, _tokens: list[int]) -> None:
        context.load = lambda sequence, _state: decoded(  # type: ignore[method-assign]
            context, sequence, 0, [*model.tokenise(TEXT * 3, begin=True, control=False)[:-1], 11]).size > 0

    assert not np.array_equal(went_on(model, parked=None), went_on(model, parked=spoilt))
