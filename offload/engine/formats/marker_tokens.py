"""A vocabulary in which a format's markers are plain text, though the model has control tokens for them.

Elsewhere control tokens have no bytes, end an answer and are never sampled. LFM2 writes its calls with them, so for
such an answer they must be seen. Must not know samplers, grammars or llama.cpp.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["MarkerVocabulary", "Vocabulary"]


class Vocabulary(Protocol):
    """What is needed of a model."""

    end_tokens: frozenset[int]
    control_tokens: frozenset[int]

    @property
    def first_bytes(self) -> npt.NDArray[np.int16]:
        """The first byte of each token, -1 for one without."""
        ...

    def piece(self, token: int) -> bytes:
        """The bytes of a token, empty for a control token."""
        ...

    def tokenise(self, text: str, *, begin: bool, control: bool) -> list[int]:
        """Token ids of a text. control: read control tokens in it."""
        ...


class MarkerVocabulary:
    """The model's vocabulary with the markers let through, in both directions."""

    def __init__(self, model: Vocabulary, markers: Sequence[str]) -> None:
        """Markers that are no single control token of this model are left as they are. End tokens stay end tokens."""
        self._model = model
        self._markers = {
            ids[0]: marker for marker in markers
            if len(ids := model.tokenise(marker, begin=False, control=True)) == 1 and ids[0] in model.control_tokens
            and ids[0] not in model.end_tokens}
        self._ids = {marker: token for token, marker in self._markers.items()}
        texts = sorted(self._ids, key=len, reverse=True)
        self._pattern = re.compile(f"({'|'.join(map(re.escape, texts))})") if texts else None
        self.end_tokens = model.end_tokens
        self.control_tokens = model.control_tokens - self._markers.keys()

    @property
    def markers(self) -> frozenset[int]:
        """The control tokens that are let through."""
        return frozenset(self._markers)

    @cached_property
    def first_bytes(self) -> npt.NDArray[np.int16]:
        """The first byte of each token, -1 for one without; markers have one."""
        found = self._model.first_bytes.copy()
        for token, marker in self._markers.items():
            found[token] = marker.encode()[0]
        return found

    def piece(self, token: int) -> bytes:
        """The bytes of a token; a marker's text."""
        marker = self._markers.get(token)
        return self._model.piece(token) if marker is None else marker.encode()

    def tokenise(self, text: str, *, begin: bool, control: bool) -> list[int]:
        """Token ids of a text; markers in it become their tokens, other control tokens only when asked for."""
        if self._pattern is None or control:
            return self._model.tokenise(text, begin=begin, control=control)
        found: list[int] = []
        for number, part in enumerate(self._pattern.split(text)):
            if part in self._ids:
                found.append(self._ids[part])
            elif part or not number:
                found += self._model.tokenise(part, begin=begin and not number, control=False)
        return found
