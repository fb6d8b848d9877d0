"""The whole demonstration with a tap on both nodes: nothing planted leaves, nothing planted is written, all is counted.

Twelve personal values lie in the phone's calendar, contacts and notes. Beyond the demonstration's own steps, a letter
with all twelve is given to the home PC, and all twelve are searched for. The same letter and searches with a guard that
finds nothing have to show all twelve on the tap, and so has the same scanner on the owner's own files.
"""

import hashlib
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from canary import Canary, CanaryFind
from embedded_model import model_path
from tapped_daemon import Tapped, read_calls, read_tap, tapped

from node.cli.demo.checks import written_by_kith
from node.cli.demo.nodes import DemoNode
from node.cli.demo.owner import Owner, pair_two
from node.cli.demo.steps import Stage, run_steps
from node.cli.demo.world import CANARIES, make_world
from node.daemon.composition import DEMO_MARK
from protocol import canonical, names
from protocol.frames.inference import End

pytestmark = [pytest.mark.e2e, pytest.mark.model]

ZONE = ZoneInfo("Europe/London")
PREFIX_BYTES = 4
CLOSING_TIMEOUT_S = 60.0
QUESTION = "Name the first person in the text"
_LETTER = """\
Dear all, Dana Whitfield (dana.whitfield@meadowmail.test, +44 117 496 0121) lives at 14 Willow Lane, Bristol. \
Marcus Oduya (marcus.oduya@meadowmail.test, +44 117 496 0177) lives at 3 Quarry Steps, Bath. \
Dr. Imogen Sarkisian sees us for the Fertility clinic appointment. \
Then comes Allotment plot 88B, and last the Grandmother's ring appraisal.
"""
LETTER = _LETTER + _LETTER.upper()
"""Every planted value once as it is planted and once in capitals."""
QUERIES = tuple(f"notes about {form}" for value in CANARIES for form in (value, value.lower()))


@dataclass(frozen=True)
class Sent:
    """What came of the letter and the searches: the answer, the questions put to the owner, each search's view."""

    answer: dict[str, Any]
    questions: list[dict[str, Any]]
    views: list[dict[str, Any]]


@dataclass
class Played:
    """What is left of a demonstration: its steps, both ledgers, and where its files lie."""

    homes: tuple[Path, Path]
    stage: Stage
    sent: Sent
    ledgers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    files_while_running: dict[Path, str] = field(default_factory=dict)
    found_while_running: list[CanaryFind] = field(default_factory=list)

    def tap(self) -> list[Tapped]:
        return [frame for home in self.homes for frame in read_tap(home)]


@contextmanager
def stage_of(root: Path, *switches: str) -> Iterator[Stage]:
    """Two tapped nodes in the demonstration's world."""
    model_path()
    world = make_world(root, datetime.now(ZONE))
    for home in (world.phone, world.home_pc):
        (home / "data").mkdir(mode=0o700)
        (home / "data" / DEMO_MARK).touch()
    # with the guard off the planted values would be shown, and the owner of the demonstration says no to that
    env = {"KITH_PRIVACY_ASK_FIRST": str("--null-guard" not in switches).lower()}
    with (
        DemoNode("phone", world.phone, tapped(*switches), env) as phone,
        DemoNode("home-pc", world.home_pc, tapped(*switches), env) as home_pc,
    ):
        phone.start()
        home_pc.start()
        yield Stage(world, phone, home_pc, Owner(phone.client()))


def send_all_twelve(stage: Stage) -> Sent:
    """Delegate the letter as any owner would, and search for every value."""
    stage.phone.wait_for(lambda status: any(peer["connected"] for peer in status["peers"]), "connected")
    stage.owner.events.clear()
    answer = stage.owner.ask(QUESTION, attachments=[{"name": "letter.txt", "text": LETTER}], on="home-pc")
    questions = [event for event in stage.owner.events if event["event"] == "question"]
    return Sent(answer, questions, [stage.phone.client().post("/v1/search", {"query": query}) for query in QUERIES])


def closed_ledger(node: DemoNode) -> list[dict[str, Any]]:
    """All entries, once none is open: a provider closes its own a moment after the asker has the answer."""
    deadline = time.monotonic() + CLOSING_TIMEOUT_S
    while True:
        entries: list[dict[str, Any]] = node.client().get("/v1/ledger", limit=1000)
        if time.monotonic() > deadline or all(entry["outcome"] != "open" for entry in entries):
            return entries
        time.sleep(0.05)


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    with tempfile.TemporaryDirectory(prefix="kc-") as folder:
        with stage_of(Path(folder)) as stage:
            run_steps(stage, lambda step: None)
            sent = send_all_twelve(stage)
            played = Played((stage.world.phone, stage.world.home_pc), stage, sent)
            for node in (stage.phone, stage.home_pc):
                played.ledgers[node.name] = closed_ledger(node)
                files = written_by_kith(node.home)
                before = {path: digest_of(path) for path in files}
                played.found_while_running += find_in_files(files)
                played.files_while_running |= {
                    path: one if one == digest_of(path) else "changed" for path, one in before.items()}
        yield played


def find_in_tap(frames: list[Tapped]) -> list[CanaryFind]:
    """Planted values in each frame, in all frames of one protocol joined, and in all their strings joined."""
    canary = Canary(CANARIES)
    found = []
    for protocol in {frame.protocol for frame in frames}:
        chunks = [frame.data for frame in frames if frame.protocol == protocol]
        strings = [text for chunk in chunks for text in strings_in(msgspec.msgpack.decode(chunk[PREFIX_BYTES:]))]
        found += [*canary.scan(chunks), *canary.scan(["".join(strings).encode()])]
    return found


def strings_in(value: Any) -> Iterator[str]:
    """Every string in a decoded frame, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (*strings_in(key), *strings_in(item))


def is_sealed(path: Path) -> bool:
    """Whether a file is one of those that Kith encrypts: databases and remembered sequences."""
    return (".db" in path.name and not path.name.endswith("-shm")) or ".kv" in path.name


def digest_of(path: Path) -> str:
    """What a file holds: one that has not changed since it was looked at is not looked at again."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "gone"


def find_in_files(paths: list[Path]) -> list[CanaryFind]:
    """Planted values in files, read raw. Single words of a value are not looked for in encrypted files: a word of five
    letters turns up in some megabytes of random bytes by chance."""
    sealed = Canary(CANARIES, name_parts=False)
    found = [find for path in paths if is_sealed(path) for find in sealed.scan_files([path])]
    return found + Canary(CANARIES).scan_files([path for path in paths if not is_sealed(path)])


def test_every_step_of_the_demonstration_goes_well(played: Played) -> None:
    assert [(step.name, step.detail) for step in played.stage.steps if not step.ok] == []
    assert len(played.stage.steps) == 8


def test_the_letter_goes_out_without_a_planted_value_and_its_answer_comes_back_with_one(played: Played) -> None:
    answer, (question,) = played.sent.answer, played.sent.questions
    assert answer["ran_on"] == "home-pc"
    assert question["kind"] == "consent"
    assert question["substitutions"] >= 2 * len(CANARIES)
    shown = [text.encode() for text in question["texts"]]
    assert any(b"sees us for the" in text and b"SEES US FOR THE" in text for text in shown)
    assert Canary(CANARIES).scan(shown) == []
    assert "Dana Whitfield" in answer["text"]


def test_a_search_for_a_planted_value_asks_nobody(played: Played) -> None:
    assert len(played.sent.views) == 2 * len(CANARIES)
    assert [view["asked"] for view in played.sent.views] == [[]] * len(QUERIES)
    assert all("personal data" in view["stayed_local"] for view in played.sent.views)


def test_nothing_planted_is_handed_to_the_transport(played: Played) -> None:
    frames = played.tap()
    assert {frame.protocol for frame in frames} == set(names.PROTOCOLS) - {names.MODEL}     # no model file is copied
    assert sum(frame.protocol == names.INFER for frame in frames) > 20
    assert find_in_tap(frames) == []


def test_every_byte_on_the_tap_is_a_known_frame_and_stands_in_the_ledger(played: Played) -> None:
    """Content and answers: what the ledger's closed entries say, to the byte. All else is of the closed list."""
    counted = names.CONTENT | names.ACCOUNTED | {End}
    for home in played.homes:
        frames = [
            (canonical.decode(one.data[PREFIX_BYTES:], names.FRAMES[one.protocol]), one) for one in read_tap(home)
        ]
        assert all(len(one.data) == PREFIX_BYTES + int.from_bytes(one.data[:PREFIX_BYTES], "big") for _, one in frames)
        assert all(type(frame) in names.CONTENT | names.ACCOUNTED | names.CONTROL for frame, _ in frames)
        entries = played.ledgers[home.name]
        sent = sum(len(one.data) for frame, one in frames if type(frame) in counted)
        assert sent > 0
        assert sum(entry["size_bytes"] for entry in entries) == sent
        assert "open" not in {entry["outcome"] for entry in entries}


def test_nothing_planted_stands_in_any_file_that_kith_writes(played: Played) -> None:
    files = [path for home in played.homes for path in written_by_kith(home)]
    written = {path.name for path in files}
    assert {"kith.db", "index.db", "kith.log", "ledger.head", "identity.json", "output.log"} <= written
    assert find_in_files([path for path in files if digest_of(path) != played.files_while_running.get(path)]) == []
    assert {"kith.db-wal", "index.db-wal"} <= {path.name for path in played.files_while_running}
    assert played.found_while_running == []


def test_the_files_that_are_looked_at_as_encrypted_do_not_compress(played: Played) -> None:
    sealed = [path for home in played.homes for path in written_by_kith(home) if is_sealed(path)]
    assert {path.suffix for path in sealed} >= {".db", ".kv"}
    for path in sealed:
        data = path.read_bytes()
        assert len(zlib.compress(data, 1)) >= 0.98 * len(data), path.name


def test_the_same_look_at_the_owners_own_files_finds_all_twelve(played: Played) -> None:
    own = [path for path in played.homes[0].rglob("*") if path.suffix in (".ics", ".vcf", ".md")]
    assert {find.value for find in find_in_files(own)} == set(CANARIES)


def test_only_loopback_and_unix_sockets_are_ever_called_or_bound(played: Played) -> None:
    for home in played.homes:
        calls = read_calls(home)
        assert any(event == "socket.bind" and isinstance(address, list) for event, address in calls)
        assert [call for call in calls if not is_here(call[1])] == []


def is_here(address: Any) -> bool:
    """A Unix path, or a loopback host."""
    if isinstance(address, list):
        return address[0] == "127.0.0.1" or address[0] == "::1"
    return isinstance(address, str) and (address.startswith("/") or address in ("127.0.0.1", "::1"))


@pytest.mark.parametrize("address", ["192.0.2.1", ["192.0.2.1", 80], ["10.0.0.1", 1], ["::", 5, 0, 0], "example.org"])
def test_an_address_elsewhere_is_told_apart(address: Any) -> None:
    assert not is_here(address)


def test_with_a_guard_that_finds_nothing_the_same_check_finds_all_twelve() -> None:
    """In the prompt and in the queries, byte for byte. A message shows that the tap sees mail, too: what the owner
    types to a named recipient goes out as it is, so no message with planted values is sent under the real guard."""
    with tempfile.TemporaryDirectory(prefix="kc-") as folder, stage_of(Path(folder), "--null-guard") as stage:
        pair_two(stage.home_pc.client(), stage.phone.client())
        sent = send_all_twelve(stage)
        stage.phone.client().post("/v1/messages", {"to": "home-pc", "body": LETTER})
        stage.home_pc.wait_for(lambda _: len(stage.home_pc.client().get("/v1/inbox")) == 1, "the message arrives")
        frames = read_tap(stage.world.phone)
    assert sent.answer["ran_on"] == "home-pc"
    assert [view["asked"] for view in sent.views] == [["home-pc"]] * len(QUERIES)
    for protocol in (names.INFER, names.QUERY, names.MAIL):
        found = find_in_tap([frame for frame in frames if frame.protocol == protocol])
        assert {find.value for find in found if find.pattern == "raw"} == set(CANARIES), protocol


def test_a_tap_needs_a_folder_that_is_marked_as_a_demonstrations() -> None:
    with tempfile.TemporaryDirectory(prefix="kc-") as folder:
        world = make_world(Path(folder), datetime.now(ZONE))
        with DemoNode("phone", world.phone, tapped()) as phone, pytest.raises(Exception, match="exit code 70"):
            phone.start()
        assert "demonstration" in (world.phone / "output.log").read_text()
