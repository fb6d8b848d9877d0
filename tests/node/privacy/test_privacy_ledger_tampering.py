"""Whatever is done to the ledger's rows behind its back, verify() says so. Hypothesis chooses what."""

from dataclasses import replace
from pathlib import Path

import trio
from fixed import FixedClock
from guard_bench import MemoryHeads, MemoryLedgerRows
from hypothesis import given, settings
from hypothesis import strategies as st

from node.privacy.ledger import Draft, Ledger
from node.privacy.ledger_head import FileHeadKeeper, SeedSigner
from node.privacy.ledger_records import body_digest
from node.privacy.ledger_rows import StoredLedgerRows
from node.store.database import Database
from node.store.schema import KITH

BYTES = ("entry", "digest", "outgoing", "closed", "frames")


def ledger_over(rows: object, heads: object, clock: FixedClock | None = None) -> Ledger:
    return Ledger(
        rows, heads, SeedSigner(b"k" * 32), chain_key=b"c" * 32, seal_key=b"s" * 32,  # type: ignore[arg-type]
        clock=clock or FixedClock(),
    )


async def fill(ledger: Ledger, count: int, *, clock: FixedClock | None = None) -> None:
    for number in range(count):
        place = await ledger.append(Draft(
            "12D3KooWHome", "infer", "masked", f"{number:032x}", (f"text {number}",), 0, "owner", f"c{number % 2}"))
        body = b"bytes of %d" % number
        await ledger.close(
            place, sent_bytes=len(body), digest=b"d" * 32, outcome="end",
            stretches=((len(body), body_digest(body)),), bodies=(body,),
        )
        if clock is not None:
            clock.advance(86_400)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_change_to_any_row_is_found(data: st.DataObject) -> None:
    async def run() -> None:
        rows, heads = MemoryLedgerRows(), MemoryHeads()
        ledger = ledger_over(rows, heads)
        count = data.draw(st.integers(2, 6))
        await fill(ledger, count)
        assert (await ledger.verify()).ok
        before = list(rows.rows)
        at = data.draw(st.integers(0, count - 1))
        match data.draw(st.sampled_from(["flip", "take out", "drop", "cut", "swap", "copy", "other's bytes"])):
            case "flip":
                column = data.draw(st.sampled_from(BYTES))
                raw = bytearray(getattr(rows.rows[at], column))
                raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
                rows.rows[at] = replace(rows.rows[at], **{column: bytes(raw)})
            case "take out":
                rows.rows[at] = replace(rows.rows[at], **{data.draw(st.sampled_from(["outgoing", "frames"])): None})
            case "drop":
                del rows.rows[at]
            case "cut":
                del rows.rows[at:]
            case "swap":
                other = data.draw(st.integers(0, count - 1).filter(lambda number: number != at))
                one, two = rows.rows[at], rows.rows[other]
                rows.rows[at], rows.rows[other] = replace(two, seq=one.seq), replace(one, seq=two.seq)
            case "copy":
                rows.rows.append(replace(rows.rows[at], seq=count + 1))
            case _:
                column = data.draw(st.sampled_from(["outgoing", "frames", "closed"]))
                other = data.draw(st.integers(0, count - 1).filter(lambda number: number != at))
                rows.rows[at] = replace(rows.rows[at], **{column: getattr(rows.rows[other], column)})
        assert rows.rows != before
        report = await ledger.verify()
        assert not report.ok, "a changed ledger verified"

    trio.run(run)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 12), st.integers(0, 12), st.integers(0, 12))
def test_thinning_out_keeps_the_chain_verifiable(count: int, texts_days: int, entries_days: int) -> None:
    import tempfile

    async def run(folder: Path) -> None:
        database = await Database.open(folder / "kith.db", b"d" * 32, KITH)
        try:
            clock = FixedClock()
            start_ms = int(clock.now().timestamp() * 1000)
            ledger = ledger_over(StoredLedgerRows(database), FileHeadKeeper(folder / "head"), clock)
            await fill(ledger, count, clock=clock)
            day = 86_400_000
            dropped = await ledger.drop_older(start_ms + texts_days * day)
            assert dropped == min(count, texts_days)
            pruned = await ledger.prune(start_ms + entries_days * day)
            assert pruned == min(count - 1, entries_days)       # the newest entry always stays
            report = await ledger.verify()
            assert report.ok, report.problems
            assert (report.first, report.entries) == (pruned + 1, count)
            kept = [view.texts is not None for view in await ledger.page(0)]
            assert kept == [number >= texts_days for number in range(pruned, count)]
            await fill(ledger, 1)                               # and the chain goes on
            assert (await ledger.verify()).entries == count + 1
            if pruned:                                          # the checkpoint can't be moved or forged
                await database.write(lambda tx: tx.execute("DELETE FROM ledger WHERE seq = ?", (pruned + 1,)))
                assert not (await ledger.verify()).ok
                await database.write(lambda tx: tx.execute("UPDATE ledger_checkpoint SET record = ?", (b"\x93\x09",)))
                assert any("checkpoint" in problem for problem in (await ledger.verify()).problems)
        finally:
            await database.close()

    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        trio.run(run, Path(folder))


async def test_deleting_a_conversation_erases_its_texts_and_leaves_its_entries(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "kith.db", b"d" * 32, KITH)
    try:
        ledger = ledger_over(StoredLedgerRows(database), FileHeadKeeper(tmp_path / "head"))
        await fill(ledger, 4)
        late = await ledger.append(Draft("12D3KooWHome", "infer", "masked", "f" * 32, ("still open",), 0, "o", "c1"))
        assert await ledger.drop_conversation("c1") == 3
        await ledger.close(late, sent_bytes=3, digest=b"d" * 32, outcome="end", stretches=((3, b"x" * 32),),
                           bodies=(b"abc",))
        views = await ledger.page(0)
        assert [(view.entry.conversation, view.texts is None, view.bodies is None) for view in views] == [
            ("c0", False, False), ("c1", True, True), ("c0", False, False), ("c1", True, True), ("c1", True, True)]
        assert (await ledger.verify()).ok
        assert await ledger.drop_conversation("") == 0          # messages and questions belong to none
    finally:
        await database.close()
