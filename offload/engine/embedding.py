"""Texts as vectors: the pooled hidden states of a model, many texts in one decode.

Uses a context of its own, so that no answer's memory is touched. How well the vectors tell texts apart is the model's
business: one made for search has its own way of pooling in its file, any other one gets the mean. One thread only. Must
not know requests or the pipe.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from offload.engine.context import BATCH_TOKENS
from offload.engine.library import C, Model
from offload.errors import EngineError, ModelUnusable

__all__ = ["TextEmbedder", "batches"]

_AT_ONCE = 32
_POOLING_UNSPECIFIED, _POOLING_NONE, _POOLING_MEAN = -1, 0, 1      # LLAMA_POOLING_TYPE_*


class TextEmbedder:
    """Embeds token sequences of one model."""

    def __init__(self, model: Model, *, threads: int) -> None:
        """Raises ModelUnusable when there is no memory for it."""
        self._handle = self._open(model, threads, _POOLING_UNSPECIFIED)
        if int(C.llama_pooling_type(self._handle)) == _POOLING_NONE:
            C.llama_free(self._handle)
            self._handle = self._open(model, threads, _POOLING_MEAN)
        self._memory = C.llama_get_memory(self._handle)
        self._batch = C.llama_batch_init(BATCH_TOKENS, 0, 1)
        self.width = int(C.llama_model_n_embd(model.handle))

    @staticmethod
    def _open(model: Model, threads: int, pooling: int) -> C.llama_context_p:
        parameters = C.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = BATCH_TOKENS
        parameters.n_seq_max = _AT_ONCE
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.kv_unified = parameters.no_perf = parameters.embeddings = True
        parameters.pooling_type = pooling
        handle = C.llama_init_from_model(model.handle, parameters)
        if not handle:
            raise ModelUnusable("There is no memory for embedding texts.")
        return handle

    def close(self) -> None:
        """Free the context."""
        if self._handle:
            C.llama_batch_free(self._batch)
            C.llama_free(self._handle)
            self._handle = None

    def embed(self, batch: Sequence[Sequence[int]]) -> list[list[float]]:
        """A vector of length 1 for each, zeros for an empty one. At most one of `batches`. Raises EngineError."""
        if self._memory:
            C.llama_memory_clear(self._memory, True)
        filled = 0
        for sequence, tokens in enumerate(batch):
            for position, token in enumerate(tokens):
                self._batch.token[filled], self._batch.pos[filled] = token, position
                self._batch.n_seq_id[filled], self._batch.seq_id[filled][0] = 1, sequence
                self._batch.logits[filled] = 1
                filled += 1
        self._batch.n_tokens = filled
        if filled and int(C.llama_decode(self._handle, self._batch)) != 0:
            raise EngineError("The model failed at embedding these texts.")
        return [self._vector(sequence) if tokens else [0.0] * self.width for sequence, tokens in enumerate(batch)]

    def _vector(self, sequence: int) -> list[float]:
        pointer = C.llama_get_embeddings_seq(self._handle, sequence)
        if not pointer:
            raise EngineError("The model gives no embeddings.")
        vector = np.ctypeslib.as_array(pointer, (self.width,)).astype(np.float64)
        length = float(np.linalg.norm(vector))
        return [float(value) for value in (vector / length if length > 0 else vector)]


def batches(texts: Sequence[Sequence[int]]) -> Iterator[list[list[int]]]:
    """Token sequences, each cut at what one decode takes, grouped so that each group is one decode."""
    group: list[list[int]] = []
    room = BATCH_TOKENS
    for tokens in texts:
        cut = list(tokens[:BATCH_TOKENS])
        if group and (len(cut) > room or len(group) == _AT_ONCE):
            yield group
            group, room = [], BATCH_TOKENS
        group.append(cut)
        room -= len(cut)
    if group:
        yield group
