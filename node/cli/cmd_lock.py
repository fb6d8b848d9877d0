"""kith lock: close every database and let go of the keys; the node stays, and answers "locked"."""

import click

from node.cli.options import json_option, session


@click.command("lock")
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """Lock the running node: its data is closed until kith unlock. Peers see it leave."""
    at = session(ctx)
    view = at.client().post("/v1/lock")
    at.data("locked. Unlock it: kith unlock", view)
