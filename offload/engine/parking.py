"""Remembered sequences outside the context: their states in this process's memory, one after another.

A decode goes over all cells of the context that are in use, also those of sequences that nobody goes on with at the
moment (measured: 2,880 idle cells cost one answer 12 %, eight at once 19 % of their speed); a state goes out and comes
back in 0.02 ms a token, with every bit (tested). Sequences are found within one space only. Must not know slots, cells
or scheduling.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from offload.engine.kvfiles import Contents, Space
from offload.engine.prefix import PrefixTree
from offload.ports import OWNER

__all__ = ["Parked", "Parking"]


@dataclass(frozen=True, slots=True, eq=False)
class Parked:
    """One sequence."""

    space: Space
    tokens: list[int] = field(repr=False)
    contents: Contents = field(repr=False)

    @property
    def positions(self) -> tuple[int, ...]:
        """Where it has checkpoints."""
        return tuple(position for position, _ in self.contents.checkpoints)

    @property
    def size_bytes(self) -> int:
        """What it takes."""
        return len(self.contents.state) + sum(len(state) for _, state in self.contents.checkpoints)


class Parking:
    """At most so many bytes; who was parked longest ago leaves first, and for a guest's none of the owner's."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._used_bytes = 0
        self._trees: dict[Space, PrefixTree[Parked]] = {}
        self._order: dict[Parked, None] = {}

    def __iter__(self) -> Iterator[Parked]:
        """Who is here, longest first."""
        return iter(list(self._order))

    def put(self, parked: Parked) -> list[Parked]:
        """Take one in; who had to leave for it comes back, maybe it itself. What is the beginning of it just goes."""
        for_owner = parked.space[0] == OWNER
        beginnings = {other for other, same in self.matches(parked.space, parked.tokens) if same == len(other.tokens)}
        by_rank = sorted(self._order, key=lambda one: one.space[0] == OWNER)      # guests' first, else as they came
        leaving = [one for one in by_rank if one not in beginnings and (for_owner or one.space[0] != OWNER)]
        freed = sum(one.size_bytes for one in (*beginnings, *leaving))
        if self._used_bytes - freed + parked.size_bytes > self.limit_bytes:
            return [parked]
        for other in beginnings:
            self.drop(other)
        left: list[Parked] = []
        for oldest in leaving:
            if self._used_bytes + parked.size_bytes <= self.limit_bytes:
                break
            self.drop(oldest)
            left.append(oldest)
        self._order[parked] = None
        self._used_bytes += parked.size_bytes
        self._trees.setdefault(parked.space, PrefixTree()).put(parked, parked.tokens)
        return left

    def matches(self, space: Space, tokens: Sequence[int]) -> Iterator[tuple[Parked, int]]:
        """Those of this space that begin like this, with how many tokens are the same, most first."""
        tree = self._trees.get(space)
        return tree.matches(tokens) if tree is not None else iter(())

    def holds(self, space: Space, tokens: list[int], positions: tuple[int, ...]) -> bool:
        """Whether just these tokens of this space are here, with these checkpoints."""
        return any(
            other.tokens == tokens and other.positions == positions
            for other, same in self.matches(space, tokens) if same == len(tokens))

    @property
    def room_bytes(self) -> int:
        """How much can come without anyone leaving."""
        return self.limit_bytes - self._used_bytes

    def drop(self, parked: Parked) -> None:
        """It is not here any more, if it ever was."""
        if parked not in self._order:
            return
        del self._order[parked]
        self._used_bytes -= parked.size_bytes
        tree = self._trees[parked.space]
        tree.drop(parked)
        if not tree:
            del self._trees[parked.space]

    def forget(self, principal: str) -> None:
        """Drop all of a principal."""
        for parked in self:
            if parked.space[0] == principal:
                self.drop(parked)
