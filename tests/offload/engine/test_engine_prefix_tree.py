"""The prefix tree against the plain way: comparing token by token."""

from hypothesis import given
from hypothesis import strategies as st

from offload.engine.prefix import PrefixTree

few_tokens = st.lists(st.integers(0, 2), max_size=12)


def plainly_same(one: list[int], other: list[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@given(st.lists(st.tuples(st.integers(0, 5), st.none() | few_tokens), max_size=30), few_tokens)
def test_it_finds_what_comparing_everything_finds(
    changes: list[tuple[int, list[int] | None]], wanted: list[int],
) -> None:
    tree: PrefixTree[int] = PrefixTree()
    known: dict[int, list[int]] = {}
    for holder, tokens in changes:
        if tokens is None:
            tree.drop(holder)
            known.pop(holder, None)
        else:
            tree.put(holder, tokens)
            known[holder] = tokens
    found = list(tree.matches(wanted))
    assert dict(found) == {who: same for who, tokens in known.items() if (same := plainly_same(tokens, wanted))}
    assert len(found) == len(dict(found))
    assert [same for _, same in found] == sorted((same for _, same in found), reverse=True)
    assert len(tree) == len(known)


def test_what_was_dropped_leaves_nothing_behind() -> None:
    tree: PrefixTree[str] = PrefixTree()
    for name, tokens in (("a", [1, 2, 3]), ("b", [1, 2, 4]), ("c", [1, 2]), ("d", [9])):
        tree.put(name, tokens)
    for name in "abcd":
        tree.drop(name)
        tree.drop(name)
    assert tree._root.children == {}
    assert list(tree.matches([1, 2, 3])) == []


def test_a_node_without_holder_and_with_one_child_is_joined_with_it() -> None:
    tree: PrefixTree[str] = PrefixTree()
    tree.put("a", [1, 2, 3, 4])
    tree.put("b", [1, 2, 5])
    tree.put("c", [1, 2, 3, 6])
    tree.drop("b")
    tree.drop("c")
    (only,) = tree._root.children.values()
    assert (only.begin, only.end, only.holders, only.children) == (0, 4, ["a"], {})
    assert list(tree.matches([1, 2, 3, 4, 5])) == [("a", 4)]


def test_the_longest_match_comes_first_and_the_rest_is_not_looked_at_before_it_is_asked_for() -> None:
    tree: PrefixTree[int] = PrefixTree()
    for number in range(1000):
        tree.put(number, [*range(5 * (number % 7)), 10_000 + number, number])
    assert next(tree.matches([*range(30), 10_006, 6, 1])) == (6, 32)
