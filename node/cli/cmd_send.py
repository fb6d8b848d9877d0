"""kith send: send a message to a peer."""

import sys

import click

from node.cli.options import json_option, session


@click.command("send")
@click.argument("peer")
@click.argument("text", nargs=-1)
@json_option
@click.pass_context
def command(ctx: click.Context, peer: str, text: tuple[str, ...]) -> None:
    """Send TEXT (or standard input) to PEER. It is kept until PEER has it."""
    at = session(ctx)
    body = " ".join(text) or ("" if sys.stdin.isatty() else sys.stdin.read())
    if not body.strip():
        raise click.UsageError('Say what to send: kith send PEER "..."')
    view = at.client().post("/v1/messages", {"to": peer, "body": body})
    word = {"queued": "Queued; it goes out once the peer takes it.", "sent": "On its way.", "delivered": "Delivered."}
    at.data(f"{word.get(view['state'], view['state'])}  ({view['message_id'][:8]} to {view['to']})", view)
