"""The vault follows the owner's files, and fails closed when they cannot be read."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import trio
from fixed import FixedClock

from node.daemon.vault import FRESH_S, FollowingVault
from node.privacy.errors import GuardFailed
from node.privacy.inspector import Inspector
from node.privacy.labels import owner_text
from node.privacy.nets import SecretsNet
from node.privacy.vault import Vault
from node.sources.errors import SourceError
from node.sources.ics import Calendars
from node.sources.vcf import Contacts

CARD = "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:{name}\r\nN:;{name};;;\r\nEND:VCARD\r\n"
NOTHING = Vault([])


class Folders:
    def __init__(self, root: Path) -> None:
        self.contacts, self.calendar = root / "contacts", root / "calendar"
        for folder in (self.contacts, self.calendar):
            folder.mkdir()
        self.clock = FixedClock()
        contacts = Contacts(self.contacts)
        self.vault = FollowingVault(
            Calendars(self.calendar, ZoneInfo("UTC"), people=contacts.names), contacts, self.clock
        )

    def save(self, name: str) -> None:
        (self.contacts / f"{name}.vcf").write_text(CARD.format(name=name))

    async def finds(self, text: str) -> list[str]:
        return [text[hit.start : hit.end] for hit in await self.vault.scan(text, NOTHING)]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


async def test_a_contact_that_was_just_saved_is_known(folders: Folders) -> None:
    folders.save("Zdravka Korenjak")
    text = "Write to Zdravka Korenjak and Bogomir Oblak."
    assert await folders.finds(text) == ["Zdravka Korenjak"]
    folders.save("Bogomir Oblak")
    folders.clock.advance(FRESH_S)
    assert await folders.finds(text) == ["Zdravka Korenjak", "Bogomir Oblak"]
    (folders.contacts / "Zdravka Korenjak.vcf").unlink()
    folders.clock.advance(FRESH_S)
    assert await folders.finds(text) == ["Bogomir Oblak"]


async def test_before_the_first_reading_everything_counts_as_known(folders: Folders) -> None:
    assert folders.vault.holds("anything")
    assert folders.vault.size is None
    await folders.vault.refresh()
    assert not folders.vault.holds("anything")
    assert folders.vault.size == 0


async def test_sources_that_cannot_be_read_let_nothing_pass(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when they could be read a moment ago: what was added since is not known."""
    folders.save("Zdravka Korenjak")
    inspector = Inspector(vault=folders.vault, secrets=SecretsNet(), detectors=None)
    assert (await inspector.inspect([owner_text("Zdravka Korenjak")], NOTHING)).personal

    def fail(*_: object) -> None:
        raise SourceError("the disk is gone")

    monkeypatch.setattr("node.daemon.vault.vault_values", fail)
    folders.clock.advance(FRESH_S)
    with pytest.raises(GuardFailed):
        await inspector.inspect([owner_text("harmless")], NOTHING)
    monkeypatch.undo()
    assert (await inspector.inspect([owner_text("Zdravka Korenjak")], NOTHING)).personal


async def test_many_at_once_read_the_files_once(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def count(*_: object) -> list[object]:
        read.append(1)
        return []

    monkeypatch.setattr("node.daemon.vault.vault_values", count)
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(folders.vault.scan, "text", NOTHING)
    assert len(read) == 1
