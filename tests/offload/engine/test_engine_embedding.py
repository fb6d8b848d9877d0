"""Texts as vectors, against the mean of the hidden states taken by hand; and between the decodes of answers."""

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import trio
from embedded_model import model_path, models_folder
from engine_asks import asked, collect, running_engine, text_of
from hypothesis import given
from hypothesis import strategies as st
from llama_cpp import llama_cpp as C

from offload.engine.embedding import TextEmbedder, batches
from offload.engine.library import Model
from offload.errors import BadRequest
from offload.model_host import HostLimits

TEXTS = ("The cat sleeps on the sofa.", "A kitten is resting on the couch.", "Interest rates rose again in May.")


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    opened = Model(str(model_path()), extra_buffers=True)
    yield opened
    opened.close()


def by_hand(model: Model, tokens: list[int]) -> Any:
    """The mean of the hidden states of a sequence alone, from a context that does not pool."""
    parameters = C.llama_context_default_params()
    parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = 512
    parameters.n_threads = parameters.n_threads_batch = 2
    parameters.embeddings, parameters.pooling_type = True, 0
    handle = C.llama_init_from_model(model.handle, parameters)
    batch = C.llama_batch_init(512, 0, 1)
    for place, token in enumerate(tokens):
        batch.token[place], batch.pos[place], batch.logits[place] = token, place, 1
        batch.n_seq_id[place], batch.seq_id[place][0] = 1, 0
    batch.n_tokens = len(tokens)
    assert C.llama_decode(handle, batch) == 0
    width = C.llama_model_n_embd(model.handle)
    floats = ctypes.POINTER(ctypes.c_float)
    rows = [np.ctypeslib.as_array(ctypes.cast(C.llama_get_embeddings_ith(handle, place), floats), (width,)).copy()
            for place in range(len(tokens))]
    C.llama_batch_free(batch)
    C.llama_free(handle)
    mean = np.mean(rows, axis=0)
    return mean / np.linalg.norm(mean)


@pytest.mark.model
def test_a_vector_is_the_mean_of_the_hidden_states_alone_or_in_company(model: Model) -> None:
    embedder = TextEmbedder(model, threads=2)
    ids = [model.tokenise(text, begin=True, control=False) for text in TEXTS]
    together = embedder.embed(ids)
    for vector, tokens in zip(together, ids, strict=True):
        assert float(np.dot(vector, by_hand(model, tokens))) > 0.999
        assert float(np.dot(vector, embedder.embed([tokens])[0])) > 0.999
        assert abs(float(np.linalg.norm(vector)) - 1) < 1e-6
    assert float(np.dot(together[0], together[2])) < 0.999      # the negative control
    embedder.close()


@given(st.lists(st.lists(st.integers(0, 9), max_size=700), max_size=80))
def test_groups_hold_every_text_in_order_and_fit_into_one_decode(texts: list[list[int]]) -> None:
    groups = list(batches(texts))
    assert [tokens for group in groups for tokens in group] == [tokens[:512] for tokens in texts]
    assert all(group and len(group) <= 32 and sum(map(len, group)) <= 512 for group in groups)


@pytest.mark.model
async def test_texts_are_embedded_between_the_decodes_of_an_answer_which_stays_the_same() -> None:
    limits = HostLimits(context_tokens=512, slots=2)
    async with running_engine([models_folder()], limits=limits, threads=1) as engine:
        alone = text_of(await collect(engine, asked("Tell me about rain.", max_tokens=30)))
        texts = [f"{text} Number {number}." for number in range(8) for text in TEXTS]
        vectors: list[list[float]] = []

        async def embed() -> None:
            vectors.extend(await engine.embed(texts))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(embed)
            assert text_of(await collect(engine, asked("Tell me about rain.", max_tokens=30))) == alone
        assert len(vectors) == 24
        assert {len(vector) for vector in vectors} == {576}
        cat, kitten, rates = (np.array(vectors[place]) for place in range(3))
        assert cat @ kitten > cat @ rates
        assert await engine.embed([]) == []
        assert await engine.embed([""]) != []
        for wrong in (["x"] * 129, ["x" * 16_385]):
            with pytest.raises(BadRequest):
                await engine.embed(wrong)
