"""The index follows the files: new, changed, touched, gone, unreadable; over real folders and the real database."""

import os
from pathlib import Path

import pytest
import trio

from node.sources.searchable import SearchableFolders, folder_key
from node.store.database import Database
from node.store.fts import FtsIndex
from node.store.schema import INDEX
from search.indexer import BATCH, Indexer, IndexReport
from search.local import search_index


class Counting(SearchableFolders):
    """Counts what is read."""

    def __init__(self, folders: list[Path]) -> None:
        super().__init__(folders)
        self.reads: list[str] = []

    def read(self, folder: str, name: str) -> tuple[str, str] | None:
        self.reads.append(name)
        return super().read(folder, name)


@pytest.fixture
async def index(tmp_path: Path):
    database = await Database.open_rebuildable(tmp_path / "index.db", bytes(32), INDEX)
    yield FtsIndex(database)
    await database.close()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "roof.md").write_text("the plumber mends the roof")
    (folder / "beans.txt").write_text("beans and peas")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8")
    return folder


async def titles(index: FtsIndex, query: str) -> list[str]:
    return [found.title for found in (await search_index(index, query, limit=10)).passages]


async def test_the_index_follows_the_files(index: FtsIndex, notes: Path) -> None:
    source = Counting([notes])
    indexer = Indexer(source, index)
    assert await indexer.refresh() == IndexReport(2, 0, 0, 0)
    assert set(await titles(index, "plumber beans")) == {"roof", "beans"}
    assert await indexer.refresh() == IndexReport(0, 2, 0, 0)
    assert sorted(source.reads) == ["beans.txt", "roof.md"]  # the second round read nothing

    (notes / "roof.md").write_text("only tiles now")
    os.utime(notes / "beans.txt", ns=(1, 1))  # touched, not changed
    (notes / "new.md").write_text("a new plumber")
    assert await indexer.refresh() == IndexReport(2, 1, 0, 0)
    assert await titles(index, "plumber") == ["new"]
    assert await titles(index, "tiles") == ["roof"]
    assert await indexer.refresh() == IndexReport(0, 3, 0, 0)

    (notes / "new.md").unlink()
    assert await indexer.refresh() == IndexReport(0, 2, 1, 0)
    assert await titles(index, "plumber") == []


async def test_what_cannot_be_read_is_counted_and_forgotten(index: FtsIndex, notes: Path) -> None:
    indexer = Indexer(SearchableFolders([notes]), index)
    await indexer.refresh()
    (notes / "roof.md").write_bytes(b"\xff\xfe plumber")
    (notes / "link.md").symlink_to(notes / "beans.txt")
    assert await indexer.refresh() == IndexReport(0, 1, 0, 1)
    assert await titles(index, "plumber") == []
    assert await titles(index, "beans") == ["beans"]


async def test_folders_come_and_go(index: FtsIndex, notes: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared recipes"
    shared.mkdir()
    (shared / "soup.md").write_text("a soup of beans")
    source = SearchableFolders([notes])
    indexer = Indexer(source, index)
    await indexer.refresh()
    source.watch([notes, shared, tmp_path / "notes" / "..", Path(f"{notes}/")])
    await indexer.refresh()
    found = (await search_index(index, "soup", limit=3, folders=[folder_key(shared)])).passages
    assert [(passage.title, passage.label) for passage in found] == [("soup", "shared recipes")]
    source.watch([notes])
    await indexer.refresh()
    assert await titles(index, "soup") == []
    assert await titles(index, "beans") == ["beans"]


async def test_long_documents_are_split_and_empty_ones_are_found_by_title(index: FtsIndex, notes: Path) -> None:
    (notes / "long.md").write_text("\n\n".join(f"paragraph{number} " + "word " * 150 for number in range(10)))
    (notes / "passport.md").write_text("")
    await Indexer(SearchableFolders([notes]), index).refresh()
    found = (await search_index(index, "paragraph7", limit=5)).passages
    assert len(found) == 1
    assert len(found[0].text.split()) <= 200
    assert await titles(index, "passport") == ["passport"]


async def test_a_cancelled_round_leaves_whole_files_and_the_next_goes_on(index: FtsIndex, notes: Path) -> None:
    for number in range(3 * BATCH):
        (notes / f"n{number:03}.md").write_text(f"roof number{number}")
    source = Counting([notes])
    indexer = Indexer(source, index)
    with trio.CancelScope() as scope:
        real = index.put

        async def put_then_stop(documents) -> None:
            await real(documents)
            scope.cancel()

        index.put = put_then_stop
        await indexer.refresh()
    assert scope.cancelled_caught
    index.put = real
    assert len(await index.states()) == BATCH
    report = await indexer.refresh()
    assert (report.indexed, report.unchanged) == (2 * BATCH + 2, BATCH)
    assert len(source.reads) == len(set(source.reads)) == 3 * BATCH + 2  # no file was read twice


async def test_two_rounds_at_once_do_the_work_once(index: FtsIndex, notes: Path) -> None:
    source = Counting([notes])
    indexer = Indexer(source, index)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(indexer.refresh)
        nursery.start_soon(indexer.refresh)
    assert sorted(source.reads) == ["beans.txt", "roof.md"]
