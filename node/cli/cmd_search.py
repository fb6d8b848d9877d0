"""kith search: search your notes and what peers share with you."""

import click

from node.cli.options import json_option, session
from node.cli.printable import cell, quoted


@click.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option("-n", "--limit", default=10, show_default=True, type=click.IntRange(1, 100),
              help="How many passages at most.")
@click.option("--local", is_flag=True, help="Ask no peer.")
@json_option
@click.pass_context
def command(ctx: click.Context, query: tuple[str, ...], limit: int, local: bool) -> None:
    """Search your notes and what peers share with you.

    The query goes to the paired peers that let you search them, unless it holds something personal: then it stays here.
    """
    at = session(ctx)
    view = at.client().post("/v1/search", {"query": " ".join(query), "limit": limit, "local": local})
    if view["stayed_local"]:
        at.say(view["stayed_local"])
    elif view["asked"]:
        silent = f"; no answer from {', '.join(view['silent'])}" if view["silent"] else ""
        at.say(f"The query went to: {', '.join(view['asked'])}{silent}")
    blocks = [
        "\n".join([cell(f"{hit['origin']}: {hit['title']}  ({hit['folder']})"), *quoted(hit["text"])])
        for hit in view["hits"]
    ]
    at.data("\n\n".join(blocks) or "Nothing found.", view)
