"""Calendars as people really have them: rules, exceptions, zones, whole days, the change of clocks, damage."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from node.sources.errors import NotThere
from node.sources.event import NewEvent
from node.sources.ics import Calendars

BERLIN = ZoneInfo("Europe/Berlin")
SHARED = Path(__file__).parents[4] / "shared" / "data" / "agent"


def calendar(*events: str, head: str = "") -> str:
    return "\r\n".join(
        ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//t//", *([head] if head else []), *events, "END:VCALENDAR", ""]
    )


def event(*lines: str) -> str:
    return "\r\n".join(["BEGIN:VEVENT", *lines, "END:VEVENT"])


def opened(folder: Path, text: str, name: str = "owner.ics") -> Calendars:
    (folder / name).write_bytes(text.encode())
    return Calendars(folder, BERLIN)


def days(first: date, count: int = 1) -> tuple[datetime, datetime]:
    start = datetime(first.year, first.month, first.day, tzinfo=BERLIN)
    last = first + timedelta(days=count)
    return start, datetime(last.year, last.month, last.day, tzinfo=BERLIN)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def times(found: list) -> list[tuple[str, str]]:
    return [(f"{each.start:%m-%d %H:%M}", f"{each.end:%m-%d %H:%M}") for each in found]


# ------------------------------------------------------------ the development calendars, checked by hand


@pytest.fixture
def shared() -> Calendars:
    if not (SHARED / "owner.ics").exists():
        pytest.skip("the development calendars are not beside the checkout")
    return Calendars(SHARED, BERLIN, people=lambda: ["Dana Whitfield", "Ravi Menon"])


def test_new_york_call_moves_with_the_two_clocks(shared: Calendars) -> None:
    # 11:00 in New York is 16:00 in Berlin until 28 March (New York changed on the 8th), 17:00 after the 29th.
    calls = [each for each in shared.events(days(date(2026, 3, 2), 40)) if each.title == "NY call"]
    local = [f"{each.start.astimezone(BERLIN):%d.%m. %H:%M}" for each in calls]
    assert local == ["04.03. 17:00", "11.03. 16:00", "18.03. 16:00", "25.03. 16:00", "01.04. 17:00", "08.04. 17:00"]


def test_standup_keeps_its_wall_clock_over_the_change(shared: Calendars) -> None:
    found = [each for each in shared.events(days(date(2026, 3, 23), 8)) if each.title == "Standup Monday"]
    assert times(found) == [("03-23 09:00", "03-23 10:00"), ("03-30 08:00", "03-30 09:00")]


def test_exception_date_is_left_out(shared: Calendars) -> None:
    focus = [
        each.start.astimezone(BERLIN).date().isoformat()
        for each in shared.events(days(date(2026, 3, 16), 20))
        if each.title == "Thursday focus"
    ]
    assert focus == ["2026-03-19", "2026-04-02"]


def test_count_ends_a_rule(shared: Calendars) -> None:
    team = [each for each in shared.events(days(date(2026, 7, 1), 40)) if each.title == "Team Tuesday"]
    # 20 Tuesdays from 3 March: the last is 14 July.
    assert [each.start.date() for each in team] == [date(2026, 7, 7), date(2026, 7, 14)]


def test_cancelled_is_nowhere_and_transparent_is_listed_but_not_busy(shared: Calendars) -> None:
    assert "Cancelled thing" not in {each.title for each in shared.events(days(date(2026, 3, 20)))}
    birthday = [each for each in shared.events(days(date(2026, 3, 24))) if each.title == "Ana's birthday"]
    assert [(each.all_day, each.busy) for each in birthday] == [(True, False)]
    assert shared.busy(days(date(2026, 3, 24))) == [(utc("2026-03-24T12:00"), utc("2026-03-24T13:30"))]


def test_whole_day_is_busy_from_local_midnight_to_midnight(shared: Calendars) -> None:
    assert shared.busy(days(date(2026, 3, 27))) == [(utc("2026-03-26T23:00"), utc("2026-03-27T23:00"))]


def test_other_people_by_name(shared: Calendars) -> None:
    assert shared.known("Dana Whitfield")
    assert shared.known("dana")
    assert not shared.known("Ravi Menon")
    assert shared.busy(days(date(2026, 3, 24)), person="Dana Whitfield") == [
        (utc("2026-03-24T08:00"), utc("2026-03-24T08:30")),
        (utc("2026-03-24T09:00"), utc("2026-03-24T11:00")),
    ]
    assert shared.busy(days(date(2026, 3, 24)), person="Ravi Menon") == []
    with pytest.raises(NotThere):
        shared.events(days(date(2026, 3, 24)), person="Ravi Menon")
    # Two days away over the change of clocks: 30 and 31 March are in summer time.
    assert shared.busy(days(date(2026, 3, 29), 4), person="Dana")[0] == (
        utc("2026-03-29T22:00"),
        utc("2026-03-31T22:00"),
    )


def test_two_people_of_one_first_name(tmp_path: Path) -> None:
    (tmp_path / "dana.ics").write_text(
        calendar(event("UID:1", "SUMMARY:x", "DTSTART:20260324T100000Z", "DTEND:20260324T110000Z"))
    )
    two = Calendars(tmp_path, BERLIN, people=lambda: ["Dana Whitfield", "Dana Berg"])
    assert not two.known("Dana Whitfield")
    (tmp_path / "dana_whitfield.ics").write_text((tmp_path / "dana.ics").read_text())
    assert two.known("Dana Whitfield")
    assert not two.known("Dana Berg")


MEETING = event("UID:1", "SUMMARY:x", "DTSTART:20260324T100000Z", "DTEND:20260324T110000Z")


@pytest.mark.parametrize("name", ["e.ics", "work.ics", "Dana's school.ics", "dana/home.ics", "dana.ical.ics"])
def test_a_file_named_after_nobody_known_is_the_owners(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(calendar(MEETING))
    found = Calendars(tmp_path, BERLIN, people=lambda: ["Dana Whitfield"])
    assert [each.calendar for each in found.events(days(date(2026, 3, 24)))] == [name]
    assert found.busy(days(date(2026, 3, 24))) == [(utc("2026-03-24T10:00"), utc("2026-03-24T11:00"))]
    assert not found.known("Dana Whitfield") and not found.known(Path(name).stem)
    assert (found.find("1"), found.problems()) == (name, [])


def test_a_file_is_somebody_elses_only_while_exactly_one_contact_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "dana.ics").write_text(calendar(MEETING))
    (tmp_path / "owner-dana.ics").write_text(calendar())
    people: list[str] = []
    found = Calendars(tmp_path, BERLIN, people=lambda: people)
    taken = [(utc("2026-03-24T10:00"), utc("2026-03-24T11:00"))]
    assert found.busy(days(date(2026, 3, 24))) == taken and not found.known("Dana Whitfield")
    people.append("Dr. Dana Whitfield")
    assert found.busy(days(date(2026, 3, 24))) == []
    assert found.busy(days(date(2026, 3, 24)), person="Dr. Dana Whitfield") == taken
    people.append("Dana Berg")
    assert found.busy(days(date(2026, 3, 24))) == taken and not found.known("Dana Berg")


def test_new_events_go_to_the_owners_file_whatever_else_is_there(tmp_path: Path) -> None:
    (tmp_path / "work.ics").write_text(calendar(MEETING))
    found = Calendars(tmp_path, BERLIN)
    new = NewEvent("2", "Dentist", utc("2026-03-25T10:00"), utc("2026-03-25T11:00"))
    assert found.create_event(new, stamp=utc("2026-03-01T00:00")).file == "owner.ics"
    assert len(found.events(days(date(2026, 3, 24), 2))) == 2


# ------------------------------------------------------------ corner cases of the format


def test_moved_and_cancelled_occurrences(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        calendar(
            event(
                "UID:1",
                "SUMMARY:d",
                "DTSTART;TZID=Europe/Berlin:20260327T100000",
                "DTEND;TZID=Europe/Berlin:20260327T110000",
                "RRULE:FREQ=DAILY;COUNT=4",
            ),
            event(
                "UID:1",
                "SUMMARY:moved",
                "RECURRENCE-ID;TZID=Europe/Berlin:20260328T100000",
                "DTSTART;TZID=Europe/Berlin:20260328T150000",
                "DTEND;TZID=Europe/Berlin:20260328T160000",
            ),
            event(
                "UID:1",
                "SUMMARY:off",
                "STATUS:CANCELLED",
                "RECURRENCE-ID;TZID=Europe/Berlin:20260329T100000",
                "DTSTART;TZID=Europe/Berlin:20260329T100000",
            ),
        ),
    ).events(days(date(2026, 3, 25), 10))
    assert [(each.title, f"{each.start:%m-%d %H:%M}") for each in found] == [
        ("d", "03-27 09:00"),
        ("moved", "03-28 14:00"),
        ("d", "03-30 08:00"),
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["DTSTART:20260310T100000", "DURATION:PT90M"], [("03-10 09:00", "03-10 10:30")]),  # floating: the owner's zone
        (["DTSTART:20260310T100000Z"], [("03-10 10:00", "03-10 10:00")]),  # no end: no length
        (["DTSTART;VALUE=DATE:20260310"], [("03-09 23:00", "03-10 23:00")]),  # a day
        (["DTSTART;VALUE=DATE:20260310", "DTEND;VALUE=DATE:20260310"], [("03-09 23:00", "03-10 23:00")]),
        (["DTSTART;VALUE=DATE:20260309", "DTEND;VALUE=DATE:20260312"], [("03-08 23:00", "03-11 23:00")]),
        (
            [
                "DTSTART;TZID=W. Europe Standard Time:20260310T100000",
                "DTEND;TZID=W. Europe Standard Time:20260310T110000",
            ],
            [("03-10 09:00", "03-10 10:00")],
        ),
        (
            ["DTSTART;TZID=Asia/Kolkata:20260310T153000", "DTEND;TZID=Asia/Kolkata:20260310T160000"],
            [("03-10 10:00", "03-10 10:30")],
        ),
        (
            ["DTSTART:20260301T100000Z", "DTEND:20260301T110000Z", "RDATE:20260310T120000Z"],
            [("03-10 12:00", "03-10 13:00")],
        ),
        (["DTSTART:20260309T233000Z", "DTEND:20260310T003000Z"], [("03-09 23:30", "03-10 00:30")]),
    ],
)
def test_forms_of_time(tmp_path: Path, lines: list[str], expected: list[tuple[str, str]]) -> None:
    assert (
        times(opened(tmp_path, calendar(event("UID:1", "SUMMARY:x", *lines))).events(days(date(2026, 3, 10))))
        == expected
    )


def test_calendar_wide_zone_is_honoured(tmp_path: Path) -> None:
    text = calendar(
        event("UID:1", "SUMMARY:x", "DTSTART:20260310T100000", "DTEND:20260310T110000"),
        head="X-WR-TIMEZONE:America/New_York",
    )
    assert times(opened(tmp_path, text).events(days(date(2026, 3, 10)))) == [("03-10 14:00", "03-10 15:00")]


def test_ends_are_half_open(tmp_path: Path) -> None:
    calendars = opened(
        tmp_path, calendar(event("UID:1", "SUMMARY:x", "DTSTART:20260310T100000Z", "DTEND:20260310T110000Z"))
    )
    assert calendars.events((utc("2026-03-10T11:00"), utc("2026-03-10T12:00"))) == []
    assert calendars.events((utc("2026-03-10T09:00"), utc("2026-03-10T10:00"))) == []
    assert len(calendars.events((utc("2026-03-10T10:59"), utc("2026-03-10T12:00")))) == 1
    assert calendars.busy((utc("2026-03-10T10:30"), utc("2026-03-10T12:00"))) == [
        (utc("2026-03-10T10:30"), utc("2026-03-10T11:00"))
    ]


def test_people_and_places(tmp_path: Path) -> None:
    calendars = opened(
        tmp_path,
        calendar(
            event(
                "UID:1",
                "SUMMARY:Lunch\\, outside",
                "DTSTART:20260310T100000Z",
                "DTEND:20260310T110000Z",
                "LOCATION:Mill Lane 4",
                'ATTENDEE;CN="Whitfield, Dana":mailto:dana@example.org',
                "ATTENDEE:mailto:bo@example.org",
                "ATTENDEE;CN=Zoe:invalid:nomail",
                "ORGANIZER;CN=Ravi:mailto:ravi@example.org",
            )
        ),
    )
    [found] = calendars.events(days(date(2026, 3, 10)))
    assert (found.title, found.location) == ("Lunch, outside", "Mill Lane 4")
    assert found.attendees == ("Whitfield, Dana", "bo@example.org", "Zoe")
    [master] = calendars.masters()
    assert master.emails == ("dana@example.org", "bo@example.org", "ravi@example.org")


# ------------------------------------------------------------ damage

GOOD = event("UID:ok", "SUMMARY:ok", "DTSTART:20260310T100000Z", "DTEND:20260310T110000Z")


@pytest.mark.parametrize(
    "bad",
    [
        event("UID:b", "SUMMARY:bad", "DTSTART:garbage"),
        event("UID:b", "SUMMARY:bad"),
        event("UID:b", "SUMMARY:bad", "DTSTART:20260310T100000Z", "RRULE:FREQ=NOPE"),
        event("UID:b", "SUMMARY:bad", "DTSTART:20260310T100000Z", "RRULE:FREQ=SECONDLY"),
        event("UID:b", "SUMMARY:bad", "DTSTART:20260310T100000Z", "RRULE:FREQ=MINUTELY;INTERVAL=5"),
        event(
            "UID:b",
            "SUMMARY:bad",
            "DTSTART:20260310T100000Z",
            "RRULE:FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=" + ",".join(map(str, range(60))),
        ),
        event("UID:b", "SUMMARY:bad", "DTSTART:00010101T000000Z", "RRULE:FREQ=DAILY"),
        event("UID:b", "SUMMARY:bad", "DTSTART:20260310T100000Z", "DTSTART:20260311T100000Z"),
        # each of these the library follows for ever, or for minutes: whoever sends a calendar must not hold it up
        event("UID:b", "SUMMARY:bad", "DTSTART:20260301T100000Z", "RRULE:FREQ=DAILY;INTERVAL=0"),
        event("UID:b", "SUMMARY:bad", "DTSTART:20260301T100000Z", "RRULE:FREQ=DAILY;INTERVAL=-1"),
        event("UID:b", "SUMMARY:bad", "DTSTART:20260301T100000Z", "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"),
        event("UID:b", "SUMMARY:bad", "DTSTART:20260301T100000Z", "RRULE:FREQ=HOURLY;BYMONTH=4,6;BYMONTHDAY=31"),
        event("UID:b", "SUMMARY:bad", "DTSTART:20260301T100000Z", "RRULE:FREQ=DAILY;BYMONTH=3;BYYEARDAY=1,-1"),
        event("UID:b", "SUMMARY:bad", "DTSTART:19000301T100000Z", "RRULE:FREQ=HOURLY"),
        event("UID:b", "SUMMARY:bad", "DTSTART:19000301T100000Z", "RRULE:FREQ=HOURLY;BYMINUTE=0,30;COUNT=999999999"),
    ],
)
def test_one_bad_event_never_hides_the_others(tmp_path: Path, bad: str) -> None:
    calendars = opened(tmp_path, calendar(bad, GOOD))
    assert [each.title for each in calendars.events(days(date(2026, 3, 10)))] == ["ok"]
    [problem] = calendars.problems()
    assert problem.source == "owner.ics"


@pytest.mark.parametrize(("start", "rule", "day"), [
    ("20240229T100000Z", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29", date(2028, 2, 29)),
    ("20240229T100000Z", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=-1", date(2027, 2, 28)),
    ("20260213T100000Z", "FREQ=DAILY;BYMONTHDAY=13;BYDAY=FR", date(2026, 11, 13)),
    ("20251231T100000Z", "FREQ=MONTHLY;BYMONTH=12;BYMONTHDAY=31", date(2026, 12, 31)),
    ("20251231T100000Z", "FREQ=DAILY;BYYEARDAY=-1", date(2026, 12, 31)),
    ("19000301T100000Z", "FREQ=DAILY", date(2026, 3, 10)),
])
def test_control_rare_and_old_rules_are_followed(tmp_path: Path, start: str, rule: str, day: date) -> None:
    calendars = opened(tmp_path, calendar(event("UID:r", "SUMMARY:rare", f"DTSTART:{start}", f"RRULE:{rule}")))
    assert [each.title for each in calendars.events(days(day))] == ["rare"]
    assert calendars.problems() == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "hello",
        "BEGIN:VCALENDAR\r\n",
        "END:VCALENDAR\r\n",
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n" + GOOD + "\r\n",  # cut off after an event
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n" + GOOD[:60],  # cut off inside one
        "BEGIN:VCALENDAR\r\nno colon here\r\nEND:VCALENDAR\r\n",
        calendar(GOOD).replace("END:VEVENT", "END:VTODO"),
    ],
)
def test_a_broken_file_is_reported_and_harmless(tmp_path: Path, text: str) -> None:
    (tmp_path / "owner-home.ics").write_text(calendar(GOOD))
    calendars = opened(tmp_path, text, "owner.ics")
    assert [each.title for each in calendars.events(days(date(2026, 3, 10)))] == ["ok"]
    assert bool(calendars.problems()) is bool(text.strip())


def test_bytes_that_are_no_text_are_reported(tmp_path: Path) -> None:
    (tmp_path / "owner.ics").write_bytes(b"\xff\xfe\x00BEGIN:VCALENDAR")
    assert [each.reason for each in Calendars(tmp_path, BERLIN).problems()] == ["it is no UTF-8 text"]


def test_an_unknown_zone_is_reported_and_read_as_ones_own(tmp_path: Path) -> None:
    calendars = opened(
        tmp_path,
        calendar(
            event(
                "UID:1",
                "SUMMARY:x",
                "DTSTART;TZID=Nowhere/Land:20260310T100000",
                "DTEND;TZID=Nowhere/Land:20260310T110000",
            )
        ),
    )
    assert times(calendars.events(days(date(2026, 3, 10)))) == [("03-10 09:00", "03-10 10:00")]
    assert "Nowhere/Land" in calendars.problems()[0].reason


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    calendars = opened(tmp_path, calendar(GOOD))
    assert len(calendars.events(days(date(2026, 3, 10)))) == 1
    opened(tmp_path, calendar(GOOD, GOOD.replace("UID:ok", "UID:two")))
    assert len(calendars.events(days(date(2026, 3, 10)))) == 2
    (tmp_path / "owner.ics").unlink()
    assert calendars.events(days(date(2026, 3, 10))) == []


def test_a_window_has_a_limit(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="above"):
        opened(tmp_path, calendar(GOOD)).events((utc("2020-01-01T00:00"), utc("2026-01-01T00:00")))
