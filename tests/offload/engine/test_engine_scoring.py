"""Scoring with the real engine: an honest greedy answer stays within the tolerance however it was computed and is
scored; an answer of another model does not. The negative control is the same model in a coarser quantisation.
"""

import ctypes
import math
from pathlib import Path
from statistics import fmean

import pytest
import trio
from embedded_model import model_path, models_folder
from llama_cpp import llama_cpp as C

from offload.engine.library import Model, open_library
from offload.engine.scoring import MOST_SCORED_TOKENS, Scoring
from offload.errors import EngineError, PromptTooLong
from offload.local_engine import LocalEngine
from offload.ports import ChatPrompt, Failed, GenerateRequest, Message, Piece
from offload.spot_check import MEAN_TOLERANCE, SCORED_TOKENS

pytestmark = pytest.mark.model

TEXTS = ("Explain how a sailing boat works", "Describe how bread is baked", "Why is the sky blue?")
Q2_K = 10  # LLAMA_FTYPE_MOSTLY_Q2_K


def request(number: int, text: str) -> GenerateRequest:
    return GenerateRequest(
        request_id=f"r{number}", prompt=ChatPrompt((Message("user", text),)), max_tokens=SCORED_TOKENS)


async def answers(engine: LocalEngine, nursery) -> list[list[int]]:
    """The greedy answers, all at once, so that they share batches."""
    found: dict[int, list[int]] = {number: [] for number in range(len(TEXTS))}

    async def ask(number: int, done) -> None:
        async with engine.stream(request(number, TEXTS[number])) as events:
            async for event in events:
                assert not isinstance(event, Failed)
                if isinstance(event, Piece):
                    found[number] += event.token_ids
        done()

    left = trio.Event()
    open_ones = [len(TEXTS)]

    def done() -> None:
        open_ones[0] -= 1
        if not open_ones[0]:
            left.set()

    for number in found:
        nursery.start_soon(ask, number, done)
    await left.wait()
    return [found[number] for number in range(len(TEXTS))]


@pytest.fixture(scope="module")
def coarse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the embedded model in another quantisation."""
    folder = tmp_path_factory.mktemp("coarse")
    open_library()
    parameters = C.llama_model_quantize_default_params()
    parameters.ftype, parameters.allow_requantize, parameters.nthread = Q2_K, True, 2
    source, target = str(model_path()).encode(), str(folder / "coarse.gguf").encode()
    assert C.llama_model_quantize(source, target, ctypes.byref(parameters)) == 0
    return folder


async def margins(scorer: LocalEngine, written: list[list[int]]) -> list[list[float]]:
    found = []
    for number, ids in enumerate(written):
        chosen, best = await scorer.score(request(number, TEXTS[number]), ids)
        assert all(math.isfinite(one) and one <= 0 for one in (*chosen, *best))
        found.append([top - one for one, top in zip(chosen, best, strict=True)])
    return found


async def test_an_honest_answer_is_within_the_tolerance_and_another_models_is_not(nursery, coarse) -> None:
    here = LocalEngine([models_folder()], threads=2)
    await nursery.start(here.run)
    honest = [one for answer in await margins(here, await answers(here, nursery)) for one in answer]
    elsewhere = LocalEngine([coarse], threads=2)
    await nursery.start(elsewhere.run)
    other = [one for answer in await margins(here, await answers(elsewhere, nursery)) for one in answer]
    assert len(honest) >= 60 and len(other) >= 60
    assert min(honest) >= 0 and fmean(honest) < MEAN_TOLERANCE / 2
    assert fmean(other) > 4 * MEAN_TOLERANCE
    # equality of tokens would be the wrong test: an honest answer holds tokens that are not the likeliest here
    nursery.cancel_scope.cancel()


def test_how_it_is_scored_changes_little() -> None:
    model = Model(str(model_path()), extra_buffers=True)
    prompt = model.tokenise("The quick brown fox jumps over the lazy dog. " * 20, begin=True, control=False)
    answer = model.tokenise("And then the dog ran after the fox.", begin=False, control=False)

    def score(threads: int, chunk: int) -> tuple[list[float], list[float]]:
        scoring = Scoring(model, prompt, answer, threads=threads, chunk_tokens=chunk)
        while not scoring.step():
            pass
        scoring.close()
        return scoring.chosen, scoring.best

    chosen, best = score(2, 512)
    assert len(chosen) == len(answer)
    for threads, chunk in ((1, 512), (2, 7), (1, 1)):
        again, top = score(threads, chunk)
        # this text is none of the model's own, so its tokens lie far below the likeliest and differ by more than those
        # of a greedy answer do; another model's numbers differ by whole units
        margins = [abs((b - a) - (d - c)) for a, b, c, d in zip(chosen, best, again, top, strict=True)]
        assert fmean(margins) < 0.2
    model.close()


def test_what_cannot_be_scored_is_refused() -> None:
    model = Model(str(model_path()), extra_buffers=True)
    with pytest.raises(PromptTooLong):
        Scoring(model, [1] * MOST_SCORED_TOKENS, [1], threads=1)
    for prompt, answer in (([], [1]), ([1], []), ([1], [model.size]), ([1], [-1])):
        with pytest.raises(EngineError):
            Scoring(model, prompt, answer, threads=1)
    model.close()
