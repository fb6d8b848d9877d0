"""A deleted conversation stands in no page of any file any more: not in free ones, not in the log."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fixed import FixedClock
from plain_pages import plain_copy

from node.daemon.conversations import Conversations
from node.privacy.decisions import Decisions
from node.privacy.ledger import Draft, Ledger
from node.privacy.ledger_head import FileHeadKeeper, SeedSigner
from node.privacy.ledger_records import body_digest
from node.privacy.ledger_rows import StoredLedgerRows
from node.privacy.policy import Level, Purpose
from node.store import approvals, conversations
from node.store.conversations import Turn
from node.store.database import Database
from node.store.schema import KITH

KEY = b"d" * 32
CANARIES = [f"canary-{place}-Zdravka-Korenjak".encode() for place in ("turn", "draft", "shown", "long")]
OTHER = b"the other conversation stays"


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[Database, Conversations, Ledger, list[str]]]:
    database = await Database.open(folder / "kith.db", KEY, KITH)
    told: list[str] = []
    try:
        clock = FixedClock()
        ledger = Ledger(
            StoredLedgerRows(database), FileHeadKeeper(folder / "head"), SeedSigner(b"k" * 32), chain_key=b"c" * 32,
            seal_key=b"s" * 32, clock=clock,
        )
        decisions = Decisions(database, clock)
        await decisions.load()
        await decisions.choose("12D3KooWHome", Purpose.INFER, "c1", Level.CLEAR)

        async def forget_prompts() -> None:
            told.append("prompts")

        desk = Conversations(
            database, told.append, forget_prompts, erase=(ledger.drop_conversation, decisions.forget_conversation))
        yield database, desk, ledger, told
    finally:
        await database.close()


async def fill(database: Database, ledger: Ledger) -> None:
    turn, draft, shown, long = (canary.decode() for canary in CANARIES)

    def write(tx) -> None:
        for name in ("c1", "c2"):
            conversations.create(tx, name, 1, confidentiality=0, integrity=0)
        conversations.append(tx, "c1", Turn("user", turn, 0, 0, 2))
        conversations.append(tx, "c1", Turn("assistant", "x" * 9_000 + long, 0, 0, 3))     # overflow pages
        conversations.append(tx, "c2", Turn("user", OTHER.decode(), 0, 0, 4))
        conversations.keep_draft(tx, "c1", draft)
        approvals.ask(tx, approval_id="a1", conversation_id="c1", kind="write", shown=shown, now_ms=5)

    await database.write(write)
    place = await ledger.append(Draft("12D3KooWHome", "infer", "clear", "aa" * 16, (turn,), 0, "owner", "c1"))
    await ledger.close(place, sent_bytes=9, digest=b"d" * 32, outcome="end",
                       stretches=((len(turn), body_digest(turn.encode())),), bodies=(turn.encode(),))


def standing(folder: Path) -> list[bytes]:
    """Canaries that a reader with the key finds anywhere in the file or its log."""
    plain = plain_copy(folder / "kith.db", KEY)
    assert OTHER in plain, "the pages were not decrypted"
    return [canary for canary in CANARIES if canary in plain]


async def test_nothing_of_it_is_left_in_any_page_or_log(tmp_path: Path) -> None:
    async with opened(tmp_path) as (database, desk, ledger, told):
        await fill(database, ledger)
        assert standing(tmp_path) == CANARIES           # the control: this reader does find them
        assert await desk.delete("c1") == "c1"
        assert standing(tmp_path) == []
        assert told == ["c1", "prompts"]
        rows = await database.read(lambda tx: tx.execute("SELECT count(*) FROM levels").fetchone())
        assert rows == (0,)
        entry = await ledger.view(1)
        assert entry is not None
        assert (entry.texts, entry.bodies) == (None, None)
        assert entry.dropped is not None
        assert entry.dropped.why == "deleted"
        assert (await ledger.verify()).ok               # the chain still says that something left, when and to whom


async def test_negative_control_without_overwriting_they_stand_in_free_pages(tmp_path: Path) -> None:
    async with opened(tmp_path) as (database, desk, ledger, _):
        await fill(database, ledger)
        database._writer.execute("PRAGMA secure_delete=OFF")
        await desk.delete("c1")
        assert standing(tmp_path) != []


async def test_negative_control_without_shrinking_they_stand_in_the_log(tmp_path: Path) -> None:
    async with opened(tmp_path) as (database, _, ledger, _):
        await fill(database, ledger)
        await ledger.drop_conversation("c1")
        await database.write(conversations.delete, "c1")
        assert standing(tmp_path) != []
