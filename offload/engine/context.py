"""One llama.cpp context: the batch that is filled, decoded and read, and the memory of its sequences.

Everything here belongs to ONE thread. Must not know requests, text or who asks.
"""

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from offload.engine.crew import Crew
from offload.engine.library import C, Model
from offload.errors import ModelUnusable

__all__ = ["BATCH_TOKENS", "Context"]

BATCH_TOKENS = 512
_PARTIAL_ONLY = 1       # LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
# One token of a model with fewer weights is quicker on one thread: 4.9 ms against 8.4 (measured, 135M, two cores).
_ALONE_BELOW_WEIGHTS = 250_000_000
Logits = npt.NDArray[np.float32]


class Context:
    """Decodes batches of (token, position, sequence) and hands out the logits that were asked for."""

    def __init__(
        self, model: Model, *, context_tokens: int, sequences: int, threads: int, exact: bool = False,
        now_s: Callable[[], float] = time.perf_counter,
    ) -> None:
        """threads: how many a decode may have. exact: the same bits with any number of them.

        Raises ModelUnusable when there is no memory for it.
        """
        parameters = C.llama_context_default_params()
        parameters.n_ctx, parameters.n_seq_max = context_tokens, sequences
        parameters.n_batch = parameters.n_ubatch = BATCH_TOKENS
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.kv_unified = True        # one pool of cells for all sequences
        parameters.no_perf = True
        parameters.swa_full = True          # a sliding window forgets what a shared prefix needs
        self.handle = C.llama_init_from_model(model.handle, parameters)
        if not self.handle:
            raise ModelUnusable("There is no memory for the model's context.")
        self._model = model
        self._memory = C.llama_get_memory(self.handle)
        self._batch = C.llama_batch_init(BATCH_TOKENS, 0, 1)
        view = np.ctypeslib.as_array
        self._tokens = view(self._batch.token, (BATCH_TOKENS,))
        self._positions = view(self._batch.pos, (BATCH_TOKENS,))
        self._wanted = view(self._batch.logits, (BATCH_TOKENS,))
        view(self._batch.n_seq_id, (BATCH_TOKENS,))[:] = 1
        self._row = ctypes.c_float * model.size
        self._filled = 0
        self._adapter: Any = None
        alone = exact or model.parameters < _ALONE_BELOW_WEIGHTS
        self._crew = Crew(threads, lone=1 if alone else threads, steady=exact)
        self._now_s = now_s
        self.decodes = 0
        self.sequences = sequences
        self.context_tokens = int(C.llama_n_ctx(self.handle))

    def close(self) -> None:
        """Free the context."""
        if self.handle:
            C.llama_batch_free(self._batch)
            C.llama_free(self.handle)
            self.handle = None

    def use_threads(self, count: int) -> None:
        """Compute with at most so many from the next decode on."""
        self._crew.most = count

    def use_adapter(self, handle: Any) -> None:
        """Compute with this LoRA adapter from the next decode on, None for without. Takes under a millisecond.

        What the memory holds was read with whatever was in use then; keeping that apart is the caller's.
        """
        if handle is self._adapter:
            return
        given = (C.llama_adapter_lora_p_ctypes * 1)(*([handle] if handle else ()))
        scales = (ctypes.c_float * 1)(1.0)
        if C.llama_set_adapters_lora(self.handle, given, 1 if handle else 0, scales) != 0:
            raise ModelUnusable("The model can't compute with this adapter.")
        self._adapter = handle

    @property
    def room(self) -> int:
        """How many tokens the batch still takes."""
        return BATCH_TOKENS - self._filled

    def begin_batch(self) -> None:
        """Empty the batch."""
        self._filled = 0

    def add(self, sequence: int, position: int, tokens: list[int], *, want_last: int) -> int:
        """Put tokens into the batch; returns the row of the last one. want_last: for how many, at the end, `logits`."""
        start, end = self._filled, self._filled + len(tokens)
        if len(tokens) == 1:        # most are: slices take five times as long
            self._tokens[start], self._positions[start], self._wanted[start] = tokens[0], position, want_last > 0
            self._batch.seq_id[start][0] = sequence
            self._filled = end
            return start
        self._tokens[start:end] = tokens
        self._positions[start:end] = np.arange(position, position + len(tokens))
        self._wanted[start:end] = 0
        self._wanted[max(start, end - want_last):end] = 1
        for row in range(start, end):
            self._batch.seq_id[row][0] = sequence
        self._filled = end
        return end - 1

    def decode(self) -> int:
        """Run the batch. 0: done. 1: no room in the memory, nothing changed. Else its sequences are lost."""
        self._batch.n_tokens = self._filled
        self.decodes += 1
        threads, begun_s = self._crew.threads(self._filled), self._now_s()
        C.llama_set_n_threads(self.handle, threads, threads)
        result = int(C.llama_decode(self.handle, self._batch))
        if result == 0:
            self._crew.learn(self._filled, threads, self._now_s() - begun_s)
        return result

    def logits(self, row: int) -> Logits:
        """The logits of a row, one per token of the vocabulary. Valid until the next decode."""
        first = C.llama_get_logits_ith(self.handle, row).contents
        # np.ctypeslib.as_array is ten times as slow
        return np.frombuffer(memoryview(self._row.from_address(ctypes.addressof(first))), np.float32)

    def sample(self, chain: Any, row: int) -> int:
        """A token from this row by a llama.cpp sampler chain, which is told of it."""
        return int(C.llama_sampler_sample(chain, self.handle, row))

    def cut(self, sequence: int, keep: int) -> bool:
        """Forget a sequence's tokens from position `keep` on. False when this model's memory can't be cut there."""
        return bool(C.llama_memory_seq_rm(self._memory, sequence, keep, -1))

    def copy(self, source: int, target: int, count: int) -> None:
        """Let an empty target sequence begin with source's first tokens; cells are shared, nothing is computed.

        A model with a state per sequence (recurrent, hybrid) is copied whole: count must be all of it.
        """
        begin, end = (-1, -1) if self._model.keeps_state_per_sequence else (0, count)
        C.llama_memory_seq_cp(self._memory, source, target, begin, end)

    def checkpoint(self, sequence: int) -> bytes:
        """The recurrent state of a sequence as it is now, to come back to while its keys and values are there."""
        return self._state(sequence, _PARTIAL_ONLY)

    def restore(self, sequence: int, state: bytes) -> bool:
        """Put a checkpoint's state back; then `cut` at its position succeeds. False: the sequence is not to be used."""
        return self._set_state(sequence, state, _PARTIAL_ONLY)

    def save(self, sequence: int) -> bytes:
        """All that the memory holds of a sequence: half the conversation it was made from, so keep it sealed."""
        return self._state(sequence, 0)

    def load(self, sequence: int, state: bytes) -> bool:
        """Fill an empty sequence from `save`, of the same model and settings only. False: it holds nothing now."""
        if self._set_state(sequence, state, 0):
            return True
        self.forget(sequence)
        return False

    def _state(self, sequence: int, flags: int) -> bytes:
        size = int(C.llama_state_seq_get_size_ext(self.handle, sequence, flags))
        buffer = (ctypes.c_uint8 * size)()
        written = int(C.llama_state_seq_get_data_ext(self.handle, buffer, size, sequence, flags)) if size else 0
        return memoryview(buffer)[:written].tobytes()

    def _set_state(self, sequence: int, state: bytes, flags: int) -> bool:
        if not state:
            return False
        buffer = (ctypes.c_uint8 * len(state)).from_buffer_copy(state)
        return int(C.llama_state_seq_set_data_ext(self.handle, buffer, len(state), sequence, flags)) == len(state)

    def forget(self, sequence: int) -> None:
        """Forget a sequence."""
        C.llama_memory_seq_rm(self._memory, sequence, -1, -1)

    def warm_up(self) -> None:
        """Run a prompt and two single tokens through every kernel: a CPU that lacks one dies here and not in an answer.

        Raises ModelUnusable.
        """
        probe = [max(0, self._model.begin_token)] * 32
        for position, tokens in ((0, probe), (32, probe[:1]), (33, probe[:1])):
            self.begin_batch()
            self.add(0, position, tokens, want_last=True)
            if self.decode() != 0:
                raise ModelUnusable("The model does not run.")
        self.forget(0)
        self.decodes = 0
