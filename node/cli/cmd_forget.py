"""kith forget: remove a peer."""

import click

from node.cli.client import named
from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.printable import cell
from node.cli.terminal import confirm


@click.command("forget")
@click.argument("peer")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@json_option
@click.pass_context
def command(ctx: click.Context, peer: str, yes: bool) -> None:
    """Remove PEER, cut its live streams and refuse it from now on."""
    at = session(ctx)
    if not yes:
        if not at.interactive():
            raise CommandFailure(
                "nothing was forgotten: nobody to ask", hint=f"Say so: kith forget {peer} --yes", exit_code=4,
                code="not_confirmed",
            )
        if not confirm(f"Forget {cell(peer)}? Its grants, keys and addresses go; only a new pairing brings it back."):
            raise CommandFailure("nothing was forgotten: you said no", exit_code=4, code="not_confirmed")
    reply = at.client().delete(f"/v1/peers/{named(peer)}")
    at.data(f"Forgot {reply['forgotten']}. To trust it again, pair anew: kith pair", reply)
