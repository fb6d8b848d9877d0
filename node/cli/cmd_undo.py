"""kith undo: take back the last thing the agent wrote."""

import click

from node.cli.options import json_option, session


@click.command("undo")
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """Take back the last thing the agent wrote."""
    at = session(ctx)
    view = at.client().post("/v1/undo")
    at.data(view["text"], view)
