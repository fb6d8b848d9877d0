"""Which remembered token sequence begins like a new one: a radix tree, the cost of a look-up is that of the match.

One tree holds the sequences of one principal only; who keeps them apart is memory.py. Must not know the model's memory,
files or who asks.
"""

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["PrefixTree"]

Holder = TypeVar("Holder")
Tokens = npt.NDArray[np.int32]


class _Node(Generic[Holder]):
    """A stretch of tokens: path[begin:end], where path holds everything from the root on."""

    __slots__ = ("begin", "children", "end", "holders", "parent", "path")

    def __init__(self, path: Tokens, begin: int, end: int, parent: "_Node[Holder] | None") -> None:
        self.path = path
        self.begin = begin
        self.end = end
        self.parent = parent
        self.children: dict[int, _Node[Holder]] = {}
        self.holders: list[Holder] = []

    def everyone(self) -> Iterator[Holder]:
        """Who ends here or further down."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield from node.holders
            waiting.extend(node.children.values())


class PrefixTree(Generic[Holder]):
    """Holders of token sequences, each with one sequence, found by how a sequence begins."""

    def __init__(self) -> None:
        self._root: _Node[Holder] = _Node(np.empty(0, np.int32), 0, 0, None)
        self._places: dict[Holder, _Node[Holder]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def put(self, holder: Holder, tokens: Sequence[int]) -> None:
        """Note that this holder has these tokens, and no longer those it had before."""
        self.drop(holder)
        path = np.array(tokens, dtype=np.int32)
        node = self._root
        while node.end < len(path):
            child = node.children.get(int(path[node.end]))
            if child is None:
                child = _Node(path, node.end, len(path), node)
                node.children[int(path[node.end])] = child
            else:
                same = _same(child.path, path, child.begin, child.end)
                if same < child.end:
                    child = self._split(child, same)
            node = child
        node.holders.append(holder)
        self._places[holder] = node

    def drop(self, holder: Holder) -> None:
        """Forget a holder; unknown ones are ignored."""
        node = self._places.pop(holder, None)
        if node is None:
            return
        node.holders.remove(holder)
        while not node.holders and node.parent is not None:
            parent = node.parent
            key = int(node.path[node.begin])
            if not node.children:
                del parent.children[key]
                node = parent
                continue
            if len(node.children) == 1:
                (child,) = node.children.values()
                child.begin, child.parent = node.begin, parent
                parent.children[key] = child
            return

    def matches(self, tokens: Sequence[int]) -> Iterator[tuple[Holder, int]]:
        """Everyone who begins like this, with how many tokens are the same: most first, none with nothing the same."""
        wanted = np.array(tokens, dtype=np.int32)
        way: list[tuple[_Node[Holder], int]] = []
        node = self._root
        while node.end < len(wanted):
            child = node.children.get(int(wanted[node.end]))
            if child is None:
                break
            same = _same(child.path, wanted, child.begin, child.end)
            way.append((child, same))
            node = child
            if same < child.end:
                break
        below: _Node[Holder] | None = None
        for node, same in reversed(way):
            yield from ((holder, same) for holder in node.holders)
            for child in node.children.values():
                if child is not below:
                    yield from ((holder, same) for holder in child.everyone())
            below = node

    @staticmethod
    def _split(node: _Node[Holder], at: int) -> _Node[Holder]:
        """Cut a node in two; returns the upper half."""
        assert node.parent is not None
        upper = _Node(node.path, node.begin, at, node.parent)
        node.parent.children[int(node.path[node.begin])] = upper
        node.begin, node.parent = at, upper
        upper.children[int(node.path[at])] = node
        return upper


def _same(known: Tokens, wanted: Tokens, begin: int, end: int) -> int:
    """Where the two part, looking from begin to end."""
    end = min(end, len(wanted))
    other = known[begin:end] != wanted[begin:end]
    first = int(other.argmax()) if end > begin else 0
    return begin + first if end > begin and other[first] else end
