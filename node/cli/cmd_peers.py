"""kith peers: list paired peers."""

import click

from node.cli.options import json_option, session
from node.cli.output import table


@click.command("peers")
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """List paired peers."""
    at = session(ctx)
    peers = at.client().get("/v1/peers")
    rows = [
        [
            peer["name"],
            peer["trust"],
            peer["their_trust"],
            f"{peer['route']}; {peer['doubt']}" if peer["doubt"] else peer["route"],
            peer["last_contact"] or "never",
            peer["peer_id"],
        ]
        for peer in peers
    ]
    at.data(
        table(rows, ["PEER", "TRUST", "TRUSTS US", "STATE", "LAST", "ID"])
        if rows
        else "No peers yet. Pair with: kith pair",
        peers,
    )
