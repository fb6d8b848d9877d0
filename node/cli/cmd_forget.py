"""kith forget: remove a peer."""

import click

from node.cli.options import json_option, session


@click.command("forget")
@click.argument("peer")
@json_option
@click.pass_context
def command(ctx: click.Context, peer: str) -> None:
    """Remove PEER, cut its live streams and refuse it from now on."""
    at = session(ctx)
    reply = at.client().delete(f"/v1/peers/{peer}")
    at.data(f"Forgot {reply['forgotten']}. To trust it again, pair anew: kith pair", reply)
