"""A vocabulary in which a format's markers are plain text, though the model has control tokens for them.

Elsewhere control tokens have no bytes, end an answer and are never sampled. LFM2 writes its calls with them, so for
such an answer they must be seen. A rule sees each as one byte that no character has: so a call can only be opened and
closed by the tokens meant for it, and none of them ever fits into an argument, whatever text it would print there. Must
not know samplers, grammars or llama.cpp.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from offload.language import Node, replaced

__all__ = ["FIRST_CODE", "MarkerVocabulary", "Vocabulary"]

FIRST_CODE = "\udcf8"
"""Behind the bytes of UTF-8; as `surrogateescape` writes the byte 0xF8."""
_MOST_MARKERS = 8


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
        if len(self._markers) > _MOST_MARKERS:
            raise ValueError("too many markers")
        longest_first = sorted(self._markers.values(), key=len, reverse=True)
        self._codes = {marker: chr(ord(FIRST_CODE) + place) for place, marker in enumerate(longest_first)}
        self._bytes = {
            token: self._codes[marker].encode(errors="surrogateescape") for token, marker in self._markers.items()}
        self._ids = {marker: token for token, marker in self._markers.items()}
        self._ids |= {self._codes[marker]: token for token, marker in self._markers.items()}
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
        """The first byte of each token as a rule sees it, -1 for one without."""
        found = self._model.first_bytes
        if self._markers:
            found = found.copy()
            for token, data in self._bytes.items():
                found[token] = data[0]
        return found

    def piece(self, token: int) -> bytes:
        """The bytes of a token as a rule sees them; a marker is one byte of its own."""
        return self._bytes.get(token) or self._model.piece(token)

    def shown(self, token: int) -> bytes:
        """The bytes of a token as text; a marker's is its name."""
        marker = self._markers.get(token)
        return self._model.piece(token) if marker is None else marker.encode()

    def language(self, root: Node) -> Node:
        """The language in which the markers can only be written by their own tokens."""
        return replaced(root, self._codes)

    def coded(self, text: str) -> bytes:
        """A text as a rule sees it, its markers being tokens."""
        for marker, code in self._codes.items():
            text = text.replace(marker, code)
        return text.encode(errors="surrogateescape")

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
