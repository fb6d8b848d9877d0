"""Twelve planted values against the whole guard: nothing of them reaches the tap or what Kith writes itself.

The scanner is judged first (it finds every encoding it claims), then used, and each use is repeated with a blind guard,
where it has to raise the alarm.
"""

import re
from pathlib import Path

import pytest
import trio
from canary import ENCODINGS, Canary, self_test
from frame_samples import ID, PEER_A, PEER_B
from guard_bench import BlindInspector, GuardBench, MemoryLedgerRows, Owner, guard_bench, memory_streams
from hypothesis import given, settings
from hypothesis import strategies as st

from node.privacy.egress import Part, PeerView, Purpose
from node.privacy.errors import EgressDenied
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, owner_text, public_text
from node.privacy.ledger_rows import StoredLedgerRows
from node.store.database import Database
from node.store.schema import KITH
from protocol import names
from protocol.frames import inference, query

PLANTED = [
    ("Zdravka Korenjak", "PERSON"), ("Bogomir Žvižgovec", "PERSON"), ("zdravka.koren@beispiel.example", "EMAIL"),
    ("+386 41 907 663", "PHONE"), ("Vrbnikova ulica 17, Kamnograd", "ADDRESS"), ("Quibblethorpe d.o.o.", "ORG"),
    ("Ultrasound Wexlingham", "EVENT"), ("Praxis Dr. Oblakovič", "PLACE"), ("SI56 1920 0123 4567 892", "ID"),
    ("1987-11-23", "BIRTHDAY"), ("bogomir@zvizgovec.example", "EMAIL"), ("Wynnefrith Aldsworth", "PERSON"),
]
PEER = PeerView(PEER_B, "home-pc", "home")


@pytest.mark.parametrize("value", [value for value, _ in PLANTED])
def test_the_scanner_finds_every_encoding_it_claims(value: str) -> None:
    missed = set(ENCODINGS) - set(self_test(value))
    has_long_word = any(len(word) >= 5 for word in re.findall(r"[^\W\d_]+", value))
    assert missed == (set() if has_long_word else {"first part only"})


def test_the_scanner_is_quiet_on_other_bytes() -> None:
    canary = Canary(value for value, _ in PLANTED)
    assert canary.pattern_count > 300
    assert canary.scan([bytes(range(256)) * 200, b"the quick brown fox " * 500, b"Zdrav ko in Bogo"]) == []


def test_the_scanner_joins_chunks_and_reads_files(tmp_path: Path) -> None:
    canary = Canary(["Zdravka Korenjak"], name_parts=False)
    assert canary.scan([b"Zdravka K", b"orenjak"])[0].view.startswith("joined")
    (tmp_path / "log").write_bytes(b"hello Zdravka Korenjak")
    assert canary.scan_files([tmp_path / "log"])
    assert canary.values_in([b"zdravka-korenjak"]) == {"Zdravka Korenjak"}


def personal(value: str, type_: str, text: str) -> Labeled:
    return Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, "tool", (Value(value, type_),))


async def everything(guard: GuardBench) -> list[bytes]:
    """Each planted value typed, returned by a tool, quoted in an answer and searched for; what the tap saw."""
    written: list[bytes] = []
    for number, (value, type_) in enumerate(PLANTED):
        for form in (value, value.upper(), value.lower(), value.replace(" ", "\n"), f"{value}'s"):
            near, _ = memory_streams(names.INFER, near_peer=PEER_B, far_peer=PEER_A)
            channel = guard.egress.channel(near)
            try:
                clearance = await guard.clear(
                    Part("system", public_text("Be brief.", source="prompt")),
                    Part("user", owner_text(f"Please tell {form}, that I cannot come.")),
                    Part("tool", personal(value, type_, f"found: {value} (1)")),
                    peer=PEER, request_id=ID.hex(), conversation=f"c{number}",
                )
                await channel.send_cleared(inference.InferRequest(
                    request_id=ID, prompt=inference.PromptParts(tuple(
                        inference.Part(role, text) for role, text in zip(
                            ("system", "user", "tool"), clearance.texts, strict=True)
                    )), max_tokens=8, deadline_s=5,
                ), clearance)
                await clearance.close("end")
                shown = clearance.restore(f"Dear {clearance.texts[1]}")
                answer = Labeled(shown, Confidentiality.PERSONAL, Integrity.UNTRUSTED, "answer", ())
                later = await guard.clear(Part("assistant", answer), peer=PEER, request_id=ID.hex(),
                                          conversation=f"c{number}")
                await channel.send_cleared(inference.InferRequest(
                    request_id=ID, prompt=inference.PromptParts((inference.Part("assistant", later.texts[0]),)),
                    max_tokens=8, deadline_s=5,
                ), later)
                await later.close("end")
            finally:
                written += near.written
            finder, _ = memory_streams(names.QUERY, near_peer=PEER_B, far_peer=PEER_A)
            try:
                asked = await guard.clear(Part("query", owner_text(f"where is {form}")), purpose=Purpose.QUERY,
                                          peer=PEER, request_id=ID.hex(), conversation=f"c{number}")
                await guard.egress.channel(finder).send_cleared(query.Query(ID, asked.texts[0], 3), asked)
            except EgressDenied:
                pass
            written += finder.written
    return written


async def test_nothing_planted_reaches_the_tap() -> None:
    guard = await guard_bench(PLANTED)
    written = await everything(guard)
    assert len(written) == 2 * 5 * len(PLANTED)         # every prompt left, no query did
    assert written == [data for _, _, data in guard.tapped]
    assert Canary(value for value, _ in PLANTED).scan(written) == []
    report = await guard.ledger.verify()
    assert (report.ok, report.open_entries) == (True, 0)
    closed = [view.close for view in await guard.ledger.newest(limit=10_000)]
    assert sum(close.sent_bytes for close in closed if close is not None) == sum(map(len, written))


async def test_with_a_blind_guard_the_same_scan_finds_all_of_them() -> None:
    guard = await guard_bench(PLANTED, inspector=BlindInspector())
    written = await everything(guard)
    assert Canary(value for value, _ in PLANTED).values_in(written) == {value for value, _ in PLANTED}


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


_PIECES = [
    *(value for value, _ in PLANTED), "ask ", "\n", " ", ", ", ".", "'s", "the", "7", "[PERSON_1]", "Dr. ", "_", "-",
    "é",
]


@settings(max_examples=150, deadline=None)
@given(st.lists(
    st.tuples(st.sampled_from(_PIECES), st.sampled_from([str, str.upper, str.lower, str.title])), max_size=12,
))
def test_whatever_stands_around_a_value_it_does_not_leave(pieces) -> None:
    text = "".join(form(piece) for piece, form in pieces) or "x"
    clearance = trio.run(_clear_one, text)
    if clearance is not None:
        scanner = Canary((value for value, _ in PLANTED), name_parts=False)
        assert scanner.scan([clearance.texts[0].encode()]) == []


async def _clear_one(text: str):
    guard = await guard_bench(PLANTED)
    try:
        return await guard.clear(Part("user", owner_text(text)), peer=PEER)
    except EgressDenied:
        return None


async def test_nothing_planted_stands_in_the_files_or_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    database = await Database.open(tmp_path / "kith.db", b"d" * 32, KITH)
    try:
        guard = await guard_bench(PLANTED, rows=StoredLedgerRows(database))
        for value, type_ in PLANTED:
            clearance = await guard.clear(Part("mail", owner_text(f"ask {value}")), purpose=Purpose.MAIL, peer=PEER)
            assert value in clearance.texts[0]
            with pytest.raises(EgressDenied):
                await guard.clear(Part("query", personal(value, type_, value)), purpose=Purpose.QUERY, peer=PEER)
        canary = Canary(value for value, _ in PLANTED)
        files = _files_in(tmp_path)
        assert any(path.suffix == ".db" for path in files)
        # a word of five letters by itself turns up in encrypted bytes by chance
        assert Canary((value for value, _ in PLANTED), name_parts=False).scan_files(files) == []
        assert canary.scan([caplog.text.encode()]) == []
        (tmp_path / "plain").write_text(PLANTED[0][0])      # the negative control
        assert canary.scan_files([tmp_path / "plain"])
    finally:
        await database.close()


async def test_a_refused_question_leaves_nothing_on_the_tap() -> None:
    guard = await guard_bench(PLANTED, owner=Owner(allows=False), rows=MemoryLedgerRows())
    with pytest.raises(EgressDenied):
        await everything(guard)
    assert guard.tapped == []
    assert guard.rows.rows == []
