"""kith mode: show or switch between offline, lan and online."""

import click

from node.cli.options import json_option, session


@click.command("mode")
@click.argument("mode", required=False, type=click.Choice(["offline", "lan", "online"]))
@json_option
@click.pass_context
def command(ctx: click.Context, mode: str | None) -> None:
    """Show or switch the mode.

    offline: no internet socket at all. lan: trusted peers on the local network. online: anywhere.
    """
    at = session(ctx)
    client = at.client()
    if mode is None:
        view = client.get("/v1/status")
        at.data(view["mode"], {"mode": view["mode"]})
    else:
        reply = client.put("/v1/mode", {"mode": mode})
        at.data(f"mode: {reply['from']} -> {reply['to']} ({reply['text']})", reply)
