"""Writing one event: once, whole, and without touching anything else, also with kill -9 at the worst instant."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import icalendar
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.sources.errors import BadValue, BrokenSource, SourceChanged
from node.sources.event import Attendee, NewEvent
from node.sources.folder import Folder, digest_of
from node.sources.ics import Calendars
from node.sources.ics_write import EMPTY_CALENDAR, add_event, event_text, remove_event

BERLIN = ZoneInfo("Europe/Berlin")
STAMP = datetime(2026, 3, 18, 8, 30, tzinfo=UTC)
START = datetime(2026, 3, 30, 9, 0, tzinfo=BERLIN)
SHARED = Path(__file__).parents[4] / "shared" / "data" / "agent" / "owner.ics"
ROOT = Path(__file__).parents[3]

# Odd on purpose: lower case, a custom property, no order, a zone of its own, folded lines, an alarm with a UID.
KEPT = "\r\n".join(
    [
        "BEGIN:VCALENDAR",
        "X-ODD;X-P=1:kept",
        "PRODID:-//other//",
        "VERSION:2.0",
        "BEGIN:VTIMEZONE",
        "TZID:Mine",
        "BEGIN:STANDARD",
        "DTSTART:19700101T000000",
        "TZOFFSETFROM:+0100",
        "TZOFFSETTO:+0100",
        "END:STANDARD",
        "END:VTIMEZONE",
        "BEGIN:VEVENT",
        "summary:folded",
        " line",
        "UID:first",
        "DTSTART;TZID=Mine:20260310T100000",
        "X-UNKNOWN:yes",
        "BEGIN:VALARM",
        "UID:alarm",
        "ACTION:DISPLAY",
        "DESCRIPTION:x",
        "TRIGGER:-PT5M",
        "END:VALARM",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
)


def new(uid: str = "meet-1@kith", title: str = "Roof", **more: object) -> NewEvent:
    return NewEvent(uid, title, START, START + timedelta(minutes=45), **more)  # type: ignore[arg-type]


def read(path: Path) -> list[icalendar.Event]:
    return [
        each
        for found in icalendar.Calendar.from_ical(path.read_bytes(), multiple=True)
        for each in found.walk("VEVENT")
    ]


def test_a_missing_file_is_made_for_the_owner_alone(tmp_path: Path) -> None:
    calendars = Calendars(tmp_path / "calendars", BERLIN)
    done = calendars.create_event(
        new(attendees=(Attendee("Dana Whitfield", "d@example.org"), Attendee('Zoe "Z"'))), stamp=STAMP
    )
    path = tmp_path / "calendars" / "owner.ics"
    assert (done.created, done.file) == (True, "owner.ics")
    assert path.stat().st_mode & 0o777 == 0o600
    [event] = read(path)
    assert event["DTSTART"].to_ical() == b"20260330T070000Z"  # summer time since the day before: 9:00 is 7:00 UTC
    assert event["DTEND"].to_ical() == b"20260330T074500Z"
    assert [(str(who), who.params["CN"]) for who in event["ATTENDEE"]] == [
        ("mailto:d@example.org", "Dana Whitfield"),
        ("invalid:nomail", "Zoe 'Z'"),
    ]


def test_the_same_uid_twice_is_one_event(tmp_path: Path) -> None:
    calendars = Calendars(tmp_path, BERLIN)
    assert calendars.create_event(new(), stamp=STAMP).created
    before = (tmp_path / "owner.ics").read_bytes()
    assert not calendars.create_event(new(), stamp=STAMP + timedelta(hours=1)).created
    assert not Calendars(tmp_path, BERLIN).create_event(new(title="other words"), stamp=STAMP).created
    assert (tmp_path / "owner.ics").read_bytes() == before


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_every_other_byte_stays(tmp_path: Path, newline: str, mark: bytes) -> None:
    path = tmp_path / "owner.ics"
    original = mark + KEPT.replace("\r\n", newline).encode()
    path.write_bytes(original)
    path.chmod(0o640)
    calendars = Calendars(tmp_path, BERLIN)
    calendars.create_event(new(), stamp=STAMP)
    written = path.read_bytes()
    at = original.rindex(b"END:VCALENDAR")
    assert written[:at] == original[:at]
    assert written.endswith(original[at:])
    assert path.stat().st_mode & 0o777 == 0o640
    assert [str(each["UID"]) for each in read(path)] == ["first", "meet-1@kith"]
    assert calendars.delete_event("meet-1@kith")
    assert path.read_bytes() == original
    assert not calendars.delete_event("meet-1@kith")


def test_the_shared_calendar_keeps_all_its_events(tmp_path: Path) -> None:
    if not SHARED.exists():
        pytest.skip("the development calendars are not beside the checkout")
    path = tmp_path / "owner.ics"
    path.write_bytes(SHARED.read_bytes())
    before = [str(each["UID"]) for each in read(path)]
    calendars = Calendars(tmp_path, BERLIN)
    calendars.create_event(new(), stamp=STAMP)
    assert [str(each["UID"]) for each in read(path)] == [*before, "meet-1@kith"]
    assert calendars.delete_event(before[0])
    assert [str(each["UID"]) for each in read(path)] == [*before[1:], "meet-1@kith"]


@pytest.mark.parametrize("damage", [b"not a calendar", KEPT[:-40].encode(), b"\xff\xfe", b"BEGIN:VCALENDAR\r\n"])
def test_a_broken_file_is_never_overwritten(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "owner.ics").write_bytes(damage)
    with pytest.raises(BrokenSource):
        Calendars(tmp_path, BERLIN).create_event(new(), stamp=STAMP)
    assert (tmp_path / "owner.ics").read_bytes() == damage
    assert [each.name for each in tmp_path.iterdir()] == ["owner.ics"]


def test_an_empty_file_holds_nothing_to_lose(tmp_path: Path) -> None:
    (tmp_path / "owner.ics").write_bytes(b"")
    assert Calendars(tmp_path, BERLIN).create_event(new(), stamp=STAMP).created


def test_a_save_by_another_program_in_between_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "owner.ics"
    path.write_text(KEPT)
    saved = KEPT.replace("kept", "saved meanwhile")
    real = os.fsync

    def save_meanwhile(descriptor: int) -> None:
        path.write_text(saved)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", save_meanwhile)
    with pytest.raises(SourceChanged):
        Calendars(tmp_path, BERLIN).create_event(new(), stamp=STAMP)
    assert path.read_bytes() == saved.encode()
    assert [each.name for each in tmp_path.iterdir()] == ["owner.ics"]


@pytest.mark.parametrize(
    "event",
    [
        new(uid="two\r\nlines"),
        new(uid=""),
        new(uid="x" * 201),
        new(title=" "),
        new(title="a\x00b"),
        new(title="x" * 2_001),
        new(attendees=(Attendee("Bo", "no address"),)),
        new(attendees=(Attendee("Bo", "a@b\r\nX:1"),)),
        new(attendees=(Attendee(" "),)),
        NewEvent("a", "t", START, START),
        NewEvent("a", "t", START.replace(tzinfo=None), START),
    ],
)
def test_what_a_calendar_cannot_hold_is_refused(tmp_path: Path, event: NewEvent) -> None:
    with pytest.raises(BadValue):
        Calendars(tmp_path, BERLIN).create_event(event, stamp=STAMP)
    assert list(tmp_path.iterdir()) == []


texts = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=120).filter(str.strip)


@settings(max_examples=150, deadline=None)
@given(title=texts, location=texts, description=st.lists(texts, max_size=3).map("\n".join), name=texts)
def test_any_text_comes_back_and_stays_inside_its_event(title: str, location: str, description: str, name: str) -> None:
    block = event_text(
        new(title=title, location=location, description=description, attendees=(Attendee(name),)), stamp=STAMP
    )
    lines = block.split("\r\n")
    assert all(len(line.encode()) <= 75 for line in lines)
    text = add_event(EMPTY_CALENDAR, new(title=title, location=location, description=description), stamp=STAMP)
    [event] = icalendar.Calendar.from_ical(text).walk("VEVENT")
    assert (str(event["SUMMARY"]), str(event["LOCATION"]), str(event.get("DESCRIPTION", ""))) == (
        title,
        location,
        description,
    )
    assert remove_event(text, "meet-1@kith") == EMPTY_CALENDAR


def test_the_fingerprint_changes_with_the_event(tmp_path: Path) -> None:
    calendars = Calendars(tmp_path, BERLIN)
    calendars.create_event(new(), stamp=STAMP)
    first = calendars.fingerprint("meet-1@kith")
    path = tmp_path / "owner.ics"
    path.write_bytes(path.read_bytes().replace(b"SUMMARY:Roof", b"SUMMARY:Roof and gutter"))
    assert first is not None
    assert calendars.fingerprint("meet-1@kith") not in {first, None}
    assert calendars.fingerprint("nobody") is None


# ------------------------------------------------------------ kill -9

CHILD = """
import os, signal, sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo
from node.sources.event import NewEvent
from node.sources.ics import Calendars
point, folder = sys.argv[1], Path(sys.argv[2])
real = getattr(os, point)
def die_before(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
def die_after(*args, **kwargs):
    real(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, point, die_before if sys.argv[3] == "before" else die_after)
start = datetime(2026, 3, 30, 7, 0, tzinfo=UTC)
event = NewEvent("meet-1@kith", "Roof", start, start + timedelta(minutes=45))
Calendars(folder, ZoneInfo("Europe/Berlin")).create_event(event, stamp=start)
"""


@pytest.mark.parametrize("point", ["fchmod", "fsync", "rename"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_kill_9_leaves_the_old_file_or_the_new_one_and_a_retry_makes_one_event(
    tmp_path: Path, point: str, when: str
) -> None:
    path = tmp_path / "owner.ics"
    path.write_text(KEPT)
    child = subprocess.run([sys.executable, "-c", CHILD, point, str(tmp_path), when], cwd=ROOT, timeout=60, check=False)
    assert child.returncode == -signal.SIGKILL
    there = [str(each["UID"]) for each in read(path)]
    assert there == (["first", "meet-1@kith"] if (point, when) == ("rename", "after") else ["first"])
    calendars = Calendars(tmp_path, BERLIN)
    calendars.create_event(new(), stamp=STAMP)
    assert [str(each["UID"]) for each in read(path)] == ["first", "meet-1@kith"]
    assert [each.name for each in tmp_path.iterdir()] == ["owner.ics"]
    assert calendars.problems() == []


def test_the_kill_test_would_see_a_write_in_place(tmp_path: Path) -> None:
    """Negative control: without temporary file and rename, a death before the data is complete leaves damage."""
    path = tmp_path / "owner.ics"
    path.write_text(KEPT)
    script = (
        "import os, signal, sys; file = open(sys.argv[1], 'w'); file.write('BEGIN:VCAL'); file.flush();"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], timeout=60, check=False)
    assert Calendars(tmp_path, BERLIN).problems() != []


def test_replace_refuses_what_it_does_not_expect(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.replace("a.txt", b"one", expected=None)
    for expected in (None, digest_of(b"two")):
        with pytest.raises(SourceChanged):
            folder.replace("a.txt", b"three", expected=expected)
    with pytest.raises(SourceChanged):
        folder.replace("b.txt", b"three", expected=digest_of(b"one"))
    assert folder.read("a.txt") == b"one"
