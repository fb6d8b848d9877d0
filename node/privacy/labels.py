"""Values that remember how private they are and whom they came from.

A tool returns Labeled, a prompt is built of Labeled, the guard decides by the labels. A Labeled never becomes text by
accident: str() and format() raise, repr() shows a redacted form, so no log line can hold a value. Read `.value`
on purpose.
Must not know peers, placeholders, tools or the network.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from node.privacy.errors import LabelLeak

__all__ = [
    "PUBLIC_LABEL", "Confidentiality", "ConversationLabel", "Integrity", "Label", "Labeled", "Value", "derive",
    "is_own_text", "join", "known_values", "mixed", "owner_text", "public_text",
]


class Confidentiality(IntEnum):
    """How far a value may travel; the higher, the less."""

    PUBLIC = 0
    PERSONAL = 1
    SECRET = 2


class Integrity(IntEnum):
    """Who vouches for a value; the lower, the less it may decide."""

    UNTRUSTED = 0   # peers, search results, files from elsewhere, a remote model's answer
    LOCAL = 1       # the owner's own data read by a tool, or composed by the local model
    OWNER = 2       # typed by the owner in this conversation


class Value(NamedTuple):
    """One personal value inside a text and its type: PERSON, EMAIL, PHONE, ADDRESS, ORG, EVENT, PLACE, URL, ID."""

    text: str
    type: str


@dataclass(frozen=True, slots=True)
class Label:
    """Confidentiality and integrity without the value."""

    confidentiality: Confidentiality
    integrity: Integrity

    def joined(self, other: "Label") -> "Label":
        """The label of something made of both: as private as the more private, as trusted as the less trusted."""
        return Label(
            max(self.confidentiality, other.confidentiality), min(self.integrity, other.integrity),
        )


PUBLIC_LABEL = Label(Confidentiality.PUBLIC, Integrity.OWNER)


@dataclass(frozen=True, slots=True, repr=False)
class Labeled:
    """A text with its labels.

    values: the personal values inside the text that must be masked before it goes to a peer. None (the default) means
    that the whole text is one such value when it is personal: it leaves as a single placeholder. A tool that returns
    readable text with a few personal values in it lists them; a free text (a note) whose values nobody knows passes an
    empty tuple and relies on vault, detectors and consent.
    source: a short name for the ledger and the consent dialog: "calendar", "owner", "peer:12D3..", "share:notes".
    """

    value: str
    confidentiality: Confidentiality
    integrity: Integrity
    source: str
    values: tuple[Value, ...] | None = None

    @property
    def label(self) -> Label:
        """The label alone."""
        return Label(self.confidentiality, self.integrity)

    def __repr__(self) -> str:
        """Never the value: length, labels and source."""
        return (
            f"<Labeled {len(self.value)} chars {self.confidentiality.name.lower()}"
            f" {self.integrity.name.lower()} from {self.source}>"
        )

    def __str__(self) -> str:
        """Raises LabelLeak."""
        raise LabelLeak("str() of a labelled value; read .value on purpose")

    def __format__(self, format_spec: str) -> str:
        """Raises LabelLeak."""
        raise LabelLeak("formatting of a labelled value; read .value on purpose")


def join(parts: Iterable[Labeled]) -> Label:
    """The label of a text made of all parts; of no parts: public, owner."""
    label = PUBLIC_LABEL
    for part in parts:
        label = label.joined(part.label)
    return label


def mixed(parts: Iterable[Labeled]) -> bool:
    """Whether other people's text stands beside personal data: two of the three that may not meet unasked. A model's
    answer is no text that came in from outside; what it was made of has its own label."""
    listed = tuple(parts)
    foreign = any(part.integrity is Integrity.UNTRUSTED and not part.source.startswith("model:") for part in listed)
    return foreign and any(part.confidentiality is not Confidentiality.PUBLIC for part in listed)


def derive(value: str, parts: Iterable[Labeled], *, source: str) -> Labeled:
    """A new text computed from parts: their joined label, and all their known personal values."""
    listed = tuple(parts)
    label = join(listed)
    if label.confidentiality is Confidentiality.PUBLIC:
        return Labeled(value, label.confidentiality, label.integrity, source)
    values: dict[Value, None] = {}
    for part in listed:
        for known in known_values(part):
            values.setdefault(known)
    return Labeled(value, label.confidentiality, label.integrity, source, tuple(values))


def known_values(part: Labeled) -> tuple[Value, ...]:
    """The personal values that a part declares; the whole text when it is personal and declares none."""
    if part.confidentiality is Confidentiality.PUBLIC:
        return ()
    if part.values is None:
        return (Value(part.value, "PRIVATE"),) if part.value.strip() else ()
    return part.values


def owner_text(value: str) -> Labeled:
    """What the owner typed just now: trusted; vault, detectors and consent look at it before it leaves."""
    return Labeled(value, Confidentiality.PUBLIC, Integrity.OWNER, "owner")


def public_text(value: str, *, source: str) -> Labeled:
    """A text that Kith itself ships (a system prompt, a tool schema): no personal value is in it."""
    return Labeled(value, Confidentiality.PUBLIC, Integrity.LOCAL, source)


def is_own_text(part: Labeled) -> bool:
    """Whether it is a text that Kith itself ships (public_text with the source "kith")."""
    return part.label == Label(Confidentiality.PUBLIC, Integrity.LOCAL) and part.source == "kith"


class ConversationLabel:
    """The label of a conversation. It only rises: what was read once is in the context until the conversation ends."""

    __slots__ = ("_label",)

    def __init__(self, label: Label = PUBLIC_LABEL) -> None:
        """label: where it stands, for a conversation that is continued."""
        self._label = label

    @property
    def label(self) -> Label:
        """The label now."""
        return self._label

    def absorb(self, *parts: Labeled) -> Label:
        """Raise the label by parts that entered the context, and return it."""
        self._label = self._label.joined(join(parts))
        return self._label
