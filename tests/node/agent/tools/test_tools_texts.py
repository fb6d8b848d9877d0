"""The clock, contacts, notes, files and peers as tools: answers in words, labels, errors, writes and undo."""

import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from node.agent.ports import Json
from node.agent.tools.clock import ClockNow, zone_of
from node.agent.tools.contacts import ContactLookup
from node.agent.tools.errors import AmbiguousName, BadArgument, EffectRefused, NothingFound, ToolError
from node.agent.tools.files import FileRead, FileSearch
from node.agent.tools.notes import NoteRead, NoteSearch, NoteWrite
from node.agent.tools.peers import PeerEntry, PeersList
from node.agent.tools.registry import ToolContext
from node.agent.tools.wording import clock_span, listed, minutes
from node.privacy.labels import Confidentiality, Integrity, Value
from node.sources.notes import NoteFolder
from node.sources.vcf import Contacts

BERLIN = ZoneInfo("Europe/Berlin")


class StillClock:
    def now(self) -> datetime:
        return datetime(2026, 3, 18, 8, 30, tzinfo=UTC)

    def monotonic_s(self) -> float:
        return 0.0


CTX = ToolContext(StillClock(), BERLIN)


# ------------------------------------------------------------ clock


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("", "It is Wednesday 18 March 2026, 09:30."),
        ("Tokyo", "It is Wednesday 18 March 2026, 17:30 in Tokyo."),
        ("New York", "It is Wednesday 18 March 2026, 04:30 in New York."),
        ("India", "It is Wednesday 18 March 2026, 14:00 in India."),
        ("Pacific/Auckland", "It is Wednesday 18 March 2026, 21:30 in Pacific/Auckland."),
        ("são paulo", "It is Wednesday 18 March 2026, 05:30 in são paulo."),
    ],
)
async def test_clock(place: str, expected: str) -> None:
    answer = await ClockNow().run({"place": place} if place else {}, CTX)
    assert answer.text.value == expected
    assert answer.text.confidentiality is Confidentiality.PUBLIC


@pytest.mark.parametrize("place", ["Atlantis", "Canada", "the kitchen"])
async def test_a_place_without_one_known_time(place: str) -> None:
    with pytest.raises(NothingFound):
        await ClockNow().run({"place": place}, CTX)
    assert zone_of("Montreal").key == "America/Toronto"


# ------------------------------------------------------------ contacts


def card(name: str, *lines: str) -> str:
    return "\n".join(["BEGIN:VCARD", "VERSION:3.0", f"FN:{name}", *lines, "END:VCARD", ""])


@pytest.fixture
def lookup(tmp_path: Path) -> ContactLookup:
    (tmp_path / "all.vcf").write_text(
        card("Dana Whitfield", "TEL:+49 30 901820", "TEL:0171 1", "EMAIL:d@example.org", "BDAY:1980-02-03")
        + card("Ana Kovac", "TEL:1")
        + card("Ana Lind", "TEL:2")
    )
    return ContactLookup(Contacts(tmp_path))


async def test_contact(lookup: ContactLookup) -> None:
    answer = await lookup.run({"name": "dana whitfield", "field": "phone"}, CTX)
    assert answer.text.value == "Dana Whitfield's phone number: +49 30 901820 and 0171 1."
    assert answer.text.values == (
        Value("Dana Whitfield", "PERSON"),
        Value("+49 30 901820", "PHONE"),
        Value("0171 1", "PHONE"),
    )
    assert answer.text.source == "contact_lookup:all.vcf"
    assert await lookup.choices("name") == ("Ana Kovac", "Ana Lind", "Dana Whitfield")


async def test_contact_errors(lookup: ContactLookup) -> None:
    with pytest.raises(NothingFound, match="Nobody called Zoe"):
        await lookup.run({"name": "Zoe", "field": "phone"}, CTX)
    with pytest.raises(NothingFound, match="no address"):
        await lookup.run({"name": "Dana", "field": "address"}, CTX)
    with pytest.raises(AmbiguousName) as caught:
        await lookup.run({"name": "Ana", "field": "phone"}, CTX)
    assert caught.value.choices == ("Ana Kovac", "Ana Lind")
    with pytest.raises(BadArgument):
        await lookup.run({"name": "Dana", "field": "shoe size"}, CTX)


# ------------------------------------------------------------ notes


@pytest.fixture
def notes(tmp_path: Path) -> NoteFolder:
    (tmp_path / "Roof repair.md").write_text("The plumber wants 400.\n")
    (tmp_path / "Garden.txt").write_text("Beans")
    return NoteFolder(tmp_path)


async def test_read_and_search(notes: NoteFolder) -> None:
    answer = await NoteRead(notes).run({"title": "roof repair"}, CTX)
    assert answer.text.value == "The plumber wants 400."
    assert (answer.text.confidentiality, answer.text.integrity) == (Confidentiality.PERSONAL, Integrity.LOCAL)
    assert (answer.text.source, answer.text.values) == ("note_read:Roof repair.md", ())
    found = await NoteSearch(notes).run({"query": "plumber"}, CTX)
    assert found.text.value == "1 note found.\n- Roof repair: The plumber wants 400."
    assert (await NoteSearch(notes).run({"query": "zebra"}, CTX)).text.value == 'No note holds "zebra".'
    with pytest.raises(NothingFound):
        await NoteRead(notes).run({"title": "../../etc/passwd"}, CTX)


async def test_write_once_and_undo(notes: NoteFolder) -> None:
    tool = NoteWrite(notes)
    path = notes.root / "Garden.txt"
    effect = await tool.plan({"text": "Peas", "title": "garden"}, CTX, idempotency_key="k")
    assert effect.text == "Add to the note Garden.txt:\nPeas"
    assert path.read_text() == "Beans"
    record = await tool.apply(effect, "k")
    assert await tool.apply(effect, "k") == record
    assert path.read_text() == "Beans\nPeas\n"
    assert await tool.undo(record) == "Garden.txt is as it was before."
    assert await tool.undo(record) == "Garden.txt is already as it was before."
    assert path.read_text() == "Beans"


async def test_a_new_note_and_undo(notes: NoteFolder) -> None:
    tool = NoteWrite(notes)
    effect = await tool.plan({"text": "The gate code is 4471"}, CTX, idempotency_key="k")
    assert effect.text == "New note The gate code is 4471.md:\nThe gate code is 4471"
    record = await tool.apply(effect, "k")
    assert (notes.root / "The gate code is 4471.md").read_text() == "The gate code is 4471\n"
    assert await tool.undo(record) == "The note The gate code is 4471.md is gone again."


async def test_an_edited_note_is_refused(notes: NoteFolder) -> None:
    tool = NoteWrite(notes)
    effect = await tool.plan({"text": "Peas", "title": "Garden"}, CTX, idempotency_key="k")
    (notes.root / "Garden.txt").write_text("edited")
    with pytest.raises(EffectRefused):
        await tool.apply(effect, "k")
    assert (notes.root / "Garden.txt").read_text() == "edited"


async def test_a_record_from_a_journal_works_after_json(notes: NoteFolder) -> None:

    tool = NoteWrite(notes)
    record: dict[str, Json] = json.loads(
        json.dumps(
            await tool.apply(await tool.plan({"text": "Peas", "title": "Garden"}, CTX, idempotency_key="k"), "k")
        )
    )
    assert await tool.undo(record) == "Garden.txt is as it was before."


# ------------------------------------------------------------ files


async def test_files(tmp_path: Path) -> None:
    docs, loads = tmp_path / "d", tmp_path / "l"
    docs.mkdir()
    loads.mkdir()
    (docs / "lease.txt").write_text("The lease ends in May.")
    (docs / "same.csv").write_text("a,b")
    (loads / "same.csv").write_text("c,d")
    (loads / "photo.jpg").write_bytes(b"\xff\xd8\xff\x00")
    (loads / "out.txt").symlink_to(docs / "lease.txt")
    folders = {"Documents": NoteFolder(docs, suffixes=None), "Downloads": NoteFolder(loads, suffixes=None)}
    read, search = FileRead(folders), FileSearch(folders)
    answer = await read.run({"name": "lease.txt"}, CTX)
    assert answer.text.value == "The lease ends in May."
    assert (answer.text.integrity, answer.text.source) == (Integrity.UNTRUSTED, "file_read:Documents/lease.txt")
    assert (await read.run({"name": "Downloads/same.csv"}, CTX)).text.value == "c,d"
    with pytest.raises(AmbiguousName) as caught:
        await read.run({"name": "same.csv"}, CTX)
    assert caught.value.choices == ("Documents/same.csv", "Downloads/same.csv")
    for name in ("../d/lease.txt", "Downloads/../../d/lease.txt", "/etc/passwd", "Downloads/out.txt", "absent"):
        with pytest.raises(NothingFound):
            await read.run({"name": name}, CTX)
    with pytest.raises(ToolError, match="no UTF-8 text"):
        await read.run({"name": "photo.jpg"}, CTX)
    found = await search.run({"query": "lease"}, CTX)
    assert found.text.value == "1 file found.\n- lease: The lease ends in May."
    assert await read.choices("name") == (
        "Documents/lease.txt",
        "Documents/same.csv",
        "Downloads/photo.jpg",
        "Downloads/same.csv",
    )


# ------------------------------------------------------------ peers


class TwoPeers:
    async def peers(self) -> list[PeerEntry]:
        return [
            PeerEntry("home-pc", "home", connected=True, services=("infer", "search")),
            PeerEntry("bea-laptop", "friend", connected=False),
        ]


async def test_peers() -> None:
    answer = await PeersList(TwoPeers()).run({}, CTX)
    assert answer.text.value == (
        "2 nodes paired.\n- home-pc (home): connected, does infer and search for you\n"
        "- bea-laptop (friend): not connected"
    )


# ------------------------------------------------------------ wording


def test_wording() -> None:
    assert [minutes(count) for count in (1, 45, 60, 90, 121)] == [
        "1 minute",
        "45 minutes",
        "1 hour",
        "1 hour 30 minutes",
        "2 hours 1 minute",
    ]
    assert [listed(items) for items in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    start = datetime(2026, 3, 18, 22, tzinfo=BERLIN)
    assert clock_span(start, datetime(2026, 3, 19, 0, tzinfo=BERLIN), BERLIN) == "22:00-24:00"
