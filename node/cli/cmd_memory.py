"""kith memory: what the agent has learnt from your confirmed actions, and how to make it forget."""

from typing import Any

import click

from node.cli.client import named
from node.cli.options import json_option, session
from node.cli.output import Session, table

ID_CHARS = 8


def _show(at: Session, view: dict[str, Any]) -> None:
    rows = [
        [one["lesson_id"][:ID_CHARS], one["tool"], one["text"], "; ".join(f"{k}: {v}" for k, v in one["words"].items())]
        for one in view["lessons"]
    ]
    state = "Learning is on." if view["on"] else "Learning is off; nothing of this is used."
    listed = table(rows, ["ID", "TOOL", "YOU SAID", "MEANING"]) if rows else "Nothing was learnt yet."
    at.data(f"{state}\n{listed}", view)


@click.group("memory", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """What the agent has learnt on this device from actions that you confirmed."""
    if ctx.invoked_subcommand is None:
        at = session(ctx)
        _show(at, at.client().get("/v1/memory"))


@command.command("list")
@click.option("-n", "--limit", default=50, show_default=True, type=click.IntRange(1, 500), help="How many at most.")
@json_option
@click.pass_context
def list_command(ctx: click.Context, limit: int) -> None:
    """List what was learnt, the newest first."""
    at = session(ctx)
    _show(at, at.client().get("/v1/memory", limit=limit))


@command.command("forget")
@click.argument("name", metavar="ID|all")
@json_option
@click.pass_context
def forget(ctx: click.Context, name: str) -> None:
    """Forget one lesson by its ID, or the start of it; or "all"."""
    at = session(ctx)
    count = at.client().delete(f"/v1/memory/{named(name)}")["forgotten"]
    at.data(f"Forgotten: {count}", {"forgotten": count})


def _switch(ctx: click.Context, *, on: bool) -> None:
    at = session(ctx)
    view = at.client().put("/v1/memory", {"on": on})
    text = "Learning is on." if view["on"] else "Learning is off; nothing that was learnt is used."
    at.data(text, {"on": view["on"]})


@command.command("off")
@json_option
@click.pass_context
def off(ctx: click.Context) -> None:
    """Learn nothing more, and use nothing that was learnt. It stays until you forget it."""
    _switch(ctx, on=False)


@command.command("on")
@json_option
@click.pass_context
def on(ctx: click.Context) -> None:
    """Learn again."""
    _switch(ctx, on=True)
