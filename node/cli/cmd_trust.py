"""kith trust: change the trust in a peer."""

import click

from node.cli.client import named
from node.cli.options import json_option, session


@click.command("trust")
@click.argument("peer")
@click.argument("trust", type=click.Choice(["self", "home", "friend", "none"]))
@json_option
@click.pass_context
def command(ctx: click.Context, peer: str, trust: str) -> None:
    """Change the trust in PEER. What the new trust does not cover is cut at once."""
    at = session(ctx)
    view = at.client().post(f"/v1/peers/{named(peer)}/trust", {"trust": trust})
    at.data(f"{view['name']} is now trusted as {view['trust']}.", view)
