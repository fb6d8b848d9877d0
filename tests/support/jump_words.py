"""A vocabulary of bytes and a few longer pieces, and contexts whose logits want what a test says, for jumping ahead."""

from collections.abc import Callable, Sequence

import numpy as np

from offload.engine.context import Logits

__all__ = ["PieceWords", "WantingContext"]

END, CONTROL = 256, 257


class PieceWords:
    """Tokens 0 to 255 are the bytes, 256 ends an answer, 257 is a control token; then the given pieces.

    tokenise takes the longest piece at each place.
    """

    end_tokens = frozenset({END})
    control_tokens = frozenset({END, CONTROL})

    def __init__(self, pieces: Sequence[str] = ()) -> None:
        self._pieces = [*(bytes([byte]) for byte in range(256)), b"", b"", *(piece.encode() for piece in pieces)]
        self.size = len(self._pieces)
        self.first_bytes = np.array([piece[0] if piece else -1 for piece in self._pieces], dtype=np.int16)

    def piece(self, token: int) -> bytes:
        return self._pieces[token]

    def id_of(self, piece: str) -> int:
        return self._pieces.index(piece.encode())

    def tokenise(self, text: str, *, begin: bool, control: bool) -> list[int]:
        assert not begin
        assert not control
        data, ids = text.encode(), []
        while data:
            fits = [token for token, piece in enumerate(self._pieces) if piece and data.startswith(piece)]
            best = max(fits, key=lambda token: len(self._pieces[token]))
            ids.append(best)
            data = data[len(self._pieces[best]):]
        return ids

    def text_of(self, tokens: Sequence[int]) -> str:
        return b"".join(self._pieces[token] for token in tokens).decode()


class WantingContext:
    """Stands for a context: the row after each prefix of what was decoded wants the tokens that `wants` says.

    Keeps what the memory would hold, and counts decodes. wants(text so far) gives tokens, best first.
    """

    def __init__(self, words: PieceWords, wants: Callable[[bytes], Sequence[int]]) -> None:
        self._words = words
        self._wants = wants
        self._rows: list[bytes] = []
        self.memory: list[int] = []
        self.decodes = 0

    def decode(self, tokens: Sequence[int]) -> range:
        """Returns all rows of this decode."""
        self.decodes += 1
        self._rows = []
        for token in tokens:
            self.memory.append(token)
            self._rows.append(b"".join(self._words.piece(known) for known in self.memory))
        return range(len(self._rows))

    def take_back(self, count: int) -> None:
        if count:
            del self.memory[-count:]

    def logits(self, row: int) -> Logits:
        logits = np.zeros(self._words.size, dtype=np.float32)
        for rank, token in enumerate(self._wants(self._rows[row])):
            logits[token] = 100.0 - rank
        return logits
