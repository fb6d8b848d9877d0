"""A sequence of the context: whose it is, what its memory holds, where it can go back to, with whom it shares cells.

Must not know llama.cpp, who claims it or what is done with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from offload.engine.answer import Answer
from offload.engine.kvfiles import Space

__all__ = ["NOBODY", "Checkpoint", "Slot"]

NOBODY: Space = ("", "")


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """The recurrent state of a sequence at one position."""

    position: int
    state: bytes = field(repr=False)


@dataclass(slots=True, eq=False)
class Slot:
    """A sequence of the context and the answer that is at work on it, if any."""

    sequence: int
    tokens: list[int] = field(default_factory=list)     # what its memory holds
    space: Space = NOBODY
    used: int = 0
    idle_from: int = 0          # decodes, when its last answer left
    answer: Answer | None = None
    row: int = -1
    checkpoints: list[Checkpoint] = field(default_factory=list)
    origins: list[tuple[int, int]] = field(default_factory=list)     # of cells that may be shared: (who, up to where)
    origin: int = 0             # of all later ones
    noted: int = 0              # how many tokens later prompts can find

    @property
    def unread(self) -> int:
        """How much of the prompt is still to be decoded."""
        return max(0, len(self.answer.prompt) - len(self.tokens)) if self.answer is not None else 0

    def spans(self, length: int | None = None) -> Iterator[tuple[int, int, int]]:
        """The cells of its first tokens, of all by default, as (who decoded them, from, to)."""
        length = len(self.tokens) if length is None else length
        begin = 0
        for origin, end in (*self.origins, (self.origin, length)):
            if begin < min(end, length):
                yield origin, begin, min(end, length)
            begin = end

    def origins_up_to(self, keep: int) -> list[tuple[int, int]]:
        """Who decoded its first tokens."""
        return [(origin, end) for origin, _, end in self.spans(keep)]
