"""Address books as programs write them, and damaged ones."""

from pathlib import Path

import pytest

from node.sources.vcf import Contacts

DANA = """BEGIN:VCARD
VERSION:3.0
FN:Dana Whitfield
N:Whitfield;Dana;;;
NICKNAME:Dee,Danny
EMAIL;TYPE=INTERNET:dana@example.org
item1.EMAIL:dw@example.com
TEL;TYPE=CELL:+49 30 901820
ADR;TYPE=HOME:;;Mill Lane 4;Bath;;BA1 2XY;England
BDAY:1980-02-03
ORG:Acme;Sales
END:VCARD
"""
RAVI_4 = """BEGIN:VCARD
VERSION:4.0
FN:Ravi Menon
TEL;VALUE=uri;TYPE="voice,cell":tel:+44-20-7946-0000;ext=5
EMAIL:ravi@example.org
BDAY:--0714
END:VCARD
"""
JOERG_21 = """BEGIN:VCARD
VERSION:2.1
N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg;;;
TEL;HOME;VOICE:123456
END:VCARD
"""


def book(folder: Path, **files: str) -> Contacts:
    for name, text in files.items():
        (folder / f"{name}.vcf").write_text(text)
    return Contacts(folder)


def test_one_card_of_version_3(tmp_path: Path) -> None:
    [dana] = book(tmp_path, all=DANA).all()
    assert (dana.name, dana.given, dana.family) == ("Dana Whitfield", "Dana", "Whitfield")
    assert dana.nicknames == ("Dee", "Danny")  # the library alone keeps only the first
    assert dana.emails == ("dana@example.org", "dw@example.com")
    assert dana.phones == ("+49 30 901820",)
    assert dana.addresses == ("Mill Lane 4, BA1 2XY Bath, England",)
    assert dana.streets == ("Mill Lane 4",)
    assert (dana.birthday, dana.organisation, dana.mine) == ("1980-02-03", "Acme Sales", False)


def test_many_cards_of_all_versions_in_one_file(tmp_path: Path) -> None:
    contacts = book(tmp_path, all=DANA + RAVI_4 + "\n" + JOERG_21.replace("\n", "\r\n"))
    assert [card.name for card in contacts.all()] == ["Dana Whitfield", "Jörg Müller", "Ravi Menon"]
    [ravi] = contacts.lookup("ravi menon")
    assert (ravi.phones, ravi.birthday) == (("+44-20-7946-0000",), "--07-14")
    assert contacts.problems() == []


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("Dana Whitfield", ["Dana Whitfield"]),
        ("whitfield, dana", ["Dana Whitfield"]),
        ("DEE", ["Dana Whitfield"]),
        ("dana", ["Dana Berg", "Dana Whitfield"]),
        ("jorg muller", ["Jörg Müller"]),
        ("Ann", []),
        ("Dan", []),
        ("", []),
        ("?", []),
    ],
)
def test_lookup_takes_words_never_likeness(tmp_path: Path, asked: str, found: list[str]) -> None:
    second = DANA.replace("Whitfield", "Berg").replace("NICKNAME:Dee,Danny\n", "")
    contacts = book(
        tmp_path,
        one=DANA,
        two=second,
        three=JOERG_21,
        four=DANA.replace("Dana Whitfield", "Anna Lind").replace("NICKNAME:Dee,Danny\n", ""),
    )
    assert [card.name for card in contacts.lookup(asked)] == found


def test_the_owners_card_is_known_and_no_contact(tmp_path: Path) -> None:
    contacts = book(tmp_path, me=RAVI_4, others=DANA)
    me = contacts.me()
    assert me is not None
    assert me.name == "Ravi Menon"
    assert contacts.names() == ("Dana Whitfield",)


def test_a_bad_line_costs_that_line_only(tmp_path: Path) -> None:
    contacts = book(tmp_path, all=DANA.replace("BDAY:", "broken line\nBDAY:") + RAVI_4)
    assert len(contacts.all()) == 2
    assert contacts.lookup("Dana Whitfield")[0].birthday == "1980-02-03"
    assert [problem.reason for problem in contacts.problems()] == ["card 1: a line cannot be read and was left out"]


@pytest.mark.parametrize(
    "damaged",
    [
        DANA[:80],
        "BEGIN:VCARD\nEND:VCARD\n",
        "BEGIN:VCARD\nVERSION:3.0\nTEL:1\nEND:VCARD\n",
        "BEGIN:VCARD\n" * 50,
    ],
)
def test_a_damaged_card_is_reported_and_the_others_count(tmp_path: Path, damaged: str) -> None:
    contacts = book(tmp_path, all=RAVI_4 + damaged, good=JOERG_21)
    assert {"Jörg Müller", "Ravi Menon"} <= {card.name for card in contacts.all()}
    assert contacts.problems()


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.vcf").write_bytes(b"\xff\xfeB")
    contacts = book(tmp_path, good=DANA)
    assert len(contacts.all()) == 1
    assert [problem.source for problem in contacts.problems()] == ["x.vcf"]


def test_a_missing_folder_is_an_empty_book(tmp_path: Path) -> None:
    assert Contacts(tmp_path / "nowhere").all() == ()
