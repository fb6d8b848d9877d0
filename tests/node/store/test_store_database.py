"""The database's promises: whole transactions, the right key only, one writer, grouped commits, nothing in clear."""

import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import trio
import trio.testing
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from node.errors import NewerSchema, StorageError, StoreClosed, StoreConflict, WrongKey
from node.store import conversations, settings
from node.store.connection import Connection, open_connection
from node.store.database import Database
from node.store.migrations import Schema
from node.store.schema import INDEX, KITH

KEY = bytes(range(32))


async def open_db(folder: Path, key: bytes = KEY, schema: Schema = KITH) -> Database:
    return await Database.open(folder / "kith.db", key, schema)


async def test_what_is_written_is_there_after_reopening(tmp_path):
    db = await open_db(tmp_path)
    await db.write(settings.put, "a", "1")
    assert await db.read(settings.get, "a") == "1"
    await db.close()
    db = await open_db(tmp_path)
    assert await db.read(settings.get, "a") == "1"
    await db.close()


async def test_settings_live_in_a_file_that_is_really_encrypted_and_durable(tmp_path):
    db = await open_db(tmp_path)
    facts = {}

    def look(tx: Connection) -> None:
        for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "cipher_version"):
            row = tx.execute(f"PRAGMA {name}").fetchone()
            facts[name] = None if row is None else row[0]

    await db.write(look)
    await db.close()
    assert facts["cipher_version"].startswith("4.")
    assert facts["journal_mode"] == "wal"
    assert (facts["synchronous"], facts["foreign_keys"], facts["secure_delete"]) == (2, 1, 1)
    with sqlite3.connect(tmp_path / "kith.db") as plain, pytest.raises(sqlite3.DatabaseError):
        plain.execute("SELECT * FROM settings")
    plain.close()


LOCKED_BYTES = 2**30, 512     # SQLite's lock bytes (its file format, section 1.2.10 "The Lock-Byte Page")
TRY_LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, int(sys.argv[3]), int(sys.argv[2]))
"""


def another_process_may_lock(path: Path) -> bool:
    start, count = map(str, LOCKED_BYTES)
    done = subprocess.run([sys.executable, "-c", TRY_LOCK, str(path), start, count], capture_output=True, text=True)
    assert done.returncode == 0 or "BlockingIOError" in done.stderr, done.stderr
    return done.returncode == 0


async def test_opening_one_more_connection_gives_up_no_lock_of_the_first(tmp_path):
    db = await open_db(tmp_path)
    await db.write(settings.put, "a", "1")
    path = tmp_path / "kith.db"
    assert not another_process_may_lock(path)
    one_more = open_connection(path, KEY, "FULL", read_only=True)
    assert not another_process_may_lock(path)
    one_more.close()
    path.open("rb").close()     # the control: this is what must never happen to an open database
    assert another_process_may_lock(path)
    await db.close()


async def test_files_are_private_while_open_and_after(tmp_path):
    db = await open_db(tmp_path)
    await db.write(settings.put, "a", "1")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(modes) == {"kith.db", "kith.db-wal", "kith.db-shm"}
    assert set(modes.values()) == {0o600}
    await db.close()
    assert [path.name for path in tmp_path.iterdir()] == ["kith.db"]


async def test_a_wrong_key_is_told_clearly_and_changes_nothing(tmp_path, capfd):
    db = await open_db(tmp_path)
    await db.write(settings.put, "a", "1")
    await db.close()
    before = (tmp_path / "kith.db").read_bytes()
    with pytest.raises(WrongKey, match="does not open with this device's key"):
        await open_db(tmp_path, bytes(32))
    assert (tmp_path / "kith.db").read_bytes() == before
    assert capfd.readouterr() == ("", "")  # the cipher's own complaints stay off the screen


async def test_a_rebuildable_database_is_replaced_when_it_does_not_fit(tmp_path):
    path = tmp_path / "index.db"
    path.write_bytes(b"rubbish" * 1000)
    with pytest.raises(WrongKey):
        await Database.open(path, KEY, INDEX)
    db = await Database.open_rebuildable(path, KEY, INDEX)
    assert await db.check() == []
    await db.close()


async def test_a_rebuildable_database_with_one_damaged_page_is_replaced(tmp_path):
    path = tmp_path / "index.db"

    async def filled() -> int:
        db = await Database.open_rebuildable(path, KEY, INDEX)
        rows = await db.read(lambda tx: tx.execute("SELECT value FROM marks").fetchall())
        if not rows:
            new = [(str(number), "x" * 900) for number in range(99)]
            await db.write(lambda tx: tx.executemany("INSERT INTO marks VALUES (?, ?)", new))
        await db.close()
        return len(rows)

    assert await filled() == 0
    assert await filled() == 99         # the control: a whole one stays
    data = bytearray(path.read_bytes())
    page = len(data) // 4096 // 2
    data[page * 4096 + 50] ^= 1
    path.write_bytes(data)
    db = await Database.open(path, KEY, INDEX)     # it opens, and would fail at each search from now on
    with pytest.raises(StorageError):
        await db.read(lambda tx: tx.execute("SELECT value FROM marks").fetchall())
    await db.close()
    assert await filled() == 0
    assert await filled() == 99


async def test_a_failing_write_leaves_nothing_and_hands_its_own_error_back(tmp_path):
    db = await open_db(tmp_path)

    def half(tx: Connection) -> None:
        settings.put(tx, "a", "1")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await db.write(half)
    assert await db.read(settings.get, "a") is None
    with pytest.raises(StoreConflict, match="NOT NULL"):
        await db.write(lambda tx: tx.execute("INSERT INTO settings VALUES ('a', NULL)"))
    await db.close()


async def test_writers_that_wait_together_share_commits_and_fail_alone(tmp_path):
    db = await open_db(tmp_path)
    errors = []

    async def one(number: int) -> None:
        def put(tx: Connection) -> None:
            settings.put(tx, f"k{number:03}", "v")
            if number % 10 == 3:
                raise ValueError(number)

        try:
            await db.write(put)
        except ValueError as error:
            errors.append(error.args[0])

    commits = []
    db._writer.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)  # type: ignore[attr-defined]
    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(one, number)
    db._writer.set_trace_callback(None)  # type: ignore[attr-defined]
    kept = await db.read(settings.items)
    await db.close()
    assert sorted(errors) == list(range(3, 100, 10))
    assert set(kept) == {f"k{number:03}" for number in range(100) if number % 10 != 3}
    assert len(commits) <= 4  # 1 for the first comer, then groups of 64


async def test_cancelled_before_its_turn_writes_nothing_and_after_it_is_whole(tmp_path):
    db = await open_db(tmp_path)
    with trio.CancelScope() as scope:
        scope.cancel()
        await db.write(settings.put, "early", "1")
    assert scope.cancelled_caught

    with trio.CancelScope() as scope:
        def put(tx: Connection) -> str:
            trio.from_thread.run_sync(scope.cancel)  # the owner gives up while the write is under way
            settings.put(tx, "late", "1")
            return "done"

        assert await db.write(put) == "done"
    assert await db.read(settings.items) == {"late": "1"}
    await db.close()


async def test_readers_cannot_write_and_see_whole_commits_only(tmp_path):
    db = await open_db(tmp_path)
    with pytest.raises(StorageError, match="readonly"):
        await db.read(settings.put, "a", "1")

    def put_while_reading(tx: Connection) -> tuple[str | None, str | None]:
        settings.put(tx, "a", "1")
        inside = trio.from_thread.run(db.read, settings.get, "a")
        return settings.get(tx, "a"), inside

    assert await db.write(put_while_reading) == ("1", None)
    assert await db.read(settings.get, "a") == "1"
    await db.close()


async def test_a_closed_database_refuses_and_closing_twice_is_harmless(tmp_path):
    db = await open_db(tmp_path)
    await db.close()
    await db.close()
    for call in (db.read, db.write):
        with pytest.raises(StoreClosed):
            await call(settings.get, "a")
    with pytest.raises(StoreClosed):
        await db.shrink_log()


async def test_close_waits_for_writes_under_way(tmp_path):
    db = await open_db(tmp_path)
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(db.write, settings.put, f"k{number}", "v")
        await trio.testing.wait_all_tasks_blocked()
        await db.close()
    db = await open_db(tmp_path)
    assert len(await db.read(settings.items)) == 20
    await db.close()


async def test_a_newer_schema_is_left_alone(tmp_path):
    known = len(KITH.steps)
    newer = Schema("kith", (*KITH.steps, ("CREATE TABLE later (a)",)))
    db = await open_db(tmp_path, schema=newer)
    await db.close()
    before = (tmp_path / "kith.db").read_bytes()
    with pytest.raises(NewerSchema, match=f"schema {known + 1} and this kith knows up to {known}"):
        await open_db(tmp_path)
    assert (tmp_path / "kith.db").read_bytes() == before


async def test_damage_is_found(tmp_path):
    db = await open_db(tmp_path)
    await db.write(settings.put, "a", "x" * 50_000)
    assert await db.check() == []
    await db.close()
    raw = bytearray((tmp_path / "kith.db").read_bytes())
    raw[-2000] ^= 1
    (tmp_path / "kith.db").write_bytes(raw)
    db = await open_db(tmp_path)
    assert await db.check() != []
    await db.close()


CANARY = "Bergamot-Quillfeather-7731"


def folder_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def say(tx: Connection) -> None:
    conversations.create(tx, "c1", 1, confidentiality=0, integrity=2)
    conversations.append(tx, "c1", conversations.Turn("user", CANARY * 40, 1, 2, 1))


async def test_at_rest_nothing_personal_stands_in_any_file_also_while_open(tmp_path):
    db = await open_db(tmp_path)
    await db.write(say)
    open_bytes = folder_bytes(tmp_path)  # database, -wal and -shm
    await db.close()
    assert len(open_bytes) > 20_000
    assert CANARY.encode() not in open_bytes
    assert CANARY.encode() not in folder_bytes(tmp_path)


def test_at_rest_control_the_same_rows_in_plain_sqlite_are_found(tmp_path):
    plain = sqlite3.connect(tmp_path / "plain.db", isolation_level=None)
    plain.execute("PRAGMA journal_mode=WAL")
    for step in KITH.steps:
        for statement in step:
            plain.execute(statement)
    say(plain)  # type: ignore[arg-type]
    assert CANARY.encode() in folder_bytes(tmp_path)
    plain.close()


def decrypted_pages(path: Path, key: bytes) -> bytes:
    """Every page of the file in clear, free ones too, by the published format: AES-256-CBC, 80 bytes reserved."""
    raw, clear = path.read_bytes(), []
    for start in range(0, len(raw), 4096):
        page = raw[start + (16 if start == 0 else 0) : start + 4096]  # the first page begins with the salt
        body, iv = page[:-80], page[-80:-64]
        decryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).decryptor()
        clear.append(decryptor.update(body) + decryptor.finalize())
    return b"".join(clear)


@pytest.mark.parametrize("secure", [True, False])
async def test_deleted_rows_stand_in_no_page_even_for_who_has_the_key(tmp_path, secure):
    db = await open_db(tmp_path)
    if not secure:  # the control: without the setting, the words stay in free pages
        db._writer.execute("PRAGMA secure_delete=OFF")
    await db.write(say)
    await db.shrink_log()
    assert CANARY.encode() in decrypted_pages(tmp_path / "kith.db", KEY)
    await db.write(conversations.delete, "c1")
    await db.shrink_log()
    assert (tmp_path / "kith.db-wal").stat().st_size == 0
    assert (CANARY.encode() in decrypted_pages(tmp_path / "kith.db", KEY)) is not secure
    await db.close()


def test_a_key_of_another_length_is_a_programming_error(tmp_path):
    with pytest.raises(ValueError, match="32 bytes"):
        open_connection(tmp_path / "kith.db", b"short", "FULL")
