"""The full-text index over the real encrypted database: changes, folders, and the quality it must reach."""

import json
import math
from pathlib import Path

import pytest

from node.store.database import Database
from node.store.fts import FtsIndex
from node.store.schema import INDEX
from search.analyzer import terms
from search.errors import QueryRejected
from search.local import scored_text, search_index
from search.ports import Document, FileState, Statistics

DATA = Path(__file__).parents[3] / "shared" / "data" / "search"
KEY = bytes(range(32))


@pytest.fixture
async def index(tmp_path: Path):
    database = await Database.open_rebuildable(tmp_path / "index.db", KEY, INDEX)
    yield FtsIndex(database)
    await database.close()


def document(name: str, *passages: str, folder: str = "/notes", title: str = "") -> Document:
    title = title or name
    return Document(
        FileState(folder, name, len(passages), 1),
        f"{folder}/{name}".encode().ljust(16)[:16],
        folder.strip("/"),
        title,
        passages,
        tuple(len(terms(scored_text(title, passage))) for passage in passages),
    )


async def names(index: FtsIndex, query: str, folders=None) -> list[str]:
    return [found.name for found in (await search_index(index, query, limit=10, folders=folders)).passages]


async def test_put_find_replace_drop(index: FtsIndex) -> None:
    await index.put(
        [document("a", "the plumber mends the roof"), document("b", "a garden of beans", "peas and the roof")]
    )
    assert await names(index, "roofs plumbers") == ["a", "b"]
    assert await names(index, "gardening") == ["b"]
    await index.put([document("a", "only tiles now")])
    assert await names(index, "plumber") == []
    assert await names(index, "tile") == ["a"]
    assert (await index.statistics(["roof", "plumber", "tile"])) == Statistics(
        3, 3 + 2 + 2, {"roof": 1, "plumber": 0, "tile": 1}
    )
    await index.drop([("/notes", "b"), ("/notes", "never there")])
    assert await names(index, "roof") == []
    assert [state.name for state, _ in await index.states()] == ["a"]
    await index.touch([FileState("/notes", "a", 7, 8)])
    assert [state for state, _ in await index.states()] == [FileState("/notes", "a", 7, 8)]


async def test_folders_are_kept_apart(index: FtsIndex) -> None:
    await index.put(
        [
            document("a", "roof one"),
            document("b", "roof two", "roof three", folder="/shared"),
            document("c", "garden", folder="/shared"),
        ]
    )
    assert sorted(await names(index, "roof")) == ["a", "b", "b"]
    assert await names(index, "roof", ["/shared"]) == ["b", "b"]
    assert await names(index, "roof", []) == []
    inside = await index.statistics(["roof"], folders=["/shared"])
    assert (inside.passages, inside.frequencies) == (3, {"roof": 2})
    # What stands in other folders has no part in the statistics of these: not even that a word exists there.
    assert (await index.statistics(["one"], folders=["/shared"])).frequencies == {"one": 0}


@pytest.mark.parametrize(
    "query", ['"', 'roof" OR garden', "NEAR(roof, 2)", "title:roof", "roof*", "-roof", "{roof}", "a AND", "^roof"]
)
async def test_nothing_in_a_query_is_syntax(index: FtsIndex, query: str) -> None:
    await index.put([document("a", "the roof"), document("n", "near and the title")])
    try:
        found = await names(index, query)
    except QueryRejected:
        assert terms(query) == []
    else:
        assert ("a" in found) is ("roof" in query)


async def test_a_query_without_words_is_rejected(index: FtsIndex) -> None:
    with pytest.raises(QueryRejected):
        await search_index(index, "the of ?!", limit=3)


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_terms_stand_nowhere_in_the_file(index: FtsIndex, tmp_path: Path) -> None:
    await index.put([document("a", "xylophoneconcerto")])
    raw = everything(tmp_path)
    assert len(raw) > 10_000
    assert b"xylophone" not in raw


# ------------------------------------------------------------ quality


def load(name: str, *, every: int = 1) -> tuple[list[dict], list[dict], dict[str, dict[str, int]]]:
    if not (DATA / name).exists():
        pytest.skip("the search collections are not beside the checkout")
    read = lambda file: [json.loads(line) for line in (DATA / name / file).read_text().splitlines()]  # noqa: E731
    grades: dict[str, dict[str, int]] = {}
    for line in (DATA / name / "qrels.tsv").read_text().splitlines():
        query, doc, grade = line.split("\t")
        grades.setdefault(query, {})[doc] = int(grade)
    return read("docs.jsonl"), read("queries.jsonl")[::every], grades


def ndcg(ranked: list[str], grades: dict[str, int], k: int = 10) -> float:
    gain = sum(grades.get(doc, 0) / math.log2(at + 2) for at, doc in enumerate(ranked[:k]))
    best = sum(grade / math.log2(at + 2) for at, grade in enumerate(sorted(grades.values(), reverse=True)[:k]))
    return gain / best if best else 0.0


@pytest.mark.parametrize(("collection", "least"), [("cranfield", 0.43), ("cacm", 0.50)])
async def test_ranking_reaches_exact_bm25(index: FtsIndex, collection: str, least: float) -> None:
    documents, queries, grades = load(collection)
    whole = [document(str(each["id"]), each["text"], title=each["title"]) for each in documents]
    for start in range(0, len(whole), 500):
        await index.put(whole[start : start + 500])
    scores = []
    for query in queries:
        if any(grades.get(str(query["id"]), {}).values()):
            scores.append(ndcg(await names(index, query["text"]), grades[str(query["id"])]))
    assert len(scores) > 40
    assert sum(scores) / len(scores) >= least
