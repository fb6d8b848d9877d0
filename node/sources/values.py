"""The personal values that stand in the owner's calendars and address book, typed: what the privacy vault must know.

Must not know how values are matched, masked or sent. Blocking: callers run it in a thread.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from node.sources.ics import Calendars
from node.sources.vcf import Contact, Contacts

__all__ = ["PersonalValue", "ValueType", "vault_values"]

VALUES_LIMIT = 100_000
SHORTEST_CHARS = 2


class ValueType(StrEnum):
    """What a value is; the word that a placeholder for it carries."""

    PERSON = "PERSON"
    EMAIL = "EMAIL"
    PHONE = "PHONE"
    ADDRESS = "ADDRESS"
    ORG = "ORG"
    EVENT = "EVENT"
    DATE = "DATE"


@dataclass(frozen=True, slots=True)
class PersonalValue:
    """One value as it stands in the owner's data."""

    type: ValueType
    text: str
    source: str
    """Where it stands: file name, for the owner's eyes only."""


def vault_values(calendars: Calendars, contacts: Contacts) -> tuple[PersonalValue, ...]:
    """Every distinct (type, text), address book first, at most VALUES_LIMIT. Names come whole and as they are commonly
    said (given + family); splitting and folding them is the vault's work. Never raises for a broken file: what
    cannot be read cannot be known, and is listed by Calendars.problems and Contacts.problems."""
    found: dict[tuple[ValueType, str], PersonalValue] = {}
    for value in _all_values(calendars, contacts):
        text = " ".join(value.text.split())
        if len(text) >= SHORTEST_CHARS:
            found.setdefault((value.type, text), PersonalValue(value.type, text, value.source))
        if len(found) >= VALUES_LIMIT:
            break
    return tuple(found.values())


def _all_values(calendars: Calendars, contacts: Contacts) -> Iterator[PersonalValue]:
    for contact in contacts.all():
        yield from _of_contact(contact)
    for master in calendars.masters():
        for attendee in master.attendees:
            yield PersonalValue(ValueType.EMAIL if "@" in attendee else ValueType.PERSON, attendee, master.calendar)
        for email in master.emails:
            yield PersonalValue(ValueType.EMAIL, email, master.calendar)
        if master.location:
            yield PersonalValue(ValueType.ADDRESS, master.location, master.calendar)
        if master.title:
            yield PersonalValue(ValueType.EVENT, master.title, master.calendar)


def _of_contact(contact: Contact) -> Iterator[PersonalValue]:
    groups: tuple[tuple[ValueType, Iterable[str]], ...] = (
        (ValueType.PERSON, (contact.name, f"{contact.given} {contact.family}", *contact.nicknames)),
        (ValueType.EMAIL, contact.emails),
        (ValueType.PHONE, contact.phones),
        (ValueType.ADDRESS, (*contact.addresses, *contact.streets)),
        (ValueType.DATE, (contact.birthday,)),
        (ValueType.ORG, (contact.organisation,)),
    )
    for type_, texts in groups:
        for text in texts:
            yield PersonalValue(type_, text, contact.source)
