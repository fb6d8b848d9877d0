"""kith unlock: open the node's data with the passphrase, which is typed or piped and never an argument."""

import click

from node.cli.options import json_option, session
from node.cli.passphrases import read_passphrase


@click.command("unlock")
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """Unlock the running node with the passphrase of its key."""
    at = session(ctx)
    view = at.client().post("/v1/unlock", {"passphrase": read_passphrase("Passphrase")})
    at.data("unlocked", view)
