"""What the vault is told."""

from pathlib import Path
from zoneinfo import ZoneInfo

from node.sources.ics import Calendars
from node.sources.values import vault_values
from node.sources.vcf import Contacts

CARD = """BEGIN:VCARD
VERSION:3.0
FN:Mum (Helen Marsh)
N:Marsh;Helen;;;
EMAIL:helen@example.org
TEL:+44 1225 000000
ADR:;;Mill Lane 4;Bath;;BA1 2XY;
BDAY:1951-05-06
ORG:Garden Club
END:VCARD
"""
CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//t//
BEGIN:VEVENT
UID:1
SUMMARY:Knee operation
DTSTART:20260310T100000Z
LOCATION:Ward 7, St. Mary's
ATTENDEE;CN=Zoe Quist:mailto:zoe@example.org
END:VEVENT
BEGIN:VEVENT
UID:2
SUMMARY:broken times do not hide words
DTSTART:garbage
END:VEVENT
END:VCALENDAR
"""


def test_every_value_with_its_type(tmp_path: Path) -> None:
    (tmp_path / "all.vcf").write_text(CARD)
    (tmp_path / "dana.ics").write_text(CALENDAR)
    (tmp_path / "owner.ics").write_text("broken")
    values = vault_values(Calendars(tmp_path, ZoneInfo("UTC")), Contacts(tmp_path))
    assert {(value.type.value, value.text) for value in values} == {
        ("PERSON", "Mum (Helen Marsh)"),
        ("PERSON", "Helen Marsh"),
        ("EMAIL", "helen@example.org"),
        ("PHONE", "+44 1225 000000"),
        ("ADDRESS", "Mill Lane 4, BA1 2XY Bath"),
        ("ADDRESS", "Mill Lane 4"),
        ("DATE", "1951-05-06"),
        ("ORG", "Garden Club"),
        ("PERSON", "Zoe Quist"),
        ("EMAIL", "zoe@example.org"),
        ("ADDRESS", "Ward 7, St. Mary's"),
        ("EVENT", "Knee operation"),
        ("EVENT", "broken times do not hide words"),
    }
    assert {value.source for value in values} == {"all.vcf", "dana.ics"}
