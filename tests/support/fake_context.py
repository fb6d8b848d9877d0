"""A context without a model for tests of the scheduler: counts decodes, checks positions, and "writes" by rule.

Its memory is a list of tokens per sequence, so a test can see what really was read, kept, shared and forgotten.
"""

import json
from dataclasses import dataclass, field

from offload.engine.writing import PlainWriter

__all__ = ["FakeContext", "FakeVocabulary", "ScriptedSampler"]


class FakeVocabulary:
    """Token n is written as the letter n of the alphabet; 0 ends an answer, 1 is a control token."""

    end_tokens = frozenset({0})
    control_tokens = frozenset({0, 1})

    def piece(self, token: int) -> bytes:
        return b"" if token < 2 else bytes([96 + token % 26])


@dataclass
class FakeContext:
    """Stands for offload.engine.context.Context."""

    context_tokens: int = 1000
    batch_tokens: int = 512
    results: list[int] = field(default_factory=list)     # of the next decodes; then 0
    memory: dict[int, list[int]] = field(default_factory=dict)
    batches: list[list[tuple[int, int]]] = field(default_factory=list)      # (sequence, tokens) of each decode
    shared: list[tuple[int, int, int]] = field(default_factory=list)
    can_cut: bool = True
    restored: dict[int, int] = field(default_factory=dict)
    decodes: int = 0
    _batch: list[tuple[int, int, list[int]]] = field(default_factory=list)

    @property
    def room(self) -> int:
        return self.batch_tokens - sum(len(tokens) for _, _, tokens in self._batch)

    def begin_batch(self) -> None:
        self._batch = []

    def add(self, sequence: int, position: int, tokens: list[int], *, want_last: int) -> int:
        assert position == len(self.memory.setdefault(sequence, [])), "a gap or an overlap in the memory"
        assert len(tokens) <= self.room
        self._batch.append((sequence, position, list(tokens)))
        return sum(len(tokens) for _, _, tokens in self._batch) - 1

    def decode(self) -> int:
        result = self.results.pop(0) if self.results else 0
        self.decodes += 1
        self.batches.append([(sequence, len(tokens)) for sequence, _, tokens in self._batch])
        if result == 0:
            self.restored.clear()
            for sequence, _, tokens in self._batch:
                self.memory[sequence] += tokens
            assert sum(len(tokens) for tokens in self.memory.values()) <= 2 * self.context_tokens
        return result

    def cut(self, sequence: int, keep: int) -> bool:
        possible = self.can_cut or self.restored.get(sequence) == keep
        if possible:
            del self.memory[sequence][keep:]
        return possible

    def checkpoint(self, sequence: int) -> bytes:
        return json.dumps(self.memory[sequence]).encode()

    def restore(self, sequence: int, state: bytes) -> bool:
        tokens = json.loads(state)
        self.restored[sequence] = len(tokens)
        return bool(self.memory[sequence][:len(tokens)] == tokens)

    def save(self, sequence: int) -> bytes:
        return json.dumps(self.memory[sequence]).encode()

    def load(self, sequence: int, state: bytes) -> bool:
        assert not self.memory.get(sequence)
        self.memory[sequence] = json.loads(state)
        return True

    def copy(self, source: int, target: int, count: int) -> None:
        assert not self.memory.get(target)
        assert self.can_cut or count == len(self.memory[source]), "a state is copied whole"
        self.memory[target] = self.memory[source][:count]
        self.shared.append((source, target, count))

    def forget(self, sequence: int) -> None:
        self.memory[sequence] = []


class ScriptedSampler(PlainWriter):
    """Writes the scripted tokens, one per decode, then the end token."""

    def __init__(self, tokens: list[int]) -> None:
        super().__init__(self)
        self.left = list(tokens)
        self.asked = 0
        self.closed = False

    def next(self, _context: object, _row: int) -> int | None:
        assert not self.closed
        self.asked += 1
        return self.left.pop(0) if self.left else 0

    def close(self) -> None:
        self.closed = True
