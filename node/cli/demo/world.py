"""The invented household that the demonstration plays in: folders, calendars, contacts, notes and the values that
must not leak.

All names, numbers and addresses are made up. Dates are set from today, so that the calendar is always fresh. Must not
know how
nodes are run or asked.
"""

import os
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

__all__ = ["CANARIES", "World", "make_world"]

CANARIES = (
    "Dana Whitfield",
    "dana.whitfield@meadowmail.test",
    "+44 117 496 0121",
    "14 Willow Lane, Bristol",
    "Marcus Oduya",
    "marcus.oduya@meadowmail.test",
    "+44 117 496 0177",
    "3 Quarry Steps, Bath",
    "Dr. Imogen Sarkisian",
    "Fertility clinic appointment",
    "Allotment plot 88B",
    "Grandmother's ring appraisal",
)
"""The twelve personal values planted on the phone. Their addresses end in .test, since those that the guard invents in
their place hold the word "example"."""

CONTACTS = """\
BEGIN:VCARD
VERSION:3.0
FN:Dana Whitfield
N:Whitfield;Dana;;;
EMAIL:dana.whitfield@meadowmail.test
TEL:+44 117 496 0121
ADR:;;14 Willow Lane;Bristol;;;
END:VCARD
BEGIN:VCARD
VERSION:3.0
FN:Marcus Oduya
N:Oduya;Marcus;;;
EMAIL:marcus.oduya@meadowmail.test
TEL:+44 117 496 0177
ADR:;;3 Quarry Steps;Bath;;;
END:VCARD
BEGIN:VCARD
VERSION:3.0
FN:Dr. Imogen Sarkisian
N:Sarkisian;Imogen;;Dr.;
END:VCARD
"""

ROOF = """\
# Roof

Dana Whitfield mended the roof of the house at 14 Willow Lane, Bristol. The work took three days and cost 480 euros. \
Dana Whitfield will come again in May to look at the gutter.
"""

BOILER = """\
# Boiler handbook

If the boiler shows error F28, close the gas tap and wait ten minutes. The pressure must stand between 1.2 and 1.8 bar
when
the system is cold. Turn the filling loop a quarter to the left to raise it.

# Chimney

The chimney sweep comes in October. Keep the soot door shut.
"""

GARDEN = """\
# Garden log

Sow broad beans in November under fleece. The rain barrel holds 210 litres and its tap is on the north side.
"""


@dataclass(frozen=True, slots=True)
class World:
    """Where everything of one demonstration lies, and what its checks need to know."""

    root: Path
    phone: Path
    home_pc: Path
    calendar: Path
    shared: Path
    tuesday: date
    busy: tuple[tuple[datetime, datetime], ...] = field(default=())


def _event(uid: str, title: str, start: datetime, end: datetime, where: str = "") -> str:
    stamp = "%Y%m%dT%H%M%SZ"
    lines = [
        "BEGIN:VEVENT",
        f"UID:{uid}@demo.example",
        f"DTSTAMP:{start.astimezone(UTC).strftime(stamp)}",
        f"DTSTART:{start.astimezone(UTC).strftime(stamp)}",
        f"DTEND:{end.astimezone(UTC).strftime(stamp)}",
        f"SUMMARY:{title}",
    ]
    if where:
        lines.append("LOCATION:" + where.replace(",", "\\,"))
    return "\r\n".join([*lines, "END:VEVENT"])


def make_world(root: Path, now: datetime) -> World:
    """Write the household below root and return where it is. now: aware, in the owner's zone."""
    phone, home_pc = root / "phone", root / "home-pc"
    tomorrow = now.date() + timedelta(days=1)
    tuesday = now.date() + timedelta(days=(1 - now.weekday()) % 7 or 7)
    if (tuesday - now.date()).days < 2:
        tuesday += timedelta(days=7)

    def at(day: date, hour: int, minute: int = 0) -> datetime:
        return datetime.combine(day, time(hour, minute), now.tzinfo)

    busy = ((at(tuesday, 12), at(tuesday, 14)), (at(tuesday, 14, 30), at(tuesday, 15)))
    events = [
        _event(
            "demo-clinic", "Fertility clinic appointment", at(tomorrow, 9), at(tomorrow, 10), "Dr. Imogen Sarkisian"
        ),
        _event("demo-plot", "Allotment plot 88B", at(tomorrow, 17), at(tomorrow, 18)),
        _event("demo-ring", "Grandmother's ring appraisal", *busy[0]),
        _event("demo-school", "School run", *busy[1]),
    ]
    calendar = phone / "calendar" / "owner.ics"
    for folder in (phone / "calendar", phone / "contacts", phone / "notes", home_pc / "library"):
        folder.mkdir(parents=True, mode=0o700)
    calendar.write_text(
        "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//kith demo//EN", *events, "END:VCALENDAR", ""]),
        encoding="utf-8",
        newline="",
    )
    (phone / "contacts" / "people.vcf").write_text(CONTACTS, encoding="utf-8")
    (phone / "notes" / "roof.md").write_text(ROOF, encoding="utf-8")
    (home_pc / "library" / "boiler.md").write_text(BOILER, encoding="utf-8")
    (home_pc / "library" / "garden.md").write_text(GARDEN, encoding="utf-8")
    for home, name in ((phone, "phone"), (home_pc, "home-pc")):
        _write_settings(home, name)
    return World(root, phone, home_pc, calendar, home_pc / "library", tuesday, busy)


def _write_settings(home: Path, name: str) -> None:
    folder = home / "config"
    folder.mkdir(parents=True, mode=0o700)
    os.chmod(home, 0o700)
    sources = {kind: str(home / kind) for kind in ("calendar", "contacts", "notes")}
    lines = [
        "[node]",
        f'name = "{name}"',
        'mode = "lan"',
        "",
        "[net]",
        'listen = ["127.0.0.1"]',
        "pair_lan = false",
        "",
        "[sources]",
        'time_zone = "Europe/London"',
        *(f'{kind} = "{path}"' for kind, path in sources.items()),
    ]
    (folder / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.chmod(folder / "config.toml", 0o600)
