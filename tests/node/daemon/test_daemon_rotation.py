"""A new key for everything at rest: the old one opens nothing afterwards, and no kill -9 loses a row."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trio
from fixed import SeededEntropy

from node.daemon import rotation
from node.errors import WrongKey
from node.identity import keystore, wrapped_key
from node.identity.keystore import Identity
from node.paths import Paths
from node.store.connection import open_connection
from node.store.database import Database
from node.store.rekeying import rekey
from node.store.schema import INDEX, KITH

SUPPORT = Path(__file__).resolve().parents[2] / "support"
ROWS = 4_000
PASSPHRASE = "eight words are better than one"


def made(folder: Path, rows: int = 50) -> tuple[Paths, Identity]:
    """A data folder with both databases, an engine key and so many rows."""
    paths = Paths.from_env({"KITH_HOME": str(folder)}, folder)
    paths.prepare()
    identity = keystore.create(paths.identity_file, SeededEntropy(1))

    async def fill() -> None:
        for path, purpose, schema in ((paths.database, "database", KITH), (paths.index_database, "index", INDEX)):
            database = await Database.open(path, identity.storage_key(purpose), schema)
            table = "settings" if purpose == "database" else "marks"
            await database.write(lambda tx, table=table: tx.executemany(
                f"INSERT INTO {table} VALUES (?, ?)",
                [(f"key {number}", f"value {number} " + "x" * 900) for number in range(rows)]))
            await database.close()

    trio.run(fill)
    rotation.engine_key(paths, identity, SeededEntropy(2))
    return paths, identity


def rows_in(path: Path, key: bytes) -> int:
    connection = open_connection(path, key, "FULL")
    try:
        assert connection.execute("PRAGMA cipher_integrity_check").fetchall() == []
        table = "settings" if path.name == "kith.db" else "marks"
        found = connection.execute(f"SELECT count(*), sum(length(value)) FROM {table}").fetchone()
        assert found is not None
        return int(found[0])
    finally:
        connection.close()


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
def test_after_a_rotation_only_the_new_key_opens_anything(tmp_path: Path, passphrase: str | None) -> None:
    paths, before = made(tmp_path)
    keystore.save(paths.identity_file, before, passphrase, SeededEntropy(9))
    old_file = paths.identity_file.read_bytes()
    engine = rotation.engine_key(paths, before, SeededEntropy(2))
    begun = rotation.begin(paths, before, passphrase, SeededEntropy(3))
    after = rotation.finish(paths, begun, passphrase, SeededEntropy(4))
    assert after == keystore.load(paths.identity_file, passphrase)
    assert (after.peer_id, after.seed, after.next_storage) == (before.peer_id, before.seed, None)
    assert rows_in(paths.database, after.storage_key("database")) == rows_in(
        paths.index_database, after.storage_key("index")) == 50
    assert rotation.engine_key(paths, after, SeededEntropy(5)) == engine      # what it protects stays readable
    # a copy of the old key file opens none of it
    paths.identity_file.write_bytes(old_file)
    stale = keystore.load(paths.identity_file, passphrase)
    for path, purpose in ((paths.database, "database"), (paths.index_database, "index")):
        with pytest.raises(WrongKey):
            open_connection(path, stale.storage_key(purpose), "FULL")
    with pytest.raises(WrongKey):
        wrapped_key.unwrap(paths.data_dir / "engine.key", stale.storage_key("engine-files"))


def test_a_second_rotation_goes_the_same_way(tmp_path: Path) -> None:
    paths, identity = made(tmp_path)
    keys = set()
    for number in range(3):
        begun = rotation.begin(paths, identity, None, SeededEntropy(10 + number))
        assert rotation.begin(paths, begun, None, SeededEntropy(99)) == begun    # begun once
        identity = rotation.finish(paths, begun, None, SeededEntropy(20 + number))
        keys.add(identity.storage_key("database"))
        assert rows_in(paths.database, identity.storage_key("database")) == 50
    assert len(keys) == 3
    assert rotation.finish(paths, identity, None, SeededEntropy(30)) == identity


def test_a_database_that_is_not_there_or_open_elsewhere(tmp_path: Path) -> None:
    assert not rekey(tmp_path / "none.db", b"a" * 32, b"b" * 32)
    paths, identity = made(tmp_path)
    old = identity.storage_key("database")
    held = open_connection(paths.database, old, "FULL")
    held.execute("BEGIN")
    held.execute("SELECT count(*) FROM settings").fetchone()
    with pytest.raises(Exception, match=r"in use|locked"):
        rekey(paths.database, old, b"b" * 32)
    held.execute("ROLLBACK")
    held.close()
    assert rows_in(paths.database, old) == 50
    with pytest.raises(WrongKey):
        rekey(paths.database, b"x" * 32, b"y" * 32)
    assert rows_in(paths.database, old) == 50


def start(home: Path, seed: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SUPPORT / "rotating_process.py"), str(home), str(seed)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": f"{SUPPORT}:{SUPPORT.parents[1]}"},
    )


def test_kill_9_in_the_middle_of_rotations_loses_nothing(tmp_path: Path) -> None:
    """Each process begins or goes on with a rotation and is killed after a random while; the last one may finish."""
    paths, identity = made(tmp_path, ROWS)
    rng = random.Random(7)
    halfway = finished = 0
    for number in range(12):
        process = start(tmp_path, number)
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(rng.uniform(0.0, 0.35))      # anywhere from the first page to the end
        process.send_signal(signal.SIGKILL)
        finished += "done" in process.stdout.read()
        process.wait()
        process.stdout.close()
        halfway += keystore.load(paths.identity_file).next_storage is not None
    last = start(tmp_path, 99)
    assert last.communicate()[0].endswith("done\n")
    found = keystore.load(paths.identity_file)
    assert found.next_storage is None
    assert found.peer_id == identity.peer_id
    assert halfway > 0, "no kill fell into a rotation"
    assert rows_in(paths.database, found.storage_key("database")) == ROWS
    assert rows_in(paths.index_database, found.storage_key("index")) == ROWS
    assert len(rotation.engine_key(paths, found, SeededEntropy(5))) == 32
    with pytest.raises(WrongKey):
        open_connection(paths.database, identity.storage_key("database"), "FULL")
