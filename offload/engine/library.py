"""The llama.cpp library, loaded and silenced once, and a model opened with it: vocabulary, text to ids and back, facts.

Reading a vocabulary is safe from any thread; everything with a context belongs to context.py. Must not know requests,
processes or files other than the model it is given.
"""

import ctypes
import os
from functools import cached_property

from offload.errors import BadPrompt, ModelUnusable

# Waiting threads look for 20 us whether it goes on, then sleep (offload.child.process). It must be set before the
# library is loaded, so all others get the library from here; a user's own value stays.
os.environ.setdefault("GOMP_SPINCOUNT", "500")

import numpy as np
import numpy.ctypeslib  # numpy would load it late, when the box is shut
import numpy.typing as npt
from llama_cpp import _ggml as ggml
from llama_cpp import llama_cpp as C
from llama_cpp.llama_grammar import json_schema_to_gbnf

__all__ = ["C", "Model", "ggml", "instruction_sets", "json_schema_to_gbnf", "open_library"]

_PIECE_BYTES = 256
_META_BYTES = 256
_ATTR_NORMAL, _ATTR_CONTROL = 4, 8       # LLAMA_TOKEN_ATTR_*
_TWO_BYTES_PER_VALUE = 2
_state: dict[str, object] = {}


def open_library() -> None:
    """Load llama.cpp once, with its log thrown away: it prints model metadata and parts of prompts."""
    if not _state:
        _state["log"] = C.llama_log_callback(lambda _level, _text, _data: None)
        C.llama_log_set(_state["log"], ctypes.c_void_p(0))
        C.llama_backend_init()


def instruction_sets() -> str:
    """The CPU features in use, such as "AVX2 FMA REPACK"."""
    text = str(C.llama_print_system_info().decode(errors="replace"))
    pairs = (part.split("=") for part in text.replace("CPU :", "").split("|") if "=" in part)
    return " ".join(name.strip() for name, value in pairs if value.strip() == "1")


class Model:
    """An open model file."""

    def __init__(self, path: str, *, extra_buffers: bool, gpu_layers: int = 0) -> None:
        """Raises ModelUnusable. extra_buffers: repacked weights and AMX, faster where the CPU really has them.

        gpu_layers: how many layers, the output last, are computed on graphics cards; needs a build for that.
        """
        open_library()
        parameters = C.llama_model_default_params()
        parameters.use_extra_bufts = extra_buffers
        parameters.n_gpu_layers = gpu_layers
        self.handle = C.llama_model_load_from_file(path.encode(), parameters)
        if not self.handle:
            raise ModelUnusable()
        self.vocab = C.llama_model_get_vocab(self.handle)
        self.size = int(C.llama_vocab_n_tokens(self.vocab))
        self._pieces: dict[int, bytes] = {}
        self.end_tokens = frozenset(t for t in range(self.size) if C.llama_vocab_is_eog(self.vocab, t))
        self.control_tokens = frozenset(t for t in range(self.size) if self._is_control(t))

    def close(self) -> None:
        """Free the model; contexts on it must be closed before."""
        if self.handle:
            C.llama_model_free(self.handle)
            self.handle = None

    def _is_control(self, token: int) -> bool:
        attributes = int(C.llama_vocab_get_attr(self.vocab, token))
        return bool(attributes & _ATTR_CONTROL) or (not attributes & _ATTR_NORMAL and not self.piece(token))

    def piece(self, token: int) -> bytes:
        """The bytes of one token; empty for a control token. May be a part of a character."""
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._piece(token, special=False)
        return known

    def _piece(self, token: int, *, special: bool) -> bytes:
        size = _PIECE_BYTES
        while True:
            buffer = ctypes.create_string_buffer(size)
            written = int(C.llama_token_to_piece(self.vocab, token, buffer, size, 0, special))
            if written >= 0:
                return buffer.raw[:written]
            size = -written

    @cached_property
    def first_bytes(self) -> npt.NDArray[np.int16]:
        """The first byte of each token, -1 for one without. Reads the whole vocabulary once: 0.1 s."""
        pieces = (self.piece(token) for token in range(self.size))
        return np.fromiter((piece[0] if piece else -1 for piece in pieces), dtype=np.int16, count=self.size)

    def text_of(self, tokens: tuple[int, ...]) -> bytes:
        """The bytes of many tokens, control tokens left out."""
        return b"".join(self.piece(token) for token in tokens)

    def control_texts(self) -> tuple[str, ...]:
        """How the control tokens are written, longest first."""
        texts = {self._piece(token, special=True).decode(errors="replace") for token in self.control_tokens}
        return tuple(sorted((text for text in texts if len(text) > 1), key=len, reverse=True))

    def tokenise(self, text: str, *, begin: bool, control: bool) -> list[int]:
        """Token ids. begin: put the model's begin token in front if it wants one. control: read control tokens in text.

        Raises BadPrompt.
        """
        data = text.encode("utf-8", errors="replace")
        room = len(data) + 8
        buffer = (C.llama_token * room)()
        count = int(C.llama_tokenize(self.vocab, data, len(data), buffer, room, begin, control))
        if count < 0:
            raise BadPrompt()
        return np.frombuffer(buffer, dtype=np.int32, count=count).tolist() if count else []

    def token_text(self, token: int) -> str:
        """How a control token is written, empty for none."""
        return self._piece(token, special=True).decode(errors="replace") if token >= 0 else ""

    @property
    def begin_token(self) -> int:
        """The id of the begin token, -1 for none."""
        return int(C.llama_vocab_bos(self.vocab))

    @property
    def end_token(self) -> int:
        """The id of the end token, -1 for none."""
        return int(C.llama_vocab_eos(self.vocab))

    @property
    def template(self) -> str | None:
        """The chat template that the file carries."""
        raw = C.llama_model_chat_template(self.handle, None)
        return raw.decode("utf-8", errors="replace") if raw else None

    @property
    def parameters(self) -> int:
        """How many weights it has."""
        return int(C.llama_model_n_params(self.handle))

    @property
    def trained_context_tokens(self) -> int:
        """The longest context that the model was trained for."""
        return int(C.llama_model_n_ctx_train(self.handle))

    @property
    def keeps_state_per_sequence(self) -> bool:
        """Recurrent or hybrid memory: a sequence can't be cut in the middle."""
        return bool(C.llama_model_is_recurrent(self.handle) or C.llama_model_is_hybrid(self.handle))

    @property
    def description(self) -> str:
        """Architecture, size and quantisation as llama.cpp names them."""
        buffer = ctypes.create_string_buffer(_META_BYTES)
        C.llama_model_desc(self.handle, buffer, _META_BYTES)
        return buffer.value.decode(errors="replace")

    def metadata(self, key: str) -> str:
        """One value of the file's metadata, empty when absent, cut at 255 bytes."""
        buffer = ctypes.create_string_buffer(_META_BYTES)
        found = int(C.llama_model_meta_val_str(self.handle, key.encode(), buffer, _META_BYTES))
        return buffer.value.decode(errors="replace") if found >= 0 else ""

    def cache_bytes(self, context_tokens: int) -> int:
        """An upper estimate of the memory for context_tokens of keys and values in 16 bits."""
        width = max(1, int(C.llama_model_n_embd(self.handle)) // max(1, int(C.llama_model_n_head(self.handle))))
        per_token = 2 * int(C.llama_model_n_layer(self.handle)) * int(C.llama_model_n_head_kv(self.handle)) * width
        return per_token * _TWO_BYTES_PER_VALUE * context_tokens
