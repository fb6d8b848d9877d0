"""kith down: stop the running node."""

import click

from node.cli.options import json_option, session


@click.command("down")
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """Stop the running node in order."""
    at = session(ctx)
    at.data("Stopping.", at.client().post("/v1/stop"))
