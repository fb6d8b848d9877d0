"""kith reminders: what you will be reminded of, and what you were."""

from datetime import datetime
from typing import Any

import click

from node.cli.client import named
from node.cli.options import json_option, session
from node.cli.output import table

ID_CHARS = 8


def _row(item: dict[str, Any]) -> list[str]:
    due = datetime.fromisoformat(item["due"]).astimezone()
    state = item["state"] + (" (late)" if item["missed"] else "") + (" *" if item["new"] else "")
    return [item["reminder_id"][:ID_CHARS], f"{due:%a %d %b %Y %H:%M}", state, item["text"]]


@click.group("reminders", invoke_without_command=True)
@click.option("-n", "--limit", default=50, show_default=True, type=click.IntRange(1, 500), help="How many at most.")
@json_option
@click.pass_context
def command(ctx: click.Context, limit: int) -> None:
    """List reminders: those that wait, then those that are over. A star marks what you have not seen.

    Set one by asking: kith ask "remind me to call mum tomorrow at 6"
    """
    if ctx.invoked_subcommand is None:
        at = session(ctx)
        items = at.client().get("/v1/reminders", limit=limit)
        rows = [_row(item) for item in items]
        at.data(table(rows, ["ID", "WHEN", "STATE", "WHAT"]) if rows else "No reminder is set.", items)


@command.command("cancel")
@click.argument("name", metavar="ID")
@json_option
@click.pass_context
def cancel(ctx: click.Context, name: str) -> None:
    """Cancel the waiting reminder with this ID, or the start of it."""
    at = session(ctx)
    item = at.client().delete(f"/v1/reminders/{named(name)}")
    at.data(f"You will not be reminded: {item['text']}", item)
