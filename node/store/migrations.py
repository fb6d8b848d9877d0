"""Brings a database to the present schema, one numbered step at a time, each step whole or not at all.

Must not know what the tables mean.
"""

from dataclasses import dataclass
from pathlib import Path

from node.errors import MigrationFailed, NewerSchema
from node.store.connection import Connection, DriverError

__all__ = ["Schema", "migrate", "version"]


@dataclass(frozen=True, slots=True)
class Schema:
    """A named list of steps; step n brings version n-1 to n. Released steps never change, new ones are appended."""

    name: str
    steps: tuple[tuple[str, ...], ...]


def version(connection: Connection) -> int:
    """The schema version of this database; 0 when it is new."""
    row = connection.execute("PRAGMA user_version").fetchone()
    assert row is not None
    return int(row[0])


def migrate(connection: Connection, schema: Schema, path: Path) -> int:
    """How many steps were carried out. Raises NewerSchema (nothing touched) or MigrationFailed (that step undone)."""
    found, wanted = version(connection), len(schema.steps)
    if found > wanted:
        raise NewerSchema(f"{path} has schema {found} and this kith knows up to {wanted}; it was left alone.")
    for number in range(found + 1, wanted + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in schema.steps[number - 1]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={number}")
            connection.execute("COMMIT")
        except DriverError as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            text = f"Step {number} of the {schema.name} schema failed ({error}); {path} is as it was before it."
            raise MigrationFailed(text) from error
    return wanted - found
