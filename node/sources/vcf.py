"""The owner's address book: a folder of .vcf files with one or many cards each, vCard 2.1 to 4.

A card that cannot be read whole is read as far as possible and reported; others still count. `me.vcf` or `owner.vcf`
holds the owner's own card. Must not know tools, labels or calendars. Blocking: callers run it in a thread.
"""

import re
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vobject

from node.sources.errors import SourceError
from node.sources.event import Problem
from node.sources.folder import FileInfo, Folder, Listing, Unread

__all__ = ["Contact", "Contacts"]

CARDS_LIMIT = 20_000
CARD_LIMIT_CHARS = 1_000_000
VALUE_LIMIT_CHARS = 500
OWN_CARDS = frozenset({"me", "owner"})

_CARD = re.compile(r"^BEGIN:VCARD[ \t]*\r?\n(.*?)^END:VCARD[ \t]*\r?$", re.DOTALL | re.IGNORECASE | re.MULTILINE)
_DAMAGE = (
    vobject.base.VObjectError, ValueError, KeyError, IndexError, TypeError, AttributeError, StopIteration,
)
"""What a hand-made or damaged card makes the library raise."""
_BEGIN = re.compile(r"^BEGIN:VCARD[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Contact:
    """One person or organisation. Missing details are empty."""

    name: str
    given: str
    family: str
    nicknames: tuple[str, ...]
    emails: tuple[str, ...]
    phones: tuple[str, ...]
    addresses: tuple[str, ...]
    """One line each: street, postcode and town, country."""
    streets: tuple[str, ...]
    birthday: str
    """1980-02-03, or --02-03 without a year."""
    organisation: str
    source: str
    mine: bool
    """True for the owner's own card."""

    @property
    def email(self) -> str:
        """The first e-mail address, or nothing."""
        return self.emails[0] if self.emails else ""


class Contacts:
    """All cards of one folder. Files are parsed again when their size or time of change differs."""

    def __init__(self, root: Path) -> None:
        self._folder = Folder(root)
        self._files: dict[str, tuple[FileInfo, tuple[Contact, ...], tuple[Problem, ...]]] = {}
        self._listing = Listing((), ())
        self._lock = threading.Lock()

    def all(self) -> tuple[Contact, ...]:
        """Every contact by name, the owner's own card among them; at most CARDS_LIMIT."""
        cards = [card for _, cards, _ in self._load() for card in cards]
        return tuple(sorted(cards, key=lambda card: (card.name.casefold(), card.source))[:CARDS_LIMIT])

    def me(self) -> Contact | None:
        """The owner's own card."""
        return next((card for card in self.all() if card.mine), None)

    def names(self) -> tuple[str, ...]:
        """The distinct names of everybody but the owner."""
        return tuple(dict.fromkeys(card.name for card in self.all() if not card.mine))

    def lookup(self, name: str) -> tuple[Contact, ...]:
        """Who is meant: those of exactly this name or nickname; if none, those whose name has all its words. Case,
        accents and punctuation don't count; similarity never does: it would take Ann for Anna."""
        wanted = _words(name)
        if not wanted:
            return ()
        cards = self.all()
        exact = tuple(card for card in cards if wanted in {_words(text) for text in (card.name, *card.nicknames)})
        return exact or tuple(card for card in cards if set(wanted) <= set(_words(card.name)))

    def problems(self) -> list[Problem]:
        """What could not be read: folders, files, cards."""
        files = self._load()
        folders = [Problem(one.name, f"it cannot be read: {one.reason}") for one in self._listing.unread]
        return [*folders, *(problem for _, _, problems in files for problem in problems)]

    def unread(self) -> tuple[Unread, ...]:
        """The folders below that could not be read when the address book was last looked at."""
        return self._listing.unread

    def _load(self) -> list[tuple[FileInfo, tuple[Contact, ...], tuple[Problem, ...]]]:
        with self._lock:
            listing = self._folder.listing(suffixes=frozenset({".vcf", ".vcard"}))
            # what was known of a folder that cannot be read any more stays known: it is still personal
            current = {name: file for name, file in self._files.items() if listing.hides(name)}
            for info in listing.files:
                known = self._files.get(info.name)
                current[info.name] = known if known is not None and known[0] == info else (info, *self._parse(info))
            self._files, self._listing = current, listing
            return list(current.values())

    def _parse(self, info: FileInfo) -> tuple[tuple[Contact, ...], tuple[Problem, ...]]:
        try:
            text = self._folder.read(info.name).decode("utf-8-sig")
        except SourceError as error:
            return (), (Problem(info.name, str(error)),)
        except UnicodeDecodeError:
            return (), (Problem(info.name, "it is no UTF-8 text"),)
        cards: list[Contact] = []
        problems: list[Problem] = []
        whole = list(_CARD.finditer(text))
        if len(whole) != len(_BEGIN.findall(text)):
            problems.append(Problem(info.name, "a card is cut off"))
        mine = Path(info.name).stem.casefold() in OWN_CARDS
        for number, match in enumerate(whole, start=1):
            card, reason = _read_card(match[0], info.name, mine)
            if card is not None:
                cards.append(card)
            if reason:
                problems.append(Problem(info.name, f"card {number}: {reason}"))
        return tuple(cards), tuple(problems)


def _read_card(text: str, source: str, mine: bool) -> tuple[Contact | None, str]:
    """The contact, if any, and what was wrong with the card, if anything."""
    if len(text) > CARD_LIMIT_CHARS:
        return None, "it is too long"
    reason = ""
    try:
        try:
            card = vobject.readOne(text)
        except vobject.base.ParseError:
            reason = "a line cannot be read and was left out"
            card = vobject.readOne(text, ignoreUnreadable=True)
        contact = _contact(card, text, source, mine)
    except _DAMAGE as error:
        return None, f"it cannot be read ({type(error).__name__})"
    return (contact, reason) if contact.name else (None, "it has no name")


def _contact(card: Any, text: str, source: str, mine: bool) -> Contact:
    given, family, fallback = "", "", ""
    for entry in card.contents.get("n", []):
        given, family = _clean(entry.value.given), _clean(entry.value.family)
        fallback = f"{given} {family}".strip()
    organisation = next((_clean(entry.value) for entry in card.contents.get("org", [])), "")
    name = next((_clean(entry.value) for entry in card.contents.get("fn", [])), "") or fallback or organisation
    addresses = [entry.value for entry in card.contents.get("adr", [])]
    return Contact(
        name=name, given=given, family=family, nicknames=tuple(_nicknames(text)),
        emails=_all(card, "email", "mailto:"), phones=_all(card, "tel", "tel:"),
        addresses=tuple(line for line in map(_address, addresses) if line),
        streets=tuple(street for street in (_clean(address.street) for address in addresses) if street),
        birthday=next((_birthday(_clean(entry.value)) for entry in card.contents.get("bday", [])), ""),
        organisation=organisation, source=source, mine=mine,
    )


def _all(card: Any, name: str, prefix: str) -> tuple[str, ...]:
    """The distinct values of a property; vCard 4 writes them as URIs."""
    found = []
    for entry in card.contents.get(name, []):
        value = _clean(entry.value)
        if value.lower().startswith(prefix):
            value = value[len(prefix):].split(";")[0]
        found.append(value)
    return tuple(dict.fromkeys(value for value in found if value))


def _nicknames(text: str) -> Iterator[str]:
    """Read from the text: the library keeps only the first of a comma-separated list."""
    for line in re.sub(r"\r?\n[ \t]", "", text).splitlines():
        name, _, value = line.partition(":")
        if name.split(";")[0].split(".")[-1].upper() == "NICKNAME":
            for part in re.split(r"(?<!\\),", value):
                cleaned = _clean(re.sub(r"\\(.)", r"\1", part))
                if cleaned:
                    yield cleaned


def _address(address: Any) -> str:
    town = " ".join(part for part in (_clean(address.code), _clean(address.city)) if part)
    parts = (
        _clean(address.box), _clean(address.extended), _clean(address.street), town, _clean(address.region),
        _clean(address.country),
    )
    return ", ".join(part for part in parts if part)


def _birthday(text: str) -> str:
    """ISO form, or the text as it stands."""
    match = re.match(r"(\d{4}|--)-?(\d{2})-?(\d{2})(?!\d)", text)
    if match is None:
        return text
    year = match[1] if match[1] != "--" else "-"
    return f"{year}-{match[2]}-{match[3]}"


def _clean(value: Any) -> str:
    """One line of text; structured values are lists."""
    if isinstance(value, list):
        value = " ".join(str(part) for part in value if part)
    return " ".join(str(value).split())[:VALUE_LIMIT_CHARS] if value else ""


def _words(name: str) -> tuple[str, ...]:
    plain = unicodedata.normalize("NFKD", name.casefold())
    return tuple(re.findall(r"\w+", "".join(part for part in plain if not unicodedata.combining(part))))
