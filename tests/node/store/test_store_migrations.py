"""Schema steps: each whole or not at all, in order, once; every table of the real schema is strict."""

import pytest
from sqlcipher3 import dbapi2
from store_rows import memory_rows

from node.errors import MigrationFailed, NewerSchema
from node.store.migrations import Schema, migrate, version
from node.store.schema import INDEX, KITH

ONE = ("CREATE TABLE a (x)", "INSERT INTO a VALUES (1)")
TWO = ("CREATE TABLE b (x)", "INSERT INTO b SELECT x FROM a")
BAD = ("CREATE TABLE c (x)", "INSERT INTO nowhere VALUES (1)")


def empty():
    return dbapi2.connect(":memory:", isolation_level=None)


def tables(connection):
    return {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_only_missing_steps_are_carried_out(tmp_path):
    connection = empty()
    assert migrate(connection, Schema("t", (ONE,)), tmp_path) == 1
    assert migrate(connection, Schema("t", (ONE, TWO)), tmp_path) == 1
    assert migrate(connection, Schema("t", (ONE, TWO)), tmp_path) == 0
    assert connection.execute("SELECT x FROM b").fetchall() == [(1,)]
    assert version(connection) == 2


def test_a_failing_step_leaves_the_steps_before_it_and_nothing_of_itself(tmp_path):
    connection = empty()
    with pytest.raises(MigrationFailed, match="Step 2 of the t schema"):
        migrate(connection, Schema("t", (ONE, BAD, TWO)), tmp_path)
    assert (version(connection), tables(connection)) == (1, {"a"})


def test_a_newer_database_is_refused_untouched(tmp_path):
    connection = empty()
    migrate(connection, Schema("t", (ONE, TWO)), tmp_path)
    with pytest.raises(NewerSchema, match="schema 2 and this kith knows up to 1"):
        migrate(connection, Schema("t", (ONE,)), tmp_path)
    assert version(connection) == 2


@pytest.mark.parametrize("schema", [KITH, INDEX])
def test_every_table_is_strict(schema, tmp_path):
    connection = empty()
    migrate(connection, schema, tmp_path)
    listed = [row for row in connection.execute("PRAGMA table_list") if not row[1].startswith("sqlite_")]
    strict = {row[1]: row[5] for row in listed if row[2] == "table"}  # a full-text table and its shadows cannot be
    assert strict
    assert set(strict.values()) == {1}
    assert tables(memory_rows()) >= {"peers", "ledger", "outbox", "inbox"}
