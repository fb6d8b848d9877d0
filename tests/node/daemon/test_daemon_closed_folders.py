"""A folder of contacts that cannot be read: the owner is asked before free text leaves, and doctor names the folder."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from fixed import FixedClock
from guard_bench import guard_bench

from node.daemon.doctor import Doctor
from node.daemon.vault import FRESH_S, FollowingVault
from node.privacy.egress import Part
from node.privacy.inspector import Inspector
from node.privacy.labels import owner_text
from node.privacy.nets import SecretsNet
from node.sources.ics import Calendars
from node.sources.notes import NoteFolder
from node.sources.vcf import Contacts

CARD = "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:{name}\r\nN:;{name};;;\r\nEND:VCARD\r\n"
ASKED = Part("user", owner_text("Is tea good for Zdravka Korenjak and Bogomir Oblak?"))


class Detectors:
    """A third net that is there and finds nothing."""

    name = "detectors"

    async def scan(self, text: str, returned: object) -> list[object]:
        return []


@pytest.fixture
def shut(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Make a folder one that the system does not let be listed, for root too."""
    closed: set[int] = set()
    scan = os.scandir

    def look(place: Any) -> Any:
        if isinstance(place, int) and os.fstat(place).st_ino in closed:
            raise OSError(errno.EACCES, "Permission denied")
        return scan(place)

    monkeypatch.setattr("os.scandir", look)
    return lambda folder: closed.add(folder.stat().st_ino)


class Home:
    def __init__(self, root: Path) -> None:
        for name in ("contacts/club", "calendar", "notes/old"):
            (root / name).mkdir(parents=True)
        (root / "contacts/zdravka.vcf").write_text(CARD.format(name="Zdravka Korenjak"))
        (root / "contacts/club/bogomir.vcf").write_text(CARD.format(name="Bogomir Oblak"))
        self.contacts = Contacts(root / "contacts")
        self.calendars = Calendars(root / "calendar", ZoneInfo("UTC"), people=self.contacts.names)
        self.notes = NoteFolder(root / "notes")
        self.clock = FixedClock()
        self.vault = FollowingVault(self.calendars, self.contacts, self.clock)
        self.inspector = Inspector(vault=self.vault, secrets=SecretsNet(), detectors=cast("Any", Detectors()))


async def test_the_owner_is_asked_while_names_may_be_missing(tmp_path: Path, shut: Callable[[Path], None]) -> None:
    home = Home(tmp_path)
    guard = await guard_bench(inspector=home.inspector)
    # the control: with everything read, nothing is missing and nothing is asked
    assert (await guard.clear(ASKED)).texts == ("Is tea good for [PERSON_1] and [PERSON_2]?",)
    assert (guard.owner.questions, guard.egress.always_asks) == ([], False)
    # after a restart, with that folder closed, one of the names is not known
    shut(tmp_path / "contacts/club")
    home = Home.__new__(Home)
    home.contacts, home.clock = Contacts(tmp_path / "contacts"), FixedClock()
    home.calendars = Calendars(tmp_path / "calendar", ZoneInfo("UTC"))
    home.vault = FollowingVault(home.calendars, home.contacts, home.clock)
    home.inspector = Inspector(vault=home.vault, secrets=SecretsNet(), detectors=cast("Any", Detectors()))
    guard = await guard_bench(inspector=home.inspector)
    assert (await guard.clear(ASKED)).texts == ("Is tea good for [PERSON_1] and Bogomir Oblak?",)
    [question] = guard.owner.questions
    assert question.nets_missing == ("contacts (1 folder unreadable)",)
    assert guard.egress.always_asks


async def test_what_was_known_is_still_masked_and_still_asked_about(
    tmp_path: Path, shut: Callable[[Path], None],
) -> None:
    home = Home(tmp_path)
    await home.vault.refresh()
    shut(tmp_path / "contacts/club")
    home.clock.advance(FRESH_S)
    guard = await guard_bench(inspector=home.inspector)
    assert (await guard.clear(ASKED)).texts == ("Is tea good for [PERSON_1] and [PERSON_2]?",)
    assert len(guard.owner.questions) == 1      # what was added to it since is not known


async def test_doctor_names_every_folder_that_cannot_be_read(tmp_path: Path, shut: Callable[[Path], None]) -> None:
    home = Home(tmp_path)
    unused = cast("Any", SimpleNamespace())
    doctor = Doctor(
        paths=unused, clock=unused, database=unused, ledger=unused, engine=unused, scan=unused, detecting=unused,
        calendars=home.calendars, contacts=home.contacts, vault=home.vault, unknown_env=(), texts=(home.notes,))
    assert [check.state for check in await doctor._look_at_sources()] == ["ok"]
    for folder in ("contacts/club", "notes/old"):
        shut(tmp_path / folder)
    checks = await doctor._look_at_sources()
    assert [(check.state, check.text) for check in checks[:2]] == [
        ("warning", "club: it cannot be read: Permission denied"),
        ("warning", "old: it cannot be read: Permission denied"),
    ]
    assert all("access" in check.hint for check in checks[:2])
    shut(tmp_path / "notes")
    checks = await doctor._look_at_sources()
    assert [check.state for check in checks] == ["warning", "problem", "ok"]
    assert str(tmp_path / "notes") in checks[1].text
