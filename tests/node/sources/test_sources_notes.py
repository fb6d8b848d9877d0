"""Notes: found, read within bounds, never outside their folder, written once, taken back exactly."""

import os
from pathlib import Path

import pytest

from node.api.failures import describe_failure
from node.sources.errors import (
    BadValue,
    FolderUnreadable,
    NotText,
    NotThere,
    PathRefused,
    SourceChanged,
    SourceError,
    TooBig,
    WriteFailed,
)
from node.sources.folder import Folder
from node.sources.notes import NOTE_LIMIT_BYTES, NoteFolder


@pytest.fixture
def notes(tmp_path: Path) -> NoteFolder:
    root = tmp_path / "notes"
    (root / "home").mkdir(parents=True)
    (root / "Roof repair.md").write_text("# Roof\nThe plumber wants 400.\nCall him on Monday.\n")
    (root / "home" / "Garden plan.txt").write_text("Beans, peas and a plumber for the well.")
    (root / ".hidden.md").write_text("plumber")
    (root / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    return NoteFolder(root)


def test_all_lists_plain_notes_only(notes: NoteFolder) -> None:
    assert [(info.title, info.name) for info in notes.all()] == [
        ("Roof repair", "Roof repair.md"),
        ("Garden plan", "home/Garden plan.txt"),
    ]


@pytest.mark.parametrize("asked", ["roof repair", "Roof repair.md", "ROOF REPAIR"])
def test_find_by_title(notes: NoteFolder, asked: str) -> None:
    assert [info.name for info in notes.find(asked)] == ["Roof repair.md"]


def test_search_ranks_by_words_and_shows_the_line(notes: NoteFolder) -> None:
    hits = notes.search("plumber Monday")
    assert [(hit.info.title, hit.words_found) for hit in hits] == [("Roof repair", 2), ("Garden plan", 1)]
    assert hits[1].snippet == "Beans, peas and a plumber for the well."
    assert notes.search("zebra") == []


# ------------------------------------------------------------ nothing outside

OUTSIDE = [
    "../secret.txt",
    "home/../../secret.txt",
    "/etc/passwd",
    "",
    ".",
    "..",
    "./Roof repair.md",
    "home//Garden plan.txt",
    ".hidden.md",
    "a\x00b.md",
    "home/../Roof repair.md",
    "a\nb.md",
    "x" * 300 + ".md",
    "/".join("a" * 12) + ".md",
    "\udcff.md",
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_leave_the_folder_are_refused(notes: NoteFolder, name: str) -> None:
    (notes.root.parent / "secret.txt").write_text("secret")
    with pytest.raises(PathRefused):
        Folder(notes.root).read(name)
    with pytest.raises(PathRefused):
        Folder(notes.root).replace(name, b"x", expected=None)
    with pytest.raises(SourceError):
        notes.read(name)


def test_links_are_not_followed(notes: NoteFolder) -> None:
    secret = notes.root.parent / "secret.md"
    secret.write_text("secret")
    (notes.root / "link.md").symlink_to(secret)
    (notes.root / "inner.md").symlink_to("Roof repair.md")
    (notes.root / "folder").symlink_to(notes.root.parent)
    (notes.root / "loop").symlink_to(notes.root)
    assert len(notes.all()) == 2
    for name in ("link.md", "inner.md", "folder/secret.md", "loop/Roof repair.md"):
        with pytest.raises(PathRefused):
            notes.read(name)
        with pytest.raises(SourceError):
            Folder(notes.root).replace(name, b"x", expected=None)
    assert secret.read_text() == "secret"
    # Negative control: the operating system would have read it.
    assert (notes.root / "link.md").read_text() == "secret"


def test_a_pipe_or_device_never_blocks(notes: NoteFolder) -> None:
    os.mkfifo(notes.root / "pipe.md")
    assert len(notes.all()) == 2
    with pytest.raises(PathRefused):
        notes.read("pipe.md")


def test_bounds_and_text_only(notes: NoteFolder) -> None:
    (notes.root / "big.md").write_bytes(b"a" * (NOTE_LIMIT_BYTES + 1))
    (notes.root / "binary.md").write_bytes(b"a\xff\xfe")
    (notes.root / "zero.md").write_bytes(b"a\x00b")
    for name, error in (
        ("big.md", TooBig),
        ("binary.md", NotText),
        ("zero.md", NotText),
        ("photo.jpg", NotText),
        ("absent.md", NotThere),
    ):
        with pytest.raises(error):
            notes.read(name)
    assert [hit.info.title for hit in notes.search("plumber")] == ["Roof repair", "Garden plan"]


# ------------------------------------------------------------ writing


def test_a_new_note_once_and_back(notes: NoteFolder) -> None:
    plan = notes.plan_write("The spare key is with the neighbour.")
    assert plan.name == "The spare key is with the.md"
    assert not (notes.root / plan.name).exists()
    assert [notes.write(plan), notes.write(plan)] == [True, False]
    assert (notes.root / plan.name).read_text() == "The spare key is with the neighbour.\n"
    assert [notes.unwrite(plan), notes.unwrite(plan)] == [True, False]
    assert not (notes.root / plan.name).exists()


def test_adding_to_a_note_once_and_back(notes: NoteFolder) -> None:
    path = notes.root / "home" / "Garden plan.txt"
    before = path.read_bytes()
    plan = notes.plan_write("Also: a pear tree.", title="garden plan")
    assert [notes.write(plan), notes.write(plan)] == [True, False]
    assert path.read_bytes() == before + b"\nAlso: a pear tree.\n"
    again = notes.plan_write("Also: a pear tree.", title="garden plan")
    assert notes.write(again)  # the same words in a second request are a second line
    assert path.read_bytes() == before + b"\nAlso: a pear tree.\nAlso: a pear tree.\n"
    assert notes.unwrite(again)
    assert notes.unwrite(plan)
    assert path.read_bytes() == before


def test_an_edit_in_between_is_never_overwritten(notes: NoteFolder) -> None:
    plan = notes.plan_write("More.", title="Roof repair")
    path = notes.root / "Roof repair.md"
    path.write_text("edited")
    with pytest.raises(SourceChanged):
        notes.write(plan)
    assert path.read_text() == "edited"
    plan = notes.plan_write("More.", title="Roof repair")
    notes.write(plan)
    path.write_text("edited again")
    with pytest.raises(SourceChanged):
        notes.unwrite(plan)
    assert path.read_text() == "edited again"


def test_titles(notes: NoteFolder) -> None:
    assert notes.plan_write("x", title="../../etc/passwd").name == "etc passwd.md"
    assert notes.plan_write("x", title="Neu: Größe / 2").name == "Neu Größe 2.md"
    assert notes.plan_write("Roof repair").name == "Roof repair 2.md"  # no title given: never into an existing note
    for text, title in (("", "a"), ("  \n ", "a"), ("a\x00", "a"), ("x" * 20_001, "a"), ("x", "/.:")):
        with pytest.raises(BadValue):
            notes.plan_write(text, title=title)
    (notes.root / "home" / "Roof repair.txt").write_text("")
    with pytest.raises(NotThere, match="More than one"):
        notes.plan_write("x", title="Roof repair")


def test_a_full_disk_leaves_the_note_as_it_was(notes: NoteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = notes.plan_write("More.", title="Roof repair")
    before = (notes.root / "Roof repair.md").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteFailed, match="No space left"):
        notes.write(plan)
    monkeypatch.undo()
    assert (notes.root / "Roof repair.md").read_bytes() == before
    assert not [path for path in notes.root.iterdir() if path.name.endswith("tmp")]
    assert notes.write(plan)


@pytest.mark.parametrize("refused", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error")])
def test_a_folder_that_cannot_be_listed_is_no_empty_one(tmp_path, monkeypatch, refused):
    """Control: with a walk that fails silently the owner would look free, and names would not be masked."""
    (tmp_path / "a.md").write_text("x")

    def scan(*_, **__):
        raise refused

    folder = Folder(tmp_path)
    assert len(folder.files()) == 1
    monkeypatch.setattr("os.scandir", scan)
    with pytest.raises(FolderUnreadable) as caught:
        folder.files()
    assert isinstance(caught.value, OSError) and refused.strerror in str(caught.value)
    view = describe_failure(caught.value)
    assert (view.code, view.exit_code) == ("folder_unreadable", 1) and str(tmp_path) in view.message and view.hint
