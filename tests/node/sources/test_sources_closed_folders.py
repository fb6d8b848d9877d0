"""A folder below that cannot be read: what can be is, what cannot is named, and what was known of it stays known."""

import errno
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from closed_folder import as_somebody_else, close, open_to_all

from node.sources.errors import FolderUnreadable
from node.sources.folder import Folder, Unread
from node.sources.ics import Calendars
from node.sources.notes import NoteFolder
from node.sources.values import vault_values
from node.sources.vcf import Contacts

EVENT = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:{uid}\r\nDTSTART:20270104T{hour}0000Z\r\n"
    "DTEND:20270104T{hour}3000Z\r\nSUMMARY:{title}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)
CARD = "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:{name}\r\nN:{name};;;;\r\nEND:VCARD\r\n"
DAY = (datetime(2027, 1, 4, tzinfo=UTC), datetime(2027, 1, 5, tzinfo=UTC))


@pytest.fixture(params=[0o000, 0o644], ids=["closed", "names only"])
def mode(request) -> int:
    """Without the right to enter, files are listed and cannot be looked at: all files of the source once went with it.
    """
    return int(request.param)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "calendar" / "work").mkdir(parents=True)
    (tmp_path / "calendar" / "owner.ics").write_text(EVENT.format(uid="1", hour="09", title="Dentist"))
    (tmp_path / "calendar" / "work" / "owner.ics").write_text(EVENT.format(uid="2", hour="11", title="Board"))
    (tmp_path / "contacts" / "club").mkdir(parents=True)
    (tmp_path / "contacts" / "dana.vcf").write_text(CARD.format(name="Dana Whitfield"))
    (tmp_path / "contacts" / "club" / "ravi.vcf").write_text(CARD.format(name="Ravi Patelski"))
    (tmp_path / "notes" / "old" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "roof.md").write_text("roof")
    (tmp_path / "notes" / "old" / "boiler.md").write_text("boiler")
    (tmp_path / "notes" / "old" / "deep" / "attic.md").write_text("attic")
    open_to_all(tmp_path)
    # once before, so that whatever is loaded late (codecs, zones) is there when the rights are given up
    Contacts(tmp_path / "contacts").all()
    _titles(Calendars(tmp_path / "calendar", ZoneInfo("UTC")))
    yield tmp_path
    open_to_all(tmp_path)


def _titles(calendars: Calendars) -> list[str]:
    return [event.title for event in calendars.events(DAY)]


def test_what_can_be_read_is_read_and_the_rest_is_named(tree: Path, mode: int) -> None:
    calendars = Calendars(tree / "calendar", ZoneInfo("UTC"))
    contacts, notes = Contacts(tree / "contacts"), NoteFolder(tree / "notes")
    for folder in (tree / "calendar/work", tree / "contacts/club", tree / "notes/old"):
        close(folder, mode)
    with as_somebody_else():
        assert _titles(calendars) == ["Dentist"]
        assert contacts.names() == ("Dana Whitfield",)
        assert [note.name for note in notes.all()] == ["roof.md"]
        told = [*calendars.problems(), *contacts.problems(), *notes.problems()]
    assert [(one.source, one.reason) for one in told] == [
        (name, "it cannot be read: Permission denied") for name in ("work", "club", "old")]
    # the control: to somebody who may, nothing is missing and nothing is told
    assert (_titles(calendars), len(contacts.names()), len(notes.all())) == (["Dentist", "Board"], 2, 3)
    assert [*calendars.problems(), *contacts.problems(), *notes.problems()] == []


def test_what_was_known_of_a_folder_stays_known_when_it_is_closed(tree: Path, mode: int) -> None:
    """The owner is still busy then, and the names in it are still masked."""
    calendars = Calendars(tree / "calendar", ZoneInfo("UTC"))
    contacts = Contacts(tree / "contacts")
    before = vault_values(calendars, contacts)
    assert {"Ravi Patelski", "Board"} <= {value.text for value in before}
    close(tree / "contacts/club", mode)
    close(tree / "calendar/work", mode)
    with as_somebody_else():
        assert vault_values(calendars, contacts) == before
        assert _titles(calendars) == ["Dentist", "Board"]
        assert (calendars.unread(), contacts.unread()) == (
            (Unread("work", "Permission denied"),), (Unread("club", "Permission denied"),))
    # and a file that is gone for good is gone
    open_to_all(tree)
    (tree / "contacts/club/ravi.vcf").unlink()
    assert contacts.names() == ("Dana Whitfield",)


def test_a_file_that_was_closed_is_read_once_it_is_open(tree: Path) -> None:
    contacts = Contacts(tree / "contacts")
    close(tree / "contacts/dana.vcf")
    with as_somebody_else():
        assert contacts.names() == ("Ravi Patelski",)
        assert [one.source for one in contacts.problems()] == ["dana.vcf"]
    (tree / "contacts/dana.vcf").chmod(0o644)       # changes neither its size nor its time
    assert contacts.names() == ("Dana Whitfield", "Ravi Patelski")
    assert contacts.problems() == []


def test_a_broken_disk_below_is_named_too(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = (tree / "notes/old").stat().st_ino
    scan = os.scandir

    def broken(descriptor: int):
        if os.fstat(descriptor).st_ino == place:
            raise OSError(errno.EIO, "Input/output error")
        return scan(descriptor)

    monkeypatch.setattr("os.scandir", broken)
    listing = Folder(tree / "notes").listing()
    assert [info.name for info in listing.files] == ["roof.md"]
    assert listing.unread == (Unread("old", "Input/output error"),)
    assert [listing.hides(name) for name in ("old", "old/deep/attic.md", "older.md", "roof.md")] == [
        True, True, False, False]


@pytest.mark.parametrize("closed", [0o000, 0o644])
def test_a_source_that_cannot_be_read_at_all_is_no_empty_one(tree: Path, closed: int) -> None:
    close(tree / "contacts", closed)
    contacts = Contacts(tree / "contacts")
    with as_somebody_else(), pytest.raises(FolderUnreadable):
        contacts.all()
    tree.joinpath("contacts").chmod(0o755)
    assert len(contacts.all()) == 2


def test_links_and_pipes_are_neither_followed_nor_named(tree: Path) -> None:
    elsewhere = tree / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret.md").write_text("x")
    (tree / "notes" / "link").symlink_to(elsewhere, target_is_directory=True)
    (tree / "notes" / "link.md").symlink_to(elsewhere / "secret.md")
    os.mkfifo(tree / "notes" / "pipe.md")
    listing = Folder(tree / "notes", never=[tree / "notes/old/deep"]).listing()
    assert [info.name for info in listing.files] == ["old/boiler.md", "roof.md"]
    assert listing.unread == ()


def test_the_depth_has_an_end(tmp_path: Path) -> None:
    deep = tmp_path
    for number in range(12):
        deep /= f"d{number}"
        deep.mkdir()
        (deep / "a.md").write_text("x")
    names = [info.name for info in Folder(tmp_path).files()]
    assert max(name.count("/") for name in names) == 8
