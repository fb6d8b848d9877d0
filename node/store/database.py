"""One encrypted database under trio: a single writer that commits in groups, and readers that see whole commits.

Statements live in the modules beside this one, as plain functions over a Connection; callers run them as
`await database.write(peers.add, ...)`, so several can share one transaction. Must not know any table.
"""

import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import trio

from node.errors import NewerSchema, StorageError, StoreClosed, WrongKey
from node.store.connection import Connection, DriverError, Durability, open_connection, storage_error
from node.store.migrations import Schema, migrate

__all__ = ["Database"]

P = ParamSpec("P")
T = TypeVar("T")

_READERS = 2
_GROUP_LIMIT = 64  # more in one commit gains nothing measurable and makes the last caller wait


class _Job:
    """One caller's function on its way through the writer."""

    __slots__ = ("call", "error", "result", "taken")

    def __init__(self, call: Callable[[Connection], Any]) -> None:
        self.call = call
        self.taken = False
        self.result: Any = None
        self.error: Exception | None = None


class Database:
    """An open database. Make it with open() or open_rebuildable(); end it with close()."""

    def __init__(self, path: Path, writer: Connection, readers: list[Connection]) -> None:
        self.path = path
        self._writer = writer
        self._idle_readers = readers
        self._closed = False
        self._waiting: deque[_Job] = deque()
        self._turn = trio.Lock()
        self._write_thread = trio.CapacityLimiter(1)
        self._read_threads = trio.CapacityLimiter(_READERS)

    @classmethod
    async def open(cls, path: Path, key: bytes, schema: Schema, durability: Durability = "FULL") -> Self:
        """The database at path, made if it is not there, at the present schema.

        key: 32 bytes. Raises WrongKey, NewerSchema, MigrationFailed or StorageError; the file is then untouched.
        """
        writer, readers = await trio.to_thread.run_sync(_open_all, path, key, schema, durability)
        return cls(path, writer, readers)

    @classmethod
    async def open_rebuildable(cls, path: Path, key: bytes, schema: Schema) -> Self:
        """As open(), for what can be rebuilt: one that does not fit (other key, newer, a damaged page) is replaced."""
        with contextlib.suppress(WrongKey, NewerSchema):
            database = await cls.open(path, key, schema, "NORMAL")
            with contextlib.suppress(StorageError):     # too damaged to be looked at to the end
                if await database.read(_is_whole):
                    return database
            await database.close()
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        return await cls.open(path, key, schema, "NORMAL")

    async def write(
        self, function: Callable[Concatenate[Connection, P], T], /, *args: P.args, **kwargs: P.kwargs,
    ) -> T:
        """What function(connection, ...) returned, once its changes are durable.

        The function runs in a thread inside a transaction, all or nothing: when it raises, its changes are undone
        and the error comes out here. Callers that wait at the same time share one commit. Cancelled means nothing
        was written: once the write is under way it can no longer be cancelled. Raises StorageError, StoreConflict,
        StoreClosed.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._closed:
            raise StoreClosed
        job = _Job(partial(_call, function, args, kwargs))
        self._waiting.append(job)
        with trio.CancelScope(shield=True):
            async with self._turn:
                if not job.taken:
                    await self._commit_group()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    async def read(
        self, function: Callable[Concatenate[Connection, P], T], /, *args: P.args, **kwargs: P.kwargs,
    ) -> T:
        """What function(connection, ...) returned, over one consistent state; it cannot change anything.

        Runs in a thread and is not cancelled midway: read in pages. Raises StorageError, StoreClosed.
        """
        call: Callable[[Connection], T] = partial(_call, function, args, kwargs)
        return await trio.to_thread.run_sync(self._read_in_thread, call, limiter=self._read_threads)

    async def check(self) -> list[str]:
        """What is wrong with the file, in words; empty when every page and index is sound. Slow on a large file."""
        try:
            return await self.read(_find_damage)
        except StoreClosed:
            raise
        except StorageError as error:  # too damaged to be examined to the end
            return [error.text]

    async def shrink_log(self) -> None:
        """Fold the write-ahead log into the database and empty it, so that deleted rows stand in no file.

        Raises StorageError when somebody reads on and on: then it still holds them, until the next call or the end.
        """
        with trio.CancelScope(shield=True):
            async with self._turn:
                if self._closed:
                    raise StoreClosed
                if not await trio.to_thread.run_sync(_shrink_log, self._writer, limiter=self._write_thread):
                    raise StorageError("The database's log could not be emptied: it is being read.", hint="Try again.")

    async def close(self) -> None:
        """Finish what is under way, fold the log in, close every connection. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        with trio.CancelScope(shield=True):
            async with self._turn:
                holders = [object() for _ in range(_READERS)]
                for holder in holders:
                    await self._read_threads.acquire_on_behalf_of(holder)
                await trio.to_thread.run_sync(_close_all, self._writer, self._idle_readers, limiter=self._write_thread)
                for holder in holders:
                    self._read_threads.release_on_behalf_of(holder)

    def _read_in_thread(self, call: Callable[[Connection], T]) -> T:
        if self._closed:
            raise StoreClosed
        reader = self._idle_readers.pop()  # the limiter has as many tokens as there are readers
        try:
            return _read(reader, call, self.path)
        finally:
            self._idle_readers.append(reader)

    async def _commit_group(self) -> None:
        jobs = [self._waiting.popleft() for _ in range(min(_GROUP_LIMIT, len(self._waiting)))]
        for job in jobs:
            job.taken = True
        await trio.to_thread.run_sync(_run_group, self._writer, jobs, self.path, limiter=self._write_thread)


def _call(
    function: Callable[Concatenate[Connection, P], T], args: Any, kwargs: Any, connection: Connection,
) -> T:
    return function(connection, *args, **kwargs)


def _open_all(path: Path, key: bytes, schema: Schema, durability: Durability) -> tuple[Connection, list[Connection]]:
    writer = open_connection(path, key, durability)
    readers: list[Connection] = []
    try:
        migrate(writer, schema, path)
        readers.extend(open_connection(path, key, durability, read_only=True) for _ in range(_READERS))
    except BaseException:
        for connection in (*readers, writer):
            connection.close()
        raise
    return writer, readers


def _close_all(writer: Connection, readers: list[Connection]) -> None:
    while readers:
        readers.pop().close()
    writer.close()  # the last connection folds the write-ahead log in and removes it


def _shrink_log(writer: Connection) -> bool:
    row = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()     # waits for readers, busy_timeout long
    return row is not None and row[0] == 0


def _run_group(writer: Connection, jobs: list[_Job], path: Path) -> None:
    """Run the jobs in one transaction, each in a savepoint of its own; every job ends with a result or an error."""
    try:
        writer.execute("BEGIN IMMEDIATE")
        for job in jobs:
            _run_one(writer, job, path)
        writer.execute("COMMIT")
    except DriverError as error:  # no room, no lock, a failing disk: the whole group is undone
        if writer.in_transaction:
            writer.execute("ROLLBACK")
        failure = storage_error(error, path)
        for job in jobs:
            job.error = job.error or failure


def _run_one(writer: Connection, job: _Job, path: Path) -> None:
    writer.execute("SAVEPOINT job")
    try:
        job.result = job.call(writer)
    except Exception as error:  # whatever the caller's function raises is handed back to that caller alone
        job.error = storage_error(error, path) if isinstance(error, DriverError) else error
        if not writer.in_transaction:  # the engine itself gave the transaction up; COMMIT would lie to the others
            raise DriverError(str(error)) from error
        writer.execute("ROLLBACK TO job")
    writer.execute("RELEASE job")


def _read(reader: Connection, call: Callable[[Connection], T], path: Path) -> T:
    try:
        reader.execute("BEGIN")
        try:
            return call(reader)
        finally:
            if reader.in_transaction:
                reader.execute("ROLLBACK")  # there is nothing to commit
    except DriverError as error:
        raise storage_error(error, path) from error


def _is_whole(connection: Connection) -> bool:
    """Whether every page is as it was written; reads the whole file once."""
    return connection.execute("PRAGMA cipher_integrity_check").fetchone() is None


def _find_damage(connection: Connection) -> list[str]:
    found = [str(row[0]) for row in connection.execute("PRAGMA cipher_integrity_check")]
    return found + [str(row[0]) for row in connection.execute("PRAGMA quick_check") if row[0] != "ok"]
