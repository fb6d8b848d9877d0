"""The ledger as the owner reads it: newest first, by peer and time, with the exact texts, and the day's sums."""

import base64
from typing import Any

import pytest
from guard_bench import HOME, GuardBench, guard_bench

from node.daemon.ledger import LedgerDesk
from node.daemon.ledger_upkeep import LedgerUpkeep
from node.errors import UnknownPeer, UsageError
from node.privacy.egress import Part, Purpose
from node.privacy.labels import owner_text
from node.privacy.ledger_records import Standing


class Names:
    """A roster with one peer."""

    def find(self, name: str) -> str:
        if name != "home-pc":
            raise UnknownPeer
        return HOME.peer_id

    def name_of(self, peer_id: str) -> str:
        return "home-pc" if peer_id == HOME.peer_id else "?"


async def filled(never_sign: frozenset[str] = frozenset()) -> tuple[LedgerDesk, GuardBench]:
    """Three messages an hour apart; the last one is not delivered yet. One prompt with a name."""
    bench = await guard_bench([("Dana Whitfield", "PERSON")], never_sign=never_sign)
    for number in range(3):
        clearance = await bench.clear(
            Part("mail", owner_text(f"message {number}")), purpose=Purpose.MAIL, request_id=f"{number:032x}"
        )
        if number < 2:
            clearance.count(b"x" * (10 + number))
            await clearance.close("delivered")
        bench.clock.advance(3600)
    prompt = await bench.clear(Part("user", owner_text("write to Dana Whitfield")), request_id="f" * 32)
    await prompt.close("answered")
    desk: Any = LedgerDesk(bench.ledger, Names(), bench.clock)  # type: ignore[arg-type]
    return desk, bench


async def test_entries_come_newest_first_and_without_texts() -> None:
    desk, _ = await filled()
    found = await desk.entries(since=None, peer=None, limit=10)
    assert [entry.entry_id for entry in found] == [4, 3, 2, 1]
    assert [(entry.purpose, entry.outcome, entry.size_bytes) for entry in found] == [
        ("infer", "answered", 0), ("mail", "open", 0), ("mail", "delivered", 11), ("mail", "delivered", 10),
    ]
    assert {entry.texts is None for entry in found} == {True}
    assert (found[0].substitutions, found[0].level, found[0].peer) == (1, "masked", "home-pc")
    assert found[0].at == "2026-03-18T12:30:00+00:00"
    assert [entry.entry_id for entry in await desk.entries(since=None, peer="home-pc", limit=2)] == [4, 3]
    with pytest.raises(UnknownPeer):
        await desk.entries(since=None, peer="nobody", limit=2)


@pytest.mark.parametrize(("since", "ids"), [
    ("1s", [4]), ("90m", [4, 3]), ("2h", [4, 3, 2]), ("1d", [4, 3, 2, 1]), ("2026-03-18T11:00:00+00:00", [4, 3]),
    ("2026-03-18T12:00:00+01:00", [4, 3]),
])
async def test_since_takes_spans_and_times(since: str, ids: list[int]) -> None:
    desk, _ = await filled()
    assert [entry.entry_id for entry in await desk.entries(since=since, peer=None, limit=10)] == ids


@pytest.mark.parametrize("since", ["", "yesterday", "1w", "-1d", "12345d", "d", "2026-13-01"])
async def test_what_is_no_time_is_refused(since: str) -> None:
    desk, _ = await filled()
    if since == "":
        assert len(await desk.entries(since=since, peer=None, limit=10)) == 4    # an empty query value is no filter
        return
    with pytest.raises(UsageError):
        await desk.entries(since=since, peer=None, limit=10)


async def test_one_entry_shows_the_exact_text_that_left() -> None:
    desk, _ = await filled()
    entry = await desk.entry(4)
    assert entry.texts is not None
    assert "Dana" not in entry.texts[0]
    assert entry.texts[0].startswith("write to ")
    with pytest.raises(UsageError, match="no ledger entry 99"):
        await desk.entry(99)


async def test_today_sums_up_since_midnight() -> None:
    desk, bench = await filled()
    assert await desk.today() == (4, 21, 1)
    bench.clock.advance(86_400)
    assert await desk.today() == (0, 0, 0)


async def test_each_entry_says_what_the_peer_signed_for() -> None:
    desk, _ = await filled()
    assert [entry.receipt for entry in await desk.entries(since=None, peer=None, limit=10)] == [
        "nothing sent", "open", "unreceipted", "unreceipted"]
    report = await desk.verify()
    assert report.receipts == {"nothing sent": 1, "open": 1, "unreceipted": 2}


async def test_a_receipt_is_missed_nowhere_where_none_is_due() -> None:
    desk, bench = await filled(never_sign=frozenset({HOME.peer_id}))
    assert {entry.receipt for entry in await desk.entries(since=None, peer=None, limit=10)} == {"no receipt due"}
    assert {entry["receipt"] for entry in (await desk.export(0, with_texts=False)).entries} == {"no receipt due"}
    assert (await desk.verify()).receipts == {"no receipt due": 4}
    assert (await bench.ledger.verify()).standings == {Standing.NOT_DUE: 4}     # what the audit counts


async def test_an_export_holds_what_the_chain_covers_and_texts_only_when_asked_for() -> None:
    desk, bench = await filled()
    page = await desk.export(1, with_texts=False)
    assert [entry["entry_id"] for entry in page.entries] == [2, 3, 4]
    assert page.next is None
    assert [base64.b64decode(entry["chained"]) for entry in page.entries] == [row.entry for row in bench.rows.rows[1:]]
    assert {entry["texts"] for entry in page.entries} == {None}
    with_texts = (await desk.export(3, with_texts=True)).entries[0]
    assert with_texts["texts"] == [*(await desk.entry(4)).texts]
    assert with_texts["sent"]["size_bytes"] == 0


async def test_old_texts_and_entries_go_as_the_settings_say() -> None:
    desk, bench = await filled()
    told: list[str] = []

    class Log:
        async def shrink_log(self) -> None:
            told.append("shrunk")

    keep = LedgerUpkeep(bench.ledger, Log(), bench.clock, texts_days=0, entries_days=0)
    bench.clock.advance(400 * 86_400)
    assert await keep.tidy() == (0, 0)
    assert told == []
    assert await LedgerUpkeep(bench.ledger, Log(), bench.clock, texts_days=90, entries_days=0).tidy() == (3, 0)
    assert told == ["shrunk"]
    assert (await desk.entry(1)).dropped == "age"
    assert (await desk.verify()).ok


async def test_verify_tells_a_changed_row() -> None:
    desk, bench = await filled()
    report = await desk.verify()
    assert (report.ok, report.entries, report.problems) == (True, 4, [])
    assert report.head == (await desk.entry(4)).digest
    del bench.rows.rows[1]
    broken = await desk.verify()
    assert not broken.ok
    assert "entry 2 is missing" in broken.problems[0]
