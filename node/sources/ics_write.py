"""Adds one event to the text of an iCalendar file, or takes one out, and leaves every other byte as it is.

Working on the text, not on a parsed and re-serialised calendar, is the point: libraries reorder, drop what they do
not know and damage time zones on the way through. Times are written in UTC, so no VTIMEZONE is needed. Must not know
files. Source: RFC 5545, sections 3.1 (folding at 75 octets), 3.3.11 (escaping) and 3.6.1 (VEVENT).
"""

import re
from datetime import UTC, datetime

from node.sources.errors import BadValue, BrokenSource
from node.sources.event import NewEvent

__all__ = ["EMPTY_CALENDAR", "add_event", "event_text", "remove_event"]

EMPTY_CALENDAR = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Kith//Calendar//EN\r\nEND:VCALENDAR\r\n"
UID_LIMIT_CHARS = 200
TEXT_LIMIT_CHARS = 2_000
NO_ADDRESS = "invalid:nomail"
"""What calendar programs put for a person without a known address; an ATTENDEE needs some URI."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_END = re.compile(r"^END:VCALENDAR[ \t\r]*$", re.IGNORECASE | re.MULTILINE)


def add_event(text: str, event: NewEvent, *, stamp: datetime) -> str:
    """The file's text with the event before the end of its last calendar. Raises BrokenSource when there is none."""
    ends = list(_END.finditer(text))
    if not ends:
        raise BrokenSource("the file holds no calendar")
    newline = "\r\n" if "\r\n" in text else "\n"
    block = event_text(event, stamp=stamp).replace("\r\n", newline)
    at = ends[-1].start()
    return text[:at] + block + text[at:]


def remove_event(text: str, uid: str) -> str:
    """The file's text without the VEVENTs of this UID; unchanged when it has none."""
    kept: list[str] = []
    block: list[str] | None = None
    depth = 0
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        word = line.strip().upper()
        if block is None:
            if word == "BEGIN:VEVENT":
                block, depth = [line], 1
            else:
                kept.append(line)
            continue
        block.append(line)
        depth += word.startswith("BEGIN:") - word.startswith("END:")
        if depth == 0:
            if _uid_of(block) != uid:
                kept.extend(block)
            block = None
    return "".join([*kept, *(block or [])])


def event_text(event: NewEvent, *, stamp: datetime) -> str:
    """The VEVENT, folded, with CRLF. Raises BadValue for what a calendar cannot hold."""
    _check(event)
    lines = [
        "BEGIN:VEVENT",
        f"UID:{event.uid}",
        f"DTSTAMP:{_utc(stamp)}",
        f"DTSTART:{_utc(event.start)}",
        f"DTEND:{_utc(event.end)}",
        f"SUMMARY:{_escape(event.title)}",
    ]
    if event.location:
        lines.append(f"LOCATION:{_escape(event.location)}")
    if event.description:
        lines.append(f"DESCRIPTION:{_escape(event.description)}")
    for attendee in event.attendees:
        address = f"mailto:{attendee.email}" if attendee.email else NO_ADDRESS
        lines.append(f'ATTENDEE;CN="{_parameter(attendee.name)}":{address}')
    lines.append("END:VEVENT")
    return "".join(_fold(line) for line in lines)


def _check(event: NewEvent) -> None:
    if not re.fullmatch(r"[A-Za-z0-9@._+-]+", event.uid) or len(event.uid) > UID_LIMIT_CHARS:
        raise BadValue("An event's UID is made of letters, digits and @ . _ + - only.")
    if event.start.tzinfo is None or event.end.tzinfo is None:
        raise BadValue("An event's times need a time zone.")
    if event.end <= event.start:
        raise BadValue("An event must end after it starts.")
    if not event.title.strip():
        raise BadValue("An event needs a title.")
    for text in (event.title, event.location, event.description):
        if len(text) > TEXT_LIMIT_CHARS or _CONTROL.search(text):
            raise BadValue(f"A calendar text is at most {TEXT_LIMIT_CHARS} characters, without control characters.")
    for attendee in event.attendees:
        if not attendee.name.strip() or len(attendee.name) > UID_LIMIT_CHARS:
            raise BadValue("A person to invite needs a name of sane length.")
        if attendee.email and not re.fullmatch(r"[^\s@:;,<>\"\x00-\x1f]+@[^\s@:;,<>\"\x00-\x1f]+", attendee.email):
            raise BadValue(f"{attendee.email!r} is no e-mail address.")


def _uid_of(block: list[str]) -> str | None:
    """The UID of a VEVENT's own lines, not of an alarm inside it."""
    unfolded = re.sub(r"\r?\n[ \t]", "", "".join(block))
    depth = 0
    for line in unfolded.split("\n"):
        word = line.strip().upper()
        depth += word.startswith("BEGIN:") - word.startswith("END:")
        name, _, value = line.partition(":")
        if depth == 1 and name.split(";")[0].upper() == "UID":
            return _unescape(value.strip())
    return None


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def _escape(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    return escaped.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\\n")


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] in "nN" else match[1], text)


def _parameter(text: str) -> str:
    """A quoted parameter value may hold neither quotes nor line breaks."""
    return " ".join(text.replace('"', "'").split())


def _fold(line: str) -> str:
    """Lines of at most 75 octets, cut between characters."""
    pieces: list[str] = []
    current, size = "", 0
    for character in line:
        width = len(character.encode())
        if size + width > 75:
            pieces.append(current)
            current, size = " ", 1
        current += character
        size += width
    return "\r\n".join([*pieces, current]) + "\r\n"
