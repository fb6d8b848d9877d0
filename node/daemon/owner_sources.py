"""The owner's own data as configured: calendars, contacts, notes and files. Must not know who reads them."""

from dataclasses import dataclass
from pathlib import Path

from node.config import Config
from node.paths import Paths
from node.sources.ics import Calendars
from node.sources.notes import NoteFolder
from node.sources.vcf import Contacts
from node.zone import owner_zone

__all__ = ["Sources", "open_sources"]


@dataclass(frozen=True, slots=True)
class Sources:
    """The owner's own data."""

    calendars: Calendars
    contacts: Contacts
    notes: NoteFolder
    files: dict[str, NoteFolder]


def open_sources(config: Config, paths: Paths) -> Sources:
    """The owner's folders as configured; kith's own data folder where nothing is said."""
    settings = config.settings.sources
    zone = owner_zone(settings.time_zone)

    def folder(setting: str, name: str) -> Path:
        return Path(setting).expanduser() if setting else paths.data_dir / name

    contacts = Contacts(folder(settings.contacts, "contacts"))
    calendars = Calendars(folder(settings.calendar, "calendar"), zone, people=contacts.names)
    files = {Path(one).name: NoteFolder(Path(one).expanduser(), suffixes=None) for one in settings.files}
    return Sources(calendars, contacts, NoteFolder(folder(settings.notes, "notes")), files)
