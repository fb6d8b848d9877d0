"""Static vectors of short texts: 256 numbers each, from weights inside the installed package.

The sole importer of wordllama, loaded in the scan worker alone. Never downloads. Must not know processes, peers or what
the vectors are for.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

# wordllama imports an HTTP client for a download that is never made here, and loading that client opens an internet
# socket. An empty module in its place keeps offline true, and a download impossible.
_NO_CLIENT = ModuleType("requests")
sys.modules.setdefault("requests", _NO_CLIENT)
import wordllama  # noqa: E402

if sys.modules["requests"] is _NO_CLIENT:
    del sys.modules["requests"]

__all__ = ["DIMENSIONS", "StaticVectors"]

DIMENSIONS = 256
# Beyond this an average over tokens says nothing more about a text.
_LONGEST_TEXT_CHARS = 20_000


class StaticVectors:
    """The weights, loaded (0.1 s, 35 MB)."""

    def __init__(self) -> None:
        # Without cache_dir the loader looks in the working directory and then wants to download.
        self._model = wordllama.WordLlama.load(
            cache_dir=Path(wordllama.__file__).parent, disable_download=True, dim=DIMENSIONS)

    def embed(self, texts: Sequence[str]) -> bytes:
        """One vector of length 1 per text, in order, as little-endian 32-bit floats one after another.

        A text without any known word gets zeros.
        """
        if not texts:
            return b""
        raw = self._model.embed([text[:_LONGEST_TEXT_CHARS] for text in texts], norm=False)
        vectors = np.nan_to_num(np.asarray(raw, dtype=np.float32).reshape(len(texts), DIMENSIONS))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        data: bytes = vectors.astype("<f4").tobytes()
        return data
