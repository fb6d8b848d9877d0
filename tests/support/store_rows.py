"""A database connection for tests of single store modules: in memory, through the real schema and driver."""

from typing import cast

from sqlcipher3 import dbapi2

from node.store.connection import Connection
from node.store.schema import KITH

__all__ = ["memory_rows"]


def memory_rows() -> Connection:
    """An empty kith.db in memory, in autocommit. The cipher is the database tests' business."""
    raw = dbapi2.connect(":memory:", isolation_level=None)
    raw.execute("PRAGMA foreign_keys=ON")
    for step in KITH.steps:
        for statement in step:
            raw.execute(statement)
    return cast("Connection", raw)
