"""The ledger shows every flip, swap, drop and cut, and survives re-opening."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import trio
from fixed import FixedClock
from guard_bench import MemoryHeads, MemoryLedgerRows
from nacl.secret import Aead

from node.privacy.errors import LedgerBroken
from node.privacy.ledger import Draft, Ledger
from node.privacy.ledger_head import FileHeadKeeper, SeedSigner, sign_head, verify_head
from node.privacy.ledger_rows import StoredLedgerRows
from node.store import ledger as table
from node.store.database import Database
from node.store.ledger import Head
from node.store.schema import KITH

CHAIN, SEAL = b"c" * 32, b"s" * 32


def draft(number: int, *, purpose: str = "infer", texts: tuple[str, ...] = ("Hi [PERSON_1]", "two")) -> Draft:
    return Draft("12D3KooWHome", purpose, "masked", f"r{number}", texts, 1, "owner, question q1")


def ledger_over(rows, heads, *, chain: bytes = CHAIN, seed: bytes = b"k" * 32) -> Ledger:
    return Ledger(rows, heads, SeedSigner(seed), chain_key=chain, seal_key=SEAL, clock=FixedClock())


async def filled(count: int = 5) -> tuple[Ledger, MemoryLedgerRows, MemoryHeads]:
    rows, heads = MemoryLedgerRows(), MemoryHeads()
    ledger = ledger_over(rows, heads)
    for number in range(count):
        place = await ledger.append(draft(number))
        if number % 2 == 0:
            await ledger.close(place, sent_bytes=100 + number, digest=b"d" * 32, outcome="end")
    return ledger, rows, heads


async def test_an_untouched_chain_verifies() -> None:
    ledger, rows, _ = await filled()
    report = await ledger.verify()
    assert report.ok
    assert (report.entries, report.open_entries, report.head_digest) == (5, 2, rows.rows[-1].digest)


async def test_an_empty_ledger_verifies() -> None:
    report = await ledger_over(MemoryLedgerRows(), MemoryHeads()).verify()
    assert report.ok
    assert report.entries == 0


@pytest.mark.parametrize("column", ["entry", "digest", "outgoing", "closed"])
async def test_every_flipped_bit_is_found_at_its_entry(column: str) -> None:
    ledger, rows, _ = await filled(3)
    good = list(rows.rows)
    flips = 0
    for seq, row in enumerate(good, 1):
        data = getattr(row, column)
        if data is None:
            continue
        for at in range(len(data)):
            for bit in (1, 128):
                bad = bytearray(data)
                bad[at] ^= bit
                rows.rows[seq - 1] = replace(row, **{column: bytes(bad)})
                report = await ledger.verify()
                assert any(f"entry {seq}:" in problem for problem in report.problems), (column, seq, at, bit)
                flips += 1
        rows.rows[seq - 1] = row
    assert flips > 50
    assert (await ledger.verify()).ok


@pytest.mark.parametrize("change", [
    {"peer_id": "12D3KooWOther"}, {"request_id": "rX"}, {"purpose": "mail"}, {"at_ms": 7},
])
async def test_a_changed_column_is_found(change: dict[str, object]) -> None:
    ledger, rows, _ = await filled()
    rows.rows[1] = replace(rows.rows[1], **change)
    assert any("entry 2:" in problem for problem in (await ledger.verify()).problems)


async def test_reordered_entries_are_found() -> None:
    ledger, rows, _ = await filled()
    second, third = rows.rows[1], rows.rows[2]
    rows.rows[1], rows.rows[2] = replace(third, seq=2), replace(second, seq=3)
    problems = (await ledger.verify()).problems
    assert any("entry 2:" in problem for problem in problems)
    assert any("entry 3:" in problem for problem in problems)


async def test_a_dropped_entry_is_found() -> None:
    ledger, rows, _ = await filled()
    del rows.rows[2]
    assert any("entry 3 is missing" in problem for problem in (await ledger.verify()).problems)


async def test_a_dropped_and_renumbered_entry_is_found() -> None:
    ledger, rows, _ = await filled()
    del rows.rows[2]
    rows.rows[2:] = [replace(row, seq=row.seq - 1) for row in rows.rows[2:]]
    assert any("does not follow" in problem for problem in (await ledger.verify()).problems)


async def test_a_cut_off_end_is_found_by_the_signed_head() -> None:
    ledger, rows, heads = await filled()
    kept = heads.stored
    del rows.rows[3:]
    assert any("entries 4 to 5 are missing" in problem for problem in (await ledger.verify()).problems)
    heads.stored = None         # without the head in its second place the cut would look like an honest end
    assert "missing" in (await ledger.verify()).problems[0]
    heads.stored = sign_head(SeedSigner(b"k" * 32), 3, rows.rows[2].digest)
    assert (await ledger.verify()).ok
    assert kept is not None


async def test_a_database_that_was_emptied_lacks_what_the_head_knows() -> None:
    ledger, rows, heads = await filled()
    assert await ledger.missing_at_end() == 0
    del rows.rows[3:]
    assert await ledger.missing_at_end() == 2
    rows.rows.clear()
    fresh = ledger_over(rows, heads)        # the next life
    assert await fresh.missing_at_end() == 5
    await fresh.append(draft(0))            # moves the head: from here on nobody can tell
    assert await fresh.missing_at_end() == 0
    heads.stored = sign_head(SeedSigner(b"x" * 32), 9, b"d" * 32)
    assert await fresh.missing_at_end() == 0    # another device's head says nothing of this one
    heads.stored = None
    assert await fresh.missing_at_end() == 0


async def test_a_forged_head_is_found() -> None:
    ledger, rows, heads = await filled()
    heads.stored = sign_head(SeedSigner(b"x" * 32), 5, rows.rows[-1].digest)
    assert any("another device" in problem for problem in (await ledger.verify()).problems)
    heads.stored = b"\x00garbage"
    assert any("was changed" in problem for problem in (await ledger.verify()).problems)
    heads.stored = sign_head(SeedSigner(b"k" * 32), 5, b"d" * 32)
    assert any("signed head names" in problem for problem in (await ledger.verify()).problems)


async def test_a_chain_rewritten_without_the_key_is_found() -> None:
    _, rows, heads = await filled()
    assert not (await ledger_over(rows, heads, chain=b"x" * 32).verify()).ok


async def test_an_old_head_is_no_problem() -> None:
    ledger, rows, heads = await filled()
    heads.stored = sign_head(SeedSigner(b"k" * 32), 2, rows.rows[1].digest)
    assert (await ledger.verify()).ok


async def test_kept_texts_may_be_dropped_but_not_swapped() -> None:
    ledger, rows, _ = await filled()
    whole = rows.rows[0]
    rows.rows[0] = replace(whole, outgoing=None)            # taken out by somebody else: no note says why
    assert (await ledger.verify()).problems == ("entry 1: its kept texts were taken out",)
    rows.rows[0] = whole
    assert await ledger.drop_older(2**53) == 3              # the closed ones
    assert (await ledger.verify()).ok
    view = await ledger.view(1)
    assert view is not None
    assert (view.texts, view.bodies) == (None, None)
    assert view.dropped is not None
    assert view.dropped.why == "age"
    rows.rows[2] = replace(rows.rows[2], dropped=rows.rows[0].dropped)     # the note of another entry
    assert any("entry 3:" in problem for problem in (await ledger.verify()).problems)
    other = await ledger.append(draft(9, texts=("other",)))
    rows.rows[1] = replace(rows.rows[1], outgoing=rows.rows[other.seq - 1].outgoing)
    assert any("entry 2:" in problem for problem in (await ledger.verify()).problems)


async def test_texts_that_the_entry_does_not_name_are_found() -> None:
    ledger, rows, _ = await filled()
    body = msgspec.msgpack.encode(("forged",))
    sealed = bytes(Aead(SEAL).encrypt(body, b"kith-ledger-texts|2"))
    rows.rows[1] = replace(rows.rows[1], outgoing=sealed)
    assert any("kept texts" in problem for problem in (await ledger.verify()).problems)


async def test_entries_read_back_with_their_texts_and_end() -> None:
    ledger, rows, _ = await filled()
    newest = await ledger.newest(limit=2, peer_id="12D3KooWHome")
    assert [view.entry.seq for view in newest] == [5, 4]
    first = await ledger.view(1)
    assert first is not None
    assert first.texts == ("Hi [PERSON_1]", "two")
    assert first.close is not None
    assert (first.close.sent_bytes, first.close.outcome) == (100, "end")
    assert await ledger.view(99) is None
    assert b"PERSON_1" not in rows.rows[0].entry + (rows.rows[0].outgoing or b"")
    rows.rows[0] = replace(rows.rows[0], entry=b"\xc1")
    with pytest.raises(LedgerBroken):
        await ledger.view(1)


async def test_what_a_crash_left_open_is_closed_at_the_next_start() -> None:
    rows, heads = MemoryLedgerRows(), MemoryHeads()
    ledger = ledger_over(rows, heads)
    await ledger.append(draft(1))
    await ledger.append(draft(2, purpose="mail"))
    again = ledger_over(rows, heads)
    assert await again.close_crashed(purposes=frozenset({"infer"})) == 1
    report = await again.verify()
    assert (report.ok, report.open_entries) == (True, 1)
    first = await again.view(1)
    assert first is not None
    assert first.close is not None
    assert first.close.outcome == "crashed"
    found = await again.find_open("12D3KooWHome", "r2")
    assert found is not None
    assert found.entry.seq == 2
    assert await again.find_open("12D3KooWHome", "r1") is None


async def test_the_head_never_goes_back(autojump_clock) -> None:
    class SlowFirst(MemoryLedgerRows):
        async def append(self, make, also):
            new = await super().append(make, also)
            await trio.sleep(1 if new.seq == 1 else 0)
            return new

    rows, heads = SlowFirst(), MemoryHeads()
    ledger = ledger_over(rows, heads)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ledger.append, draft(1))
        nursery.start_soon(ledger.append, draft(2))
    head = verify_head(SeedSigner(b"k" * 32).public_key, heads.stored)
    assert head is not None
    assert head.seq == 2


async def test_reopening_goes_on_with_the_chain() -> None:
    _, rows, heads = await filled(3)
    again = ledger_over(rows, heads)
    assert (await again.append(draft(7))).seq == 4
    assert (await again.verify()).ok


def test_two_equal_or_short_keys_are_refused() -> None:
    for chain, seal in ((CHAIN, CHAIN), (CHAIN[:31], SEAL), (CHAIN, b"")):
        with pytest.raises(ValueError, match="two different keys"):
            Ledger(MemoryLedgerRows(), MemoryHeads(), SeedSigner(b"k" * 32), chain_key=chain, seal_key=seal,
                   clock=FixedClock())


def test_signed_heads() -> None:
    signer = SeedSigner(b"k" * 32)
    stored = sign_head(signer, 3, b"d")
    head = verify_head(signer.public_key, stored)
    assert head is not None
    assert (head.seq, head.digest) == (3, b"d")
    assert verify_head(SeedSigner(b"y" * 32).public_key, stored) is None


async def test_the_head_file_is_replaced_whole_and_private(tmp_path: Path) -> None:
    keeper = FileHeadKeeper(tmp_path / "ledger.head")
    assert await keeper.load() is None
    await keeper.store(b"one")
    await keeper.store(b"two")
    assert await keeper.load() == b"two"
    assert (tmp_path / "ledger.head").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "ledger.head.new").exists()


async def test_the_head_is_on_the_disk_before_it_has_its_name_and_the_name_before_anybody_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def name_of(handle: int) -> str:
        return Path(f"/proc/self/fd/{handle}").readlink().name

    def watched_fsync(handle: int) -> None:
        steps.append(f"fsync {name_of(handle)}: {(tmp_path / 'ledger.head.new').exists()}")
        fsync(handle)

    def watched_replace(self: Path, target: Path) -> Path:
        steps.append(f"rename {self.name}: {self.read_bytes().decode()}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    await FileHeadKeeper(tmp_path / "ledger.head").store(b"one")
    assert steps == ["fsync ledger.head.new: True", "rename ledger.head.new: one", f"fsync {tmp_path.name}: False"]


async def test_a_head_that_cannot_be_made_durable_leaves_the_old_one_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    keeper = FileHeadKeeper(tmp_path / "ledger.head")
    await keeper.store(b"one")

    def failing(_: int) -> None:
        raise OSError(errno.EIO, "the disk is dying")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        with pytest.raises(OSError, match="dying"):
            await keeper.store(b"two")
    assert await keeper.load() == b"one"
    await keeper.store(b"three")
    assert await keeper.load() == b"three"


async def test_entries_that_come_together_share_a_head_and_none_goes_on_without_it() -> None:
    class SlowHeads(MemoryHeads):
        stores = 0

        async def store(self, head: bytes) -> None:
            self.stores += 1
            await trio.testing.wait_all_tasks_blocked()
            await super().store(head)

    heads, rows = SlowHeads(), MemoryLedgerRows()
    ledger = ledger_over(rows, heads)
    covered: list[bool] = []

    async def one(number: int) -> None:
        place = await ledger.append(draft(number))
        head = verify_head(SeedSigner(b"k" * 32).public_key, heads.stored or b"")
        covered.append(head is not None and head.seq >= place.seq)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(one, number)
    assert covered == [True] * 20
    assert heads.stores <= 3
    assert (await ledger.verify()).ok
    await ledger.append(draft(99))
    assert (await ledger.verify()).ok


async def test_over_the_real_database(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "kith.db", b"d" * 32, KITH)
    try:
        rows = StoredLedgerRows(database)
        ledger = ledger_over(rows, FileHeadKeeper(tmp_path / "ledger.head"))
        place = await ledger.append(
            draft(1), also=lambda tx: tx.execute("INSERT INTO settings VALUES ('rode', 'along')"),
        )
        await ledger.close(place, sent_bytes=1, digest=b"d", outcome="end")
        second = await ledger.append(draft(2))
        await database.write(ledger.closing(second, sent_bytes=2, digest=b"e", outcome="delivered"))
        third = await ledger.append(draft(3))
        assert [view.entry.seq for view in await ledger.newest(limit=9)] == [3, 2, 1]
        assert await ledger.find_open("12D3KooWHome", "r3") is not None
        assert await ledger.close_crashed(purposes=frozenset({"infer"})) == 1
        assert (await ledger.view(third.seq)).close.outcome == "crashed"
        report = await ledger.verify()
        assert (report.ok, report.entries, report.open_entries) == (True, 3, 0)
        kept = await database.read(lambda tx: tx.execute("SELECT value FROM settings").fetchall())
        assert [row[0] for row in kept] == ["along"]
        with pytest.raises(ZeroDivisionError):      # the entry and its companion stand or fall together
            await ledger.append(draft(4), also=lambda tx: 1 / 0)
        assert await database.read(table.head) == Head(3, report.head_digest)
    finally:
        await database.close()
