"""The owner's calendars: a folder of .ics files, read in windows of UTC, written event by event.

Every file is the owner's unless it is named after exactly one person in the address book, `dana.ics` or
`dana-whitfield.ics`: a calendar of nobody known makes the owner busy rather than vanish. Files named `owner`
(`owner.ics`, `owner-work.ics`, `owner/any.ics`) are the owner's whoever is known, and new events go to `owner.ics`. A
file or event that cannot be read is reported by `problems` and never overwritten; all others still count. Must not know
tools, labels or what a request said. Blocking: run it in a thread.
"""

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import icalendar

from node.sources.errors import BrokenSource, NotThere, SourceError
from node.sources.event import Event, Interval, Master, NewEvent, Problem, merge
from node.sources.folder import FileInfo, Folder, Listing, Unread, digest_of
from node.sources.ics_expand import occurrences, words
from node.sources.ics_write import EMPTY_CALENDAR, add_event, remove_event

__all__ = ["Calendars", "Created"]

OWNER = "owner"
SIZE_LIMIT_BYTES = 16 * 1024 * 1024
EVENTS_LIMIT = 20_000
"""Most occurrences in one answer."""
_TITLES = frozenset({"dr", "mr", "mrs", "ms", "prof", "professor", "miss", "sir"})


@dataclass(frozen=True, slots=True)
class Created:
    """What create_event did."""

    uid: str
    file: str
    created: bool
    """False when the event was there already."""


@dataclass(frozen=True, slots=True)
class _File:
    """One file, parsed: a calendar per series, the words of all its events, what could not be read."""

    info: FileInfo
    series: tuple[icalendar.Calendar, ...]
    masters: tuple[Master, ...]
    uids: tuple[str, ...]
    broken: str | None
    notes: tuple[str, ...]


class Calendars:
    """All calendars of one folder. Files are parsed again when their size or time of change differs."""

    def __init__(
        self, root: Path, zone: ZoneInfo, *, people: Callable[[], Iterable[str]] = tuple,
        owner_file: str = f"{OWNER}.ics",
    ) -> None:
        """zone reads times without one; people gives the known full names, which say whose `dana.ics` is: the only
        Dana's, and the owner's when nobody or more than one is called so."""
        self._folder = Folder(root, size_limit_bytes=SIZE_LIMIT_BYTES)
        self._zone = zone
        self._people = people
        self._owner_file = owner_file
        self._files: dict[str, _File] = {}
        self._problems: dict[str, tuple[str, ...]] = {}
        self._listing = Listing((), ())
        self._lock = threading.RLock()

    # ------------------------------------------------------------ reading

    def events(self, window: Interval, *, person: str | None = None) -> list[Event]:
        """Occurrences in the window by start, at most EVENTS_LIMIT; person None is the owner. Raises NotThere for a
        person without a calendar, ValueError for a window above ics_expand.WINDOW_LIMIT."""
        with self._lock:
            files = self._of(person)
            if person is not None and not files:
                raise NotThere(f"There is no calendar of {person}.")
            found: list[Event] = []
            for file in files:
                found.extend(self._expand(file, window))
        return sorted(found, key=lambda event: (event.start, event.end, event.title))[:EVENTS_LIMIT]

    def busy(self, window: Interval, *, person: str | None = None) -> list[Interval]:
        """What is taken in the window, merged, cut to it, in UTC. Empty for a person without a calendar."""
        with self._lock:
            if person is not None and not self._of(person):
                return []
            events = self.events(window, person=person)
        start, end = window
        return merge([(max(event.start, start), min(event.end, end)) for event in events if event.busy])

    def known(self, person: str) -> bool:
        """True when a calendar of this person is here."""
        with self._lock:
            return bool(self._of(person))

    def masters(self) -> list[Master]:
        """What every event of every calendar says in words, other people's too."""
        with self._lock:
            return [master for file in self._load() for master in file.masters]

    def find(self, uid: str) -> str | None:
        """The owner's file that holds an event with this UID."""
        with self._lock:
            return next((file.info.name for file in self._of(None) if uid in file.uids), None)

    def problems(self) -> list[Problem]:
        """What could not be read, as far as it has been looked at: folders, broken files, events, rules, unknown zones.
        """
        with self._lock:
            files = self._load()
            found = [Problem(one.name, f"it cannot be read: {one.reason}") for one in self._listing.unread]
            found += [Problem(file.info.name, file.broken) for file in files if file.broken is not None]
            found += [Problem(file.info.name, note) for file in files for note in file.notes]
            present = {file.info.name for file in files}
            for name, notes in self._problems.items():
                if name in present:
                    found += [Problem(name, note) for note in notes]
        return list(dict.fromkeys(found))

    def unread(self) -> tuple[Unread, ...]:
        """The folders below that could not be read when the calendars were last looked at."""
        return self._listing.unread

    def unreadable(self, person: str | None = None) -> tuple[str, ...]:
        """What an answer about this person's time, None for the owner, may lack: names of files and folders that could
        not be read, or not in full, as far as they have been looked at."""
        with self._lock:
            files = self._of(person)
            found = [one.name for one in self._listing.unread]
            found += [one.info.name for one in files if one.broken or one.notes or self._problems.get(one.info.name)]
        return tuple(dict.fromkeys(found))

    # ------------------------------------------------------------ writing

    def create_event(self, event: NewEvent, *, stamp: datetime) -> Created:
        """Write the event into the owner's file unless an event of the owner has its UID already; all or nothing,
        also over a crash; what else stands in the file keeps every byte. Raises BrokenSource, with nothing written,
        when the file cannot be understood; BadValue; SourceChanged when another program keeps writing at the same
        time."""
        with self._lock:
            there = self.find(event.uid)
            if there is not None:
                return Created(event.uid, there, created=False)
            name = self._owner_file
            data = self._folder.read_or_none(name)
            text, before = EMPTY_CALENDAR, list[str]()
            if data is not None and data.strip():
                text, before = self._understood(name, data)
            changed = add_event(text, event, stamp=stamp)
            if _uids(_parsed(changed)) != [*before, event.uid]:
                raise BrokenSource(f"{name} has a form that an event cannot be added to; it was left as it is.")
            self._folder.replace(name, _encode(changed, data), expected=None if data is None else digest_of(data))
            return Created(event.uid, name, created=True)

    def delete_event(self, uid: str) -> bool:
        """Take the event with this UID out of the owner's calendar; False when it is not there. Every other byte stays.
        Raises BrokenSource, SourceChanged."""
        with self._lock:
            name = self.find(uid)
            if name is None:
                return False
            data = self._folder.read(name)
            text, before = self._understood(name, data)
            changed = remove_event(text, uid)
            if _uids(_parsed(changed)) != [other for other in before if other != uid]:
                raise BrokenSource(f"{name} has a form that an event cannot be taken out of; it was left as it is.")
            self._folder.replace(name, _encode(changed, data), expected=digest_of(data))
            return True

    def fingerprint(self, uid: str) -> str | None:
        """A fingerprint of what the owner's calendar holds under this UID, to see whether somebody edited it since."""
        with self._lock:
            name = self.find(uid)
            if name is None:
                return None
            found = _parsed(_decode(self._folder.read(name)))
            parts = [
                part.to_ical() for calendar in found for part in calendar.walk("VEVENT") if str(part.get("UID")) == uid
            ]
        return digest_of(b"".join(parts))

    @staticmethod
    def _understood(name: str, data: bytes) -> tuple[str, list[str]]:
        """The text of a file that is whole, and its UIDs. Raises BrokenSource."""
        try:
            text = _decode(data)
            uids = _uids(_parsed(text))
        except BrokenSource as error:
            raise BrokenSource(f"{name} cannot be understood ({error}); it was left as it is.") from error
        return text, uids

    # ------------------------------------------------------------ files

    def _load(self) -> list[_File]:
        """Every file, parsed anew where it changed; as it was where its folder cannot be read any more: the owner is
        still busy then, and what stands there still personal."""
        listing = self._folder.listing(suffixes=frozenset({".ics", ".ical"}))
        current = {name: file for name, file in self._files.items() if listing.hides(name)}
        for info in listing.files:
            known = self._files.get(info.name)
            current[info.name] = known if known is not None and known.info == info else self._parse(info)
        self._listing = listing
        self._files = dict(sorted(current.items()))
        return list(self._files.values())

    def _parse(self, info: FileInfo) -> _File:
        self._problems.pop(info.name, None)
        try:
            text = _decode(self._folder.read(info.name))
            calendars = _parsed(text) if text.strip() else ()
        except SourceError as error:
            return _File(info, (), (), (), str(error), ())
        series: list[icalendar.Calendar] = []
        masters: list[Master] = []
        uids: list[str] = []
        notes: list[str] = []
        for calendar in calendars:
            by_uid: dict[str, list[icalendar.Event]] = {}
            for number, component in enumerate(calendar.walk("VEVENT")):
                uid = str(component.get("UID", f"nameless-{number}"))
                by_uid.setdefault(uid, []).append(component)
                masters.append(words(component, info.name))
                notes += _unknown_zones(component)
            for uid, components in by_uid.items():
                one = icalendar.Calendar()
                if "X-WR-TIMEZONE" in calendar:
                    one["X-WR-TIMEZONE"] = calendar["X-WR-TIMEZONE"]
                one.subcomponents = components
                series.append(one)
                uids.append(uid)
        return _File(info, tuple(series), tuple(masters), tuple(uids), None, tuple(dict.fromkeys(notes)))

    def _expand(self, file: _File, window: Interval) -> list[Event]:
        found: list[Event] = []
        for one in file.series:
            try:
                found.extend(occurrences(one, window, self._zone, file.info.name))
            except BrokenSource as error:
                noted = self._problems.get(file.info.name, ())
                self._problems[file.info.name] = tuple(dict.fromkeys((*noted, str(error))))
        return found

    def _of(self, person: str | None) -> list[_File]:
        files = self._load()
        stems = _stems_of_one({_slug(name) for name in self._people()})
        others = {file.info.name for file in files if not _is_owner(file.info.name) and _stem(file.info.name) in stems}
        if person is None:
            return [file for file in files if file.info.name not in others]
        names = self._slugs(person)
        return [file for file in files if file.info.name in others and _stem(file.info.name) in names]

    def _slugs(self, person: str) -> set[str]:
        """The file names that mean this person: the whole name, and the first name when nobody else known has it."""
        first = _first_name(person)
        others = {_slug(name) for name in self._people() if _first_name(name) == first} - {_slug(person)}
        return {_slug(person)} if others else {_slug(person), first}


def _stems_of_one(known: AbstractSet[str]) -> set[str]:
    """The file names that mean exactly one of these people: whole names, and first names that only one of them has."""
    first_names = Counter(map(_first_name, known))
    return {*known, *(name for name, people in first_names.items() if people == 1)}


def _is_owner(name: str) -> bool:
    first = name.split("/")[0]
    stem = first if "/" in name else Path(first).stem
    return bool(re.fullmatch(rf"{OWNER}([-_ ].*)?", stem, re.IGNORECASE))


def _stem(name: str) -> str:
    return _slug(Path(name).stem)


def _slug(name: str) -> str:
    plain = "".join(part for part in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(part))
    return "-".join(re.findall(r"\w+", plain.replace("_", " ")))


def _first_name(name: str) -> str:
    parts = [part for part in _slug(name).split("-") if part not in _TITLES]
    return parts[0] if parts else _slug(name)


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BrokenSource("it is no UTF-8 text") from None


def _encode(text: str, original: bytes | None) -> bytes:
    mark = b"\xef\xbb\xbf"
    return (mark if original is not None and original.startswith(mark) else b"") + text.encode()


def _parsed(text: str) -> Sequence[icalendar.Calendar]:
    """The calendars in this text. Raises BrokenSource for one that is not whole: the library alone takes a file that
    was cut off for an empty one."""
    open_parts: list[str] = []
    calendars = 0
    for line in re.sub(r"\r?\n[ \t]", "", text).split("\n"):
        name, _, value = line.strip().upper().partition(":")
        if name == "BEGIN":
            open_parts.append(value)
            calendars += value == "VCALENDAR"
        elif name == "END" and (not open_parts or open_parts.pop() != value):
            raise BrokenSource(f"an END:{value[:20]} without its BEGIN")
    if open_parts:
        raise BrokenSource("it ends in the middle")
    if not calendars:
        raise BrokenSource("no calendar in it")
    try:
        found: Sequence[icalendar.Calendar] = icalendar.Calendar.from_ical(text, multiple=True)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise BrokenSource(f"not iCalendar ({type(error).__name__})") from error
    if len(found) != calendars:
        raise BrokenSource("not iCalendar")
    return found


def _uids(calendars: Sequence[icalendar.Calendar]) -> list[str]:
    """The UID of every VEVENT in order of the text."""
    return [str(component.get("UID", "")) for calendar in calendars for component in calendar.walk("VEVENT")]


def _unknown_zones(component: icalendar.Event) -> list[str]:
    """Zones that nobody knows: the parser then hands out a time without a zone, silently."""
    found = []
    for name in ("DTSTART", "DTEND"):
        value = component.get(name)
        zone = getattr(value, "params", {}).get("TZID")
        if zone and getattr(getattr(value, "dt", None), "tzinfo", zone) is None:
            found.append(f"time zone {str(zone)[:40]!r} is unknown; read as your own")
    return found
