"""Kith's own folders are shared with nobody: neither named, nor from inside, nor by way of a folder around them."""

import os
from pathlib import Path
from typing import Any

import pytest
from fixed import FixedClock
from guard_bench import BlindInspector
from receipt_pair import InlineDatabase

from node.daemon.own_folders import OwnFolders
from node.daemon.searching import Searching
from node.errors import UsageError
from node.paths import Paths
from node.sources.searchable import SearchableFolders, folder_key
from node.store import shares

OWN = ("config", "data", "state", "run", "data/models", "state/kv/deep", "data/calendar")
ALL = (*OWN, "data/notes", "data/notes/trips", "papers")


class Names:
    """A roster with one peer."""

    def find(self, name: str) -> str:
        return f"id of {name}"

    def name_of(self, peer_id: str) -> str:
        return peer_id.removeprefix("id of ")


class NoIndex:
    """An indexer that counts its rounds."""

    rounds = 0

    async def refresh(self) -> None:
        self.rounds += 1


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of the owner's with a text, and a node's home in it with a text in each of its folders."""
    root = tmp_path / "mine"
    for name in ALL:
        (root / "kith" / name).mkdir(parents=True, exist_ok=True)
        (root / "kith" / name / "here.md").write_text(f"In {name}.")
    (root / "bread.md").write_text("Flour.")
    return root / "kith"


def own_folders(home: Path) -> OwnFolders:
    return OwnFolders(Paths.from_env({"KITH_HOME": str(home)}, home), home / "data" / "notes")


def desk(home: Path, own: OwnFolders) -> tuple[Searching, SearchableFolders, Any]:
    database: Any = InlineDatabase()
    folders = SearchableFolders(never=own.all)
    parts: list[Any] = [None, NoIndex(), folders, home / "data" / "notes", database, Names(), BlindInspector()]
    return Searching(*parts, FixedClock(), own), folders, database


@pytest.mark.parametrize("name", OWN)
async def test_an_own_folder_is_refused_before_it_is_read(home: Path, name: str) -> None:
    searching, _, database = desk(home, own_folders(home))
    for act in (searching.preview_share, searching.share):
        with pytest.raises(UsageError, match="one of Kith's own folders") as refused:
            await act(str(home / name), ["phone"])
        assert refused.value.hint.endswith(f"kith share add {home / 'data' / 'notes'} --with PEER")
    assert await database.read(shares.every) == []


async def test_neither_a_link_nor_dots_lead_around_the_refusal(home: Path, tmp_path: Path) -> None:
    searching, _, _ = desk(home, own_folders(home))
    (tmp_path / "link").symlink_to(home / "state")
    for way in (tmp_path / "link", tmp_path / "link" / "kv", home / "papers" / ".." / "data"):
        with pytest.raises(UsageError, match="own folders"):
            await searching.preview_share(str(way), ["phone"])


@pytest.mark.parametrize("name", ["data/notes", "data/notes/trips", "papers"])
async def test_the_owners_texts_are_shared_wherever_they_lie(home: Path, name: str) -> None:
    searching, _, database = desk(home, own_folders(home))
    view = await searching.share(str(home / name), ["phone"])
    assert (view.confirmed, view.documents) == (True, 2 if name == "data/notes" else 1)
    assert [share.folder for share in await database.read(shares.every)] == [folder_key(home / name)]


async def test_a_folder_around_them_is_shared_without_them(home: Path) -> None:
    own = own_folders(home)
    searching, folders, _ = desk(home, own)
    assert (await searching.preview_share(str(home.parent), ["phone"])).documents == 2
    await searching.share(str(home.parent), ["phone"])
    listed = {state.name for state in folders.files() if state.folder == folder_key(home.parent)}
    assert listed == {"bread.md", "kith/papers/here.md"}
    # the control: without the rule the same walk finds them
    plain = {state.name for state in SearchableFolders([home.parent]).files()}
    assert plain == {"bread.md", *(f"kith/{name}/here.md" for name in ALL)}


async def test_a_folder_that_is_not_there_is_named_and_a_shared_one_that_went_is_marked(home: Path) -> None:
    searching, _, database = desk(home, own_folders(home))
    for act in (searching.preview_share, searching.share):
        with pytest.raises(UsageError, match=f"{home / 'nowhere'} is no folder"):
            await act(str(home / "nowhere"), ["phone"])
    assert await database.read(shares.every) == []
    await searching.share(str(home / "papers"), ["phone"])
    assert [(view.documents, view.missing) for view in await searching.shares()] == [(1, False)]
    (home / "papers").rename(home / "elsewhere")
    assert [(view.documents, view.missing) for view in await searching.shares()] == [(0, True)]


async def test_a_share_of_an_earlier_version_is_no_longer_read(home: Path) -> None:
    searching, folders, database = desk(home, own_folders(home))
    await database.write(shares.add, folder_key(home / "state"), "id of phone", 1)
    await searching.start()
    assert {state.folder for state in folders.files()} == {folder_key(home / "data" / "notes")}
    (view,) = await searching.shares()
    assert (view.folder, view.documents) == (folder_key(home / "state"), 0)
    assert await searching.unshare(view.folder) == view.folder


def test_folders_that_are_not_there_are_in_nobodys_way(tmp_path: Path) -> None:
    own = own_folders(tmp_path / "fresh")
    os.makedirs(tmp_path / "papers")
    assert own.around(tmp_path / "papers") is None
