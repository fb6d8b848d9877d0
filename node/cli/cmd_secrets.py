"""kith secrets: passwords and tokens for your services. A value is typed or piped, never an argument, never shown."""

import getpass
import sys
from pathlib import Path

import click

from node.cli.client import named
from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import table

PURPOSES = ["upstream", "mail", "calendar", "contacts", "search", "other"]
_LIMIT_BYTES = 65_536


@click.group("secrets")
def command() -> None:
    """Keep passwords and tokens for your own services."""


@command.command("add")
@click.argument("name")
@click.option("--for", "purpose", type=click.Choice(PURPOSES), default="other", show_default=True,
              help="Which part of kith may use it.")
@click.option("--from-file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Take the value from a file, such as the old upstream.key_file.")
@json_option
@click.pass_context
def add(ctx: click.Context, name: str, purpose: str, from_file: Path | None) -> None:
    """Store a value under NAME; it is asked for, or read from standard input."""
    at = session(ctx)
    value = _read(from_file)
    view = at.client().post("/v1/secrets", {"name": name, "purpose": purpose, "value": value})
    at.data(f"{view['name']} is stored, sealed, for {view['purpose']}", view)
    if from_file is not None:
        at.say(f"The file is still there. Erase it when the stored one works: shred -u {from_file}")


def _read(from_file: Path | None) -> str:
    try:
        if from_file is not None:
            with from_file.open("rb") as file:
                raw = file.read(_LIMIT_BYTES).decode()
        elif sys.stdin.isatty():
            raw = getpass.getpass("Value (not shown): ")
        else:
            raw = sys.stdin.buffer.read(_LIMIT_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailure(
            f"the value cannot be read: {type(error).__name__}", hint="It must be text.", exit_code=2, code="usage",
        ) from None
    value = raw.strip("\r\n")
    if not value.strip():
        raise CommandFailure("no value was given", hint="Type it, or pipe it in.", exit_code=2, code="usage")
    return value


@command.command("list")
@json_option
@click.pass_context
def list_(ctx: click.Context) -> None:
    """List names; no value is ever shown."""
    at = session(ctx)
    found = at.client().get("/v1/secrets")
    rows = [[one["name"], one["purpose"], one["added"], one["used"] or "never"] for one in found]
    at.data(table(rows, ["NAME", "FOR", "ADDED", "LAST USED"]) if rows else "Nothing is stored.", found)


@command.command("remove")
@click.argument("name")
@json_option
@click.pass_context
def remove(ctx: click.Context, name: str) -> None:
    """Erase the value stored under NAME."""
    at = session(ctx)
    view = at.client().delete(f"/v1/secrets/{named(name)}")
    at.data(f"{view['removed']} is erased", view)
