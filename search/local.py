"""A search in this device's own index: the heaviest words find candidates, exact scores order them. Must not know
peers or files."""

from collections.abc import Collection
from dataclasses import dataclass

from search.analyzer import terms
from search.errors import QueryRejected
from search.ports import IndexedPassage, Statistics, TermIndex
from search.rank import heaviest_words, score

__all__ = ["CANDIDATES", "LocalFinds", "scored_text", "search_index"]

CANDIDATES = 100


@dataclass(frozen=True, slots=True)
class LocalFinds:
    """What the index gave, best first, and the statistics it was scored with."""

    passages: tuple[IndexedPassage, ...]
    statistics: Statistics


async def search_index(
    index: TermIndex, query: str, *, limit: int, folders: Collection[str] | None = None,
) -> LocalFinds:
    """The best passages of these folders (None: of all). Scores use the statistics of just these folders, so what
    stands in others has no part in them. Raises QueryRejected when no word of the query counts."""
    wanted = set(terms(query))
    if not wanted:
        raise QueryRejected
    statistics = await index.statistics(wanted, folders=folders)
    words = heaviest_words(query, statistics)
    if not words:
        return LocalFinds((), statistics)
    found = await index.candidates(words, limit=CANDIDATES, folders=folders)
    ranked = score(query, [scored_text(passage.title, passage.text) for passage in found], statistics)
    return LocalFinds(tuple(found[each.at] for each in ranked[:limit]), statistics)


def scored_text(title: str, text: str) -> str:
    """What of a passage is scored, everywhere."""
    return f"{title} {text}"
