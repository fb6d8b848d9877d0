"""Encrypts a closed database anew under another key; killed at any instant, it opens with the old key or the new one.

SQLCipher rewrites every page inside one transaction. That is done with a rollback journal: a torn rewrite is rolled
back by whoever opens the file next. Must not know any table.
"""

from pathlib import Path

from node.errors import StorageError, WrongKey
from node.store.connection import DriverError, open_connection, storage_error

__all__ = ["rekey"]


def rekey(path: Path, old: bytes, new: bytes) -> bool:
    """Whether the file had the old key and has the new one now; False when it has the new one already, or is not there.

    Nobody else may have it open. Blocks for about a second per 40 MB. Raises WrongKey when neither key opens it,
    StorageError; the file is then as it was.
    """
    if not path.exists() or not path.stat().st_size:
        return False
    try:
        connection = open_connection(path, old, "FULL")
    except WrongKey:
        open_connection(path, new, "FULL").close()
        return False
    try:
        if connection.execute("PRAGMA journal_mode=DELETE").fetchone() != ("delete",):
            raise StorageError(f"The database {path} is in use; its key was not changed.")
        connection.execute(f"PRAGMA rekey=\"x'{new.hex()}'\"")
        connection.execute("PRAGMA journal_mode=WAL").fetchone()
    except DriverError as error:
        raise storage_error(error, path) from error
    finally:
        connection.close()
    open_connection(path, new, "FULL").close()      # proof, before anybody forgets the old key
    return True
