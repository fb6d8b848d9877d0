"""kith inbox: read messages, or see those still on their way."""

from typing import Any

import click

from node.cli.options import json_option, session
from node.cli.printable import cell, quoted


def _entry(head: str, body: str) -> str:
    """One message: its own line, then the body behind bars, so that a body cannot pass for another message."""
    return "\n".join([cell(head), *quoted(body)])


def _sent(item: dict[str, Any]) -> str:
    """A message that was sent, or why it was not: then there is no body any more."""
    head = f"{item['created']}  to {item['to']}  [{item['state']}]"
    if not item.get("reason"):
        return _entry(head, item["body"])
    return "\n".join([cell(head), f"     {cell(item['reason'])}", f"     -> {cell(item['hint'])}"])


@click.command("inbox")
@click.option("--out", "outbox", is_flag=True, help="Messages you sent, with their state.")
@click.option("-n", "--limit", default=20, show_default=True, help="How many at most.")
@json_option
@click.pass_context
def command(ctx: click.Context, outbox: bool, limit: int) -> None:
    """Read messages, newest first."""
    at = session(ctx)
    client = at.client()
    if outbox:
        sent = client.get("/v1/outbox", limit=limit)
        at.data(
            "\n".join(map(_sent, sent)) or "Nothing sent.", sent,
        )
    else:
        got = client.get("/v1/inbox", limit=limit)
        at.data(
            "\n".join(_entry(f"{item['received']}  {item['sender']}:", item["body"]) for item in got)
            or "No messages.",
            got,
        )
